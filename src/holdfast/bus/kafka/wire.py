"""A record as Kafka carries it: value and key as they are, the rest in headers. Pure."""

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

LOG = "holdfast-log"  # where it is from, see `mark`: a record copied from elsewhere is a foreign one
OFFSET = "holdfast-offset"
ID = "holdfast-id"
AT = "holdfast-at"  # to the microsecond, where Kafka has milliseconds
ELSEWHERE = "holdfast-elsewhere"  # the broker would not take it: it is in PostgreSQL

FORMER = -1  # the offset of what a topic had that was removed, and whose name is used again
MAX_DIGITS = 18  # of an offset that PostgreSQL can hold

_OURS = (LOG, OFFSET, ID, AT, ELSEWHERE)
_FOREIGN = UUID("1f6f6f0e-5d3a-4f0e-9a53-2b6f8d1c7e44")

Headers = Sequence[tuple[str, bytes | None]]


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A record as it came from Kafka, not yet decoded."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    milliseconds: int

    @property
    def bytes(self) -> int:
        """How large it is, about."""
        return len(self.value or b"") + len(self.key or b"")


class Parcel(msgspec.Struct, frozen=True, gc=False):
    """A record on its way to Kafka."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]
    milliseconds: int


@lru_cache(maxsize=1000)
def mark(tenant: TenantId, topic: str, id: UUID) -> bytes:
    """What tells a topic from all others, also from one that had its name before."""
    return f"{tenant}/{topic}/{id}".encode()


def parcels(page: Row, topic: str) -> Iterator[Parcel]:
    """What to send for the stored records of a partition (see `unsent.sql`), in their order."""
    partition: int = page["partition"]
    source = LOG, mark(page["tenant_id"], page["topic"], page["topic_id"])
    stored = zip(*(page[column] for column in ("offsets", "times", "ids", "keys", "headers", "values")), strict=True)
    last, milliseconds, time = None, 0, b""
    for offset, at, id, key, headers, text in stored:
        if at != last:  # those of one transaction have the same
            last, milliseconds, time = at, int(at.timestamp() * 1000), at.isoformat().encode()
        told, whole = _told(headers)
        ours = [*told, source, (OFFSET, b"%d" % offset), (ID, id.encode()), (AT, time)]
        if ESCAPE in text:  # what JSON cannot say: a plain client gets what comes nearest
            value, whole = render(loads(text)), False
        else:
            value = text.encode()
        if not whole:
            ours.append((ELSEWHERE, b"postgres"))
        yield Parcel(topic, partition, None if key is None else _bytes(restore(key)), value, ours, milliseconds)


def without_value(whole: Parcel) -> Parcel:
    """What to send for a record that the broker does not take: only that it is there."""
    told = [(name, value) for name, value in whole.headers if name != ELSEWHERE]
    return structs.replace(whole, value=b"null", headers=[*told, (ELSEWHERE, b"postgres")])


@lru_cache(maxsize=1000)
def _told(headers: str) -> tuple[tuple[tuple[str, bytes], ...], bool]:
    """The headers that a record was published with, and whether Kafka can have all of them."""
    told: dict[str, str] = loads(headers)
    able = tuple((name, _bytes(value)) for name, value in told.items() if name not in _OURS and _is_utf8(name))
    return able, len(able) == len(told)


def log_offset(arrival: Arrival, mark: bytes) -> int | None:
    """The record's offset in the log with this mark, or FORMER; none for what a foreign producer wrote."""
    told = offset = b""
    for name, value in arrival.headers:
        if name == LOG:
            told = value or b""
        elif name == OFFSET:
            offset = value or b""
    if not offset.isdigit() or len(offset) > MAX_DIGITS:
        return None
    if told == mark:
        return int(offset)
    return FORMER if _name(told) == _name(mark) else None


def mark_of(arrival: Arrival) -> bytes:
    """The mark of the topic that a record of ours was published on."""
    return next((value or b"" for name, value in arrival.headers if name == LOG), b"")


def record_id(arrival: Arrival) -> UUID | None:
    """The id that a record of ours has."""
    told = next((value or b"" for name, value in arrival.headers if name == ID), b"")
    try:
        return UUID(told.decode("ascii"))
    except ValueError:
        return None


def is_elsewhere(arrival: Arrival) -> bool:
    """Whether the broker has not all of it, and PostgreSQL the record."""
    return any(name == ELSEWHERE for name, _ in arrival.headers)


def own_record(arrival: Arrival, topic: str, offset: int, epoch: int) -> Record | None:
    """A record of ours; none where it only claims to be one."""
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


def foreign_record(arrival: Arrival, topic: str, epoch: int, position: int) -> tuple[Record, str | None]:
    """A record of a producer that knows only Kafka, and what is wrong with it, if it is not JSON.

    It has the same id each time it is delivered.
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


def _time(arrival: Arrival) -> datetime:
    return datetime.fromtimestamp(max(arrival.milliseconds, 0) / 1000, UTC)


def _name(mark: bytes) -> bytes:
    return mark.rpartition(b"/")[0]


def _is_utf8(name: str) -> bool:
    """Whether a client can write it as a header's name."""
    return "\0" not in name and (name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return (data or b"").decode("utf-8", "replace")
