"""The format of a record on Kafka: key and value unchanged, the rest in headers. Pure functions."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid5

import msgspec
from msgspec import structs

from holdfast.bus.records import Record
from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.ids import TenantId
from holdfast.core.text import ESCAPE, loads, parse, render, restore
from holdfast.postgres.database import Row

LOG = "holdfast-log"  # the source, see `mark`: a record copied from another log is foreign
OFFSET = "holdfast-offset"
ID = "holdfast-id"
AT = "holdfast-at"  # with microseconds; Kafka has milliseconds
ELSEWHERE = "holdfast-elsewhere"  # Kafka does not have all of the record: read it from PostgreSQL

FORMER = -1  # in place of an offset: the record is of a removed topic whose name is used again
MAX_DIGITS = 18  # of an offset that PostgreSQL can store

_OURS = (LOG, OFFSET, ID, AT, ELSEWHERE)
_FOREIGN = UUID("1f6f6f0e-5d3a-4f0e-9a53-2b6f8d1c7e44")

Headers = Sequence[tuple[str, bytes | None]]


class IncomingRecord(msgspec.Struct, frozen=True, gc=False):
    """A record received from Kafka, not yet decoded."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    milliseconds: int

    @property
    def bytes(self) -> int:
        """The approximate size."""
        return len(self.value or b"") + len(self.key or b"")


class OutgoingRecord(msgspec.Struct, frozen=True, gc=False):
    """A record to send to Kafka."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]
    milliseconds: int


@lru_cache(maxsize=1000)
def mark(tenant: TenantId, topic: str, id: UUID) -> bytes:
    """Return an identifier of a topic, different from that of an earlier topic with the same name."""
    return f"{tenant}/{topic}/{id}".encode()


def outgoing_records(page: Row, topic: str) -> Iterator[OutgoingRecord]:
    """Yield what to send for the stored records of a partition (see `unsent.sql`), in order."""
    partition: int = page["partition"]
    source = LOG, mark(page["tenant_id"], page["topic"], page["topic_id"])
    stored = zip(*(page[column] for column in ("offsets", "times", "ids", "keys", "headers", "values")), strict=True)
    last, milliseconds, time = None, 0, b""
    for offset, at, id, key, headers, text in stored:
        if at != last:  # records of one transaction have the same time
            last, milliseconds, time = at, int(at.timestamp() * 1000), at.isoformat().encode()
        encoded, whole = _encode_headers(headers)
        all_headers = [*encoded, source, (OFFSET, b"%d" % offset), (ID, id.encode()), (AT, time)]
        if ESCAPE in text:  # JSON cannot express the value: plain clients get the nearest one
            value, whole = render(loads(text)), False
        else:
            value = text.encode()
        if not whole:
            all_headers.append((ELSEWHERE, b"postgres"))
        yield OutgoingRecord(
            topic, partition, None if key is None else _bytes(restore(key)), value, all_headers, milliseconds
        )


def without_value(whole: OutgoingRecord) -> OutgoingRecord:
    """Return what to send for a record that is too large for the broker: the same without its value."""
    headers = [(name, value) for name, value in whole.headers if name != ELSEWHERE]
    return structs.replace(whole, value=b"null", headers=[*headers, (ELSEWHERE, b"postgres")])


@lru_cache(maxsize=1000)
def _encode_headers(headers: str) -> tuple[tuple[tuple[str, bytes], ...], bool]:
    """Return the published headers of a record that Kafka can store, and whether these are all."""
    decoded: dict[str, str] = loads(headers)
    encodable = tuple((name, _bytes(value)) for name, value in decoded.items() if name not in _OURS and _is_utf8(name))
    return encodable, len(encodable) == len(decoded)


def log_offset(arrival: IncomingRecord, mark: bytes) -> int | None:
    """Return the record's offset in the log with this mark, or FORMER; None for a foreign record."""
    source = offset = b""
    for name, value in arrival.headers:
        if name == LOG:
            source = value or b""
        elif name == OFFSET:
            offset = value or b""
    if not offset.isdigit() or len(offset) > MAX_DIGITS:
        return None
    if source == mark:
        return int(offset)
    return FORMER if _name(source) == _name(mark) else None


def mark_of(arrival: IncomingRecord) -> bytes:
    """Return the mark of the topic to which one of our records was published."""
    return next((value or b"" for name, value in arrival.headers if name == LOG), b"")


def record_id(arrival: IncomingRecord) -> UUID | None:
    """Return the id of one of our records."""
    data = next((value or b"" for name, value in arrival.headers if name == ID), b"")
    try:
        return UUID(data.decode("ascii"))
    except ValueError:
        return None


def is_elsewhere(arrival: IncomingRecord) -> bool:
    """Whether Kafka does not have all of the record, so that it must be read from PostgreSQL."""
    return any(name == ELSEWHERE for name, _ in arrival.headers)


def own_record(arrival: IncomingRecord, topic: str, offset: int, epoch: int) -> Record | None:
    """Decode one of our records. Return None if it only claims to be one."""
    headers = {name: _text(value) for name, value in arrival.headers}
    try:
        return Record(
            topic,
            arrival.partition,
            offset,
            None if arrival.key is None else _text(arrival.key),
            UUID(headers[ID]),
            {name: value for name, value in headers.items() if name not in _OURS},
            loads(arrival.value or b""),
            datetime.fromisoformat(headers[AT]),
            broker_offset=arrival.offset,
            epoch=epoch,
        )
    except (KeyError, ValueError, InvalidInput):
        return None


def foreign_record(arrival: IncomingRecord, topic: str, epoch: int, position: int) -> tuple[Record, str | None]:
    """Decode the record of a foreign producer. Return it, and what is wrong with its value, if anything is.

    Its id is the same at every delivery.
    """
    value: Any = None
    wrong = None
    try:
        value = parse(arrival.value) if arrival.value is not None else None
    except InvalidInput as error:
        value, wrong = _text(arrival.value or b""), f"the value is not JSON: {error}"
    except TooLarge as error:
        value, wrong = _text(arrival.value or b""), f"the value is too large: {error}"
    record = Record(
        topic,
        arrival.partition,
        arrival.offset,
        None if arrival.key is None else _text(arrival.key),
        uuid5(_FOREIGN, f"{topic}/{arrival.partition}/{arrival.offset}"),
        {name: _text(header) for name, header in arrival.headers},
        value,
        _time(arrival),
        broker_offset=arrival.offset,
        foreign=True,
        position=position,
        epoch=epoch,
    )
    return record, wrong


def _time(arrival: IncomingRecord) -> datetime:
    return datetime.fromtimestamp(max(arrival.milliseconds, 0) / 1000, UTC)


def _name(mark: bytes) -> bytes:
    return mark.rpartition(b"/")[0]


def _is_utf8(name: str) -> bool:
    """Whether a client can write it as the name of a header."""
    return "\0" not in name and (name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return (data or b"").decode("utf-8", "replace")
