"""Records: the entries of a topic, and the checks before one is published."""

import random
import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import msgspec

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.ids import uuid7
from holdfast.core.text import dumps, loads, restore, store
from holdfast.postgres.database import Row

JSON_TYPE = "application/json"
CONTENT_TYPE = "content-type"
TRACE_HEADERS = ("traceparent", "tracestate")  # W3C trace context
ENVELOPE = 100  # approximate bytes of a record beside its key, headers and value


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record of a topic. `offset` counts the records of its partition from 0.

    `broker_offset`: its offset on Kafka. `foreign`: a producer wrote it directly to Kafka; then `offset` is Kafka's
    offset, and `position` is the offset of the first record of our log after it. `dead_letter`: the id of the dead
    letter that is redriven with this record.
    """

    topic: str
    partition: int
    offset: int
    key: str | None
    id: UUID
    headers: dict[str, str]
    value: Any
    at: datetime
    broker_offset: int | None = None
    foreign: bool = False
    position: int = 0
    dead_letter: UUID | None = None
    epoch: int = 0  # the epoch of the owner to which it was delivered
    generation: int = 0  # grows when an attempt fails: the records after the failed one are delivered again


class RecordDraft(msgspec.Struct, frozen=True, gc=False):
    """A record to publish, in its stored form."""

    topic: str
    key: str | None
    hash: int
    id: UUID
    headers: str
    value: str
    bytes: int

    @property
    def columns(self) -> tuple[object, ...]:
        """The arguments of `holdfast.publish` after the tenant."""
        return self.topic, self.hash, self.key, self.id, self.headers, self.value, self.bytes


def draft(
    topic: str,
    value: object,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    id: UUID | None = None,
    max_bytes: int,
) -> RecordDraft:
    """Check and encode a record to publish. Raise an error that says what is wrong with it."""
    if key is not None and not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            "the key of the record is invalid",
            why=f"it is a {type(key).__name__}, not a string",
            next="Pass a string, such as `str(conversation.id)`, or None for any partition.",
        )
    if id is not None and not isinstance(id, UUID):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            "the id of the record is invalid", why=f"it is a {type(id).__name__}, not a UUID", next="Pass a UUID."
        )
    all_headers = {CONTENT_TYPE: JSON_TYPE, **_check_headers(headers or {})}
    body, head = dumps(value), dumps(all_headers)
    stored_key = None if key is None else store(key)
    size = len(body.encode()) + len(head.encode()) + len((stored_key or "").encode()) + ENVELOPE
    if size > max_bytes:
        raise TooLarge(
            "the record is too large",
            why=f"it has {size} bytes, the limit is {max_bytes} (bus.max_record_bytes)",
            next="Store the content elsewhere, such as in a node, and publish its id.",
            size=size,
            limit=max_bytes,
        )
    return RecordDraft(topic, stored_key, hash_of(key), id or uuid7(), head, body, size)


def hash_of(key: str | None) -> int:
    """Return the hash that determines the partition, or a random one without a key.

    Kafka's C clients use the same hash, so that they choose the same partitions.
    """
    return random.getrandbits(31) if key is None else zlib.crc32(key.encode("utf-8", "surrogatepass"))


def record_of(row: Row, *, dead_letter: UUID | None = None, epoch: int = 0) -> Record:
    """Decode a stored record."""
    return Record(
        row["topic"],
        row["partition"],
        row["offset"],
        None if row["key"] is None else restore(row["key"]),
        row["id"],
        loads(row["headers"]),
        loads(row["value"]),
        row["at"],
        dead_letter=dead_letter,
        epoch=epoch,
    )


def _check_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    if not isinstance(headers, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("the headers of the record are invalid", why="they are not a mapping", next="Pass a dict.")
    for name, value in cast(Mapping[object, object], headers).items():
        if not (isinstance(name, str) and isinstance(value, str) and name):
            raise InvalidInput(
                "the headers of the record are invalid",
                why=f"{name!r} or its value is not a string",
                next="Use strings for names and values.",
            )
    return headers
