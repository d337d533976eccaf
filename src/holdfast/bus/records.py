"""Records: what a log holds, and what can become one."""

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
ENVELOPE = 100  # bytes of a record beside key, headers and value, about


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record of a topic: `offset` counts its partition's records from 0.

    `broker_offset`: where Kafka has it. `foreign`: a producer that knows only Kafka wrote it, `offset` is Kafka's, and
    `position` that of the first record of ours after it.
    `dead_letter`: it was one, and is delivered once more.
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
    epoch: int = 0  # of the partition's owner it was delivered to
    generation: int = 0  # rises when attempts fail: what was delivered after a failed record comes again behind it


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A record on its way to the log, as it is stored."""

    topic: str
    key: str | None
    hash: int
    id: UUID
    headers: str
    value: str
    bytes: int

    @property
    def stored(self) -> tuple[object, ...]:
        """What `holdfast.publish` takes after the tenant."""
        return self.topic, self.hash, self.key, self.id, self.headers, self.value, self.bytes


def draft(
    topic: str,
    value: object,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    id: UUID | None = None,
    max_bytes: int,
) -> Draft:
    """A record that can be published, or an error that says what is wrong with it."""
    if key is not None and not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            "the record's key cannot be used",
            why=f"it is a {type(key).__name__}, and keys are text",
            next="Give text, such as `str(conversation.id)`, or None for any partition.",
        )
    if id is not None and not isinstance(id, UUID):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("the record's id cannot be used", why=f"it is a {type(id).__name__}", next="Give a UUID.")
    told = {CONTENT_TYPE: JSON_TYPE, **_headers(headers or {})}
    body, head = dumps(value), dumps(told)
    stored_key = None if key is None else store(key)
    size = len(body.encode()) + len(head.encode()) + len((stored_key or "").encode()) + ENVELOPE
    if size > max_bytes:
        raise TooLarge(
            "the record is too large",
            why=f"it has {size} bytes, at most {max_bytes} are taken (bus.max_record_bytes)",
            next="Store the content elsewhere, such as in a node, and publish its id.",
            size=size,
            limit=max_bytes,
        )
    return Draft(topic, stored_key, hash_of(key), id or uuid7(), head, body, size)


def hash_of(key: str | None) -> int:
    """What decides the partition: the hash that Kafka's C clients use, so theirs and ours agree; any without a key."""
    return random.getrandbits(31) if key is None else zlib.crc32(key.encode("utf-8", "surrogatepass"))


def record_of(row: Row, *, dead_letter: UUID | None = None, epoch: int = 0) -> Record:
    """A stored record."""
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


def _headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    if not isinstance(headers, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("the record's headers cannot be used", why="they are no mapping", next="Give a dict.")
    for name, value in cast(Mapping[object, object], headers).items():
        if not (isinstance(name, str) and isinstance(value, str) and name):
            raise InvalidInput(
                "the record's headers cannot be used",
                why=f"{name!r} or its value is not text",
                next="Give names and values as text.",
            )
    return headers
