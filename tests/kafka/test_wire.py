"""The wire: a record as Kafka carries it, and what others may send instead."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bus.kafka.record_format import (
    FORMER,
    IncomingRecord,
    OutgoingRecord,
    foreign_record,
    is_elsewhere,
    log_offset,
    mark,
    outgoing_records,
    own_record,
    record_id,
    without_value,
)
from holdfast.bus.records import RecordDraft, draft
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Row

pytestmark = pytest.mark.req("BUS-01", "BUS-03")

TENANT, TOPIC, ID = (TenantId(UUID(int=number)) for number in (1, 2, 3))
AT = datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)
MARK = mark(TENANT, "orders", TOPIC)

texts = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates, too
bytestrings = st.binary(max_size=30)


def page(*stored: RecordDraft, offset: int = 7, at: Sequence[datetime] = ()) -> Row:
    """A partition's stored records, the first of them at this offset."""
    times = at or [AT] * len(stored)
    columns = {
        "offsets": [offset + place for place in range(len(stored))],
        "times": times,
        "ids": [str(ID)] * len(stored),
        "keys": [one.key for one in stored],
        "headers": [one.headers for one in stored],
        "values": [one.value for one in stored],
    }
    return cast(Row, columns | {"tenant_id": TENANT, "topic": "orders", "topic_id": TOPIC, "partition": 3})


def stored(value: object = 1, *, key: str | None = None, headers: dict[str, str] | None = None) -> RecordDraft:
    """A record as PostgreSQL has it."""
    return draft("orders", value, key=key, headers=headers, max_bytes=10_000)


def parcel(value: object = 1, *, key: str | None = None, headers: dict[str, str] | None = None) -> OutgoingRecord:
    """What is sent for a record."""
    (sent,) = outgoing_records(page(stored(value, key=key, headers=headers)), "orders")
    return sent


def arrived(sent: OutgoingRecord) -> IncomingRecord:
    """What was sent, on the other side."""
    return IncomingRecord(sent.partition, 40, sent.key, sent.value, sent.headers, sent.milliseconds)


def changed(sent: OutgoingRecord, **headers: bytes | None) -> IncomingRecord:
    """What was sent, with other headers: `offset=b"1"`; none leaves one out."""
    named = {f"holdfast-{name}": value for name, value in headers.items()}
    told = [(name, named.get(name, value)) for name, value in sent.headers]
    return IncomingRecord(3, 40, sent.key, sent.value, [(name, value) for name, value in told if value is not None], 0)


@given(key=st.none() | texts, headers=st.dictionaries(texts.filter(bool), texts, max_size=3), value=texts)
def test_what_arrives_is_what_was_published_or_says_that_it_is_elsewhere(
    key: str | None, headers: dict[str, str], value: str
) -> None:
    arrival = arrived(parcel(value, key=key, headers=headers))

    record = None if is_elsewhere(arrival) else own_record(arrival, "orders", 7, epoch=5)

    assert (log_offset(arrival, MARK), record_id(arrival)) == (7, ID)
    if not is_elsewhere(arrival):
        assert record is not None
        assert (record.key, record.id, record.at, record.offset, record.epoch) == (key, ID, AT, 7, 5)
        assert (record.value, record.headers) == (value, {"content-type": "application/json", **headers})
    arrival.value.decode()  # pyright: ignore[reportOptionalMemberAccess] - what a plain client reads is UTF-8
    for name, _ in arrival.headers:
        assert "\0" not in name
        name.encode()


def test_records_are_sent_in_their_order_each_with_its_own_time() -> None:
    times = [AT, AT, AT + timedelta(days=1)]

    sent = [arrived(one) for one in outgoing_records(page(*map(stored, "abc"), at=times), "orders")]
    records = [own_record(arrival, "orders", 7, epoch=5) for arrival in sent]

    assert [log_offset(arrival, MARK) for arrival in sent] == [7, 8, 9]
    assert [(record.value, record.at) for record in records if record] == list(zip("abc", times, strict=True))
    assert [arrival.milliseconds for arrival in sent] == [int(at.timestamp() * 1000) for at in times]


@pytest.mark.parametrize("value", ["x" * 5000, "\0" * 500])
def test_a_record_that_the_broker_does_not_take_is_sent_as_a_mark(value: str) -> None:
    arrival = arrived(without_value(parcel(value, key="a")))

    assert (arrival.value, arrival.key, is_elsewhere(arrival)) == (b"null", b"a", True)
    assert (log_offset(arrival, MARK), record_id(arrival)) == (7, ID)
    assert len({name for name, _ in arrival.headers}) == len(arrival.headers)


@pytest.mark.parametrize(
    "forged",
    [
        {"log": None},
        {"log": b""},
        {"log": mark(TENANT, "other", TOPIC)},
        {"log": mark(TenantId(UUID(int=9)), "orders", TOPIC)},
        {"offset": None},
        {"offset": b""},
        {"offset": b"-1"},
        {"offset": b"1e3"},
        {"offset": b"9" * 5000},
        {"offset": "\u0667".encode()},
    ],
)
def test_what_is_not_from_this_topic_has_no_offset(forged: dict[str, bytes | None]) -> None:
    assert log_offset(changed(parcel(), **forged), MARK) is None


def test_what_a_former_topic_of_the_same_name_had_is_told_from_what_is_foreign() -> None:
    former = changed(parcel(), log=mark(TENANT, "orders", UUID(int=9)))

    assert log_offset(former, MARK) == FORMER


@pytest.mark.parametrize("broken", [{"id": None}, {"id": b"x"}, {"at": None}, {"at": b"yesterday"}])
def test_what_only_claims_to_be_ours_is_none_of_ours(broken: dict[str, bytes | None]) -> None:
    assert own_record(changed(parcel(), **broken), "orders", 7, epoch=1) is None


def test_an_id_that_is_none_is_none() -> None:
    sent = parcel()

    assert record_id(changed(sent, id=b"\xff")) is None
    assert record_id(changed(sent, id=None)) is None


@given(
    key=st.none() | bytestrings,
    value=st.none() | bytestrings,
    headers=st.lists(st.tuples(texts, st.none() | bytestrings), max_size=3),
    milliseconds=st.integers(-1, 2**40),
)
def test_anything_foreign_is_a_record_and_the_same_one_each_time(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], milliseconds: int
) -> None:
    arrival = IncomingRecord(3, 40, key, value, headers, milliseconds)

    record, wrong = foreign_record(arrival, "orders", epoch=5, position=0)
    again, _ = foreign_record(arrival, "orders", epoch=6, position=0)
    other, _ = foreign_record(IncomingRecord(3, 41, key, value, headers, milliseconds), "orders", epoch=5, position=0)

    assert (record.offset, record.broker_offset, record.foreign, record.partition) == (40, 40, True, 3)
    assert record.id == again.id != other.id
    assert (record.key is None) == (key is None)
    assert set(record.headers) == {name for name, _ in headers}
    assert wrong is None or wrong.startswith("the value is not JSON")


@pytest.mark.parametrize(
    ("value", "read"), [(b'{"a": [1, null]}', {"a": [1, None]}), (b" 7 ", 7), (None, None), (b'"\xc3\xb6"', "ö")]
)
def test_a_foreign_value_is_json(value: bytes | None, read: Any) -> None:
    record, wrong = foreign_record(IncomingRecord(0, 0, None, value, [], 0), "orders", epoch=1, position=0)

    assert (record.value, wrong) == (read, None)


@pytest.mark.parametrize("value", [b"", b"{", b"NaN", b"\xff\xfe", b"[" * 200 + b"]" * 200])
def test_a_foreign_value_that_is_not_json_is_kept_as_text_with_what_is_wrong(value: bytes) -> None:
    record, wrong = foreign_record(IncomingRecord(0, 0, None, value, [], 0), "orders", epoch=1, position=0)

    assert isinstance(record.value, str)
    assert wrong is not None
