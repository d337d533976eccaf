"""What can become a record, and which partition it goes to."""

import zlib
from typing import Any, cast
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bus.records import CONTENT_TYPE, ENVELOPE, JSON_TYPE, draft, hash_of
from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.text import loads, restore

LIMIT = 10_000


@pytest.mark.req("BUS-01")
@given(st.none() | st.text(), st.dictionaries(st.text(min_size=1), st.text()), st.text())
def test_a_draft_holds_what_was_given_in_a_form_that_can_be_stored(
    key: str | None, headers: dict[str, str], value: str
) -> None:
    id = uuid4()

    made = draft("orders", {"v": value}, key=key, headers=headers, id=id, max_bytes=LIMIT)

    assert (made.topic, made.id) == ("orders", id)
    assert (None if made.key is None else restore(made.key)) == key
    assert loads(made.headers) == {CONTENT_TYPE: JSON_TYPE, **headers}
    assert loads(made.value) == {"v": value}
    assert all("\0" not in text for text in (made.key or "", made.headers, made.value))


@pytest.mark.req("BUS-01")
def test_the_hash_of_a_key_is_the_one_that_clients_of_kafka_use() -> None:
    assert hash_of("123456789") == 0xCBF43926, "CRC-32, as everyone computes it"
    assert hash_of("ключ") == zlib.crc32("ключ".encode())
    assert hash_of("\ud800") >= 0
    assert len({hash_of(None) % 16 for _ in range(500)}) == 16


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("part", ["key", "value", "headers"])
def test_a_record_is_measured_with_key_and_headers(part: str) -> None:
    given: dict[str, Any] = {"key": "", "value": "", "headers": {"h": ""}}
    smallest = draft("t", given["value"], key=given["key"], headers=given["headers"], max_bytes=LIMIT).bytes
    room = LIMIT - smallest

    def made(size: int) -> int:
        filled: dict[str, Any] = {**given, part: {"h": "x" * size} if part == "headers" else "x" * size}
        return draft("t", filled["value"], key=filled["key"], headers=filled["headers"], max_bytes=LIMIT).bytes

    assert made(room) == LIMIT
    with pytest.raises(TooLarge, match=f"has {LIMIT + 1} bytes, the limit is {LIMIT}") as refused:
        made(room + 1)
    assert refused.value.details == {"size": LIMIT + 1, "limit": LIMIT}
    assert smallest > ENVELOPE


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize(
    ("key", "headers"), [(7, None), (b"k", None), (None, {"n": 1}), (None, {1: "n"}), (None, {"": "n"})]
)
def test_keys_and_headers_are_text(key: object, headers: object) -> None:
    with pytest.raises(InvalidInput, match="a string"):
        draft("t", 1, key=cast(Any, key), headers=cast(Any, headers), max_bytes=LIMIT)


@pytest.mark.req("BUS-03")
def test_every_draft_has_an_id_and_ids_rise() -> None:
    ids = [draft("t", 1, max_bytes=LIMIT).id for _ in range(100)]

    assert ids == sorted(set(ids))
