import gc
import json
import math
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.json_limits import MAX_LONG_DIGITS, MAX_VALUES, check_work, decode
from holdfast.core.text import MAX_STORED_VALUES, MAX_SURROGATES, dumps, loads, parse

pytestmark = pytest.mark.req("SAFE-06")

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


def seconds(work: Any) -> float:
    """CPU seconds that it takes at best: others on the machine can only add to it."""
    taken: list[float] = []
    for _ in range(3):
        began = time.thread_time()
        work()
        taken.append(time.thread_time() - began)
    return min(taken)


@given(VALUES)
def test_values_are_decoded_as_msgspec_decodes_them(value: Any) -> None:
    data = json.dumps(value).encode()

    assert repr(decode(data)) == repr(msgspec.json.decode(data))


@pytest.mark.parametrize(
    "data", [b"1e999", b"[-1e999]", b"NaN", b"1.", b".5", b"1e", b"01.5", b"1.2x", b"[0.1", b"9" * 4400]
)
def test_numbers_that_msgspec_refuses_are_refused(data: bytes) -> None:
    for decoder in (msgspec.json.decode, decode):
        with pytest.raises(msgspec.DecodeError):
            decoder(data)


def test_a_float_near_the_largest_takes_no_longer_than_others() -> None:
    hard = b"[" + b"1.2345678901234567e308," * 10_000 + b"0]"
    easy = b"[" + b"1.2345678901234567e-10," * 10_000 + b"0]"

    assert seconds(lambda: decode(hard)) < 10 * seconds(lambda: decode(easy))


@pytest.mark.parametrize("item", [b"1e308,", b"0,", b"[],", b'{"a":[]},', b'"",', b'"a,b",', b'"\\"",', b'"\\\\",'])
def test_a_text_with_too_many_values_is_refused_and_says_the_limit(item: bytes) -> None:
    most = MAX_VALUES // (item.count(b"[") + item.count(b"{") + 1) - 3

    parse(b"[" + item * most + b"0]")
    with pytest.raises(TooLarge, match="more than 100,000 values") as refused:
        parse(b"[" + item * (most + 10) * 2 + b"0]")

    assert refused.value.details["limit"] == MAX_VALUES


def test_an_object_with_too_many_members_is_refused() -> None:
    with pytest.raises(TooLarge):
        parse(b"{" + b",".join(b'"%d":0' % number for number in range(MAX_VALUES + 1)) + b"}")


@pytest.mark.parametrize("item", ["Well, [yes], {no}. ", '\\"', "\\\\", ",", "0", '\\\\\\",'])
def test_what_stands_in_a_text_does_not_count(item: str) -> None:
    data = b'{"a":"' + item.encode() * (4 * MAX_VALUES) + b'"}'

    assert parse(data) == json.loads(data)


def test_long_integers_are_limited_in_all() -> None:
    few, many = MAX_LONG_DIGITS // 4000 - 2, MAX_LONG_DIGITS // 3000
    parse(b"[" + b"7" * 4000 + (b"," + b"7" * 4000) * few + b"]")

    with pytest.raises(TooLarge, match="digits in long numbers"):
        parse(b"[" + b"7" * 4000 + (b"," + b"7" * 4000) * many + b"]")


def test_more_values_are_taken_where_they_are_asked_for() -> None:
    data = b"[" + b"0," * 300_000 + b"0]"

    assert len(parse(data, most_values=400_000)) == 300_001
    with pytest.raises(TooLarge):
        parse(data, most_values=300_000)


def test_a_mistake_deep_in_a_large_text_is_found_where_it_is() -> None:
    data = b'{"a":{"b":[' + b'"x",' * 100_000 + b'"\\q"]}}'

    with pytest.raises(InvalidInput) as refused:
        parse(data, most_values=400_000)

    assert refused.value.details["offset"] == pytest.approx(data.index(b"\\q"), abs=2)


def test_decoding_leaves_the_garbage_collector_as_it_was() -> None:
    large = b"[" + b"0," * 50_000 + b"0]"

    decode(large)
    assert gc.isenabled()
    with pytest.raises(msgspec.DecodeError):
        decode(large[:-1])
    assert gc.isenabled()
    gc.disable()
    try:
        decode(large)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_halves_of_characters_are_limited() -> None:
    assert parse(b'"' + b"\\ud83d" * MAX_SURROGATES + b'"') == "\ud83d" * MAX_SURROGATES
    with pytest.raises(TooLarge, match="lone surrogate"):
        parse(b'"' + b"\\ud83d" * (MAX_SURROGATES + 1) + b'"')
    assert len(parse(b'"' + b"\\ud83d\\ude00" * MAX_SURROGATES + b'"')) == MAX_SURROGATES


def test_what_is_stored_has_fewer_values_than_the_limit() -> None:
    some = [0] * (MAX_STORED_VALUES - 10)

    assert loads(dumps(some)) == some
    with pytest.raises(TooLarge):
        dumps([0] * (MAX_STORED_VALUES + 10))
    with pytest.raises(InvalidInput, match="the stored JSON is invalid"):
        loads("[" + "0," * (MAX_STORED_VALUES + 10) + "0]")


def test_big_floats_are_stored_with_all_their_digits_as_far_as_there_is_room() -> None:
    largest = math.nextafter(math.inf, 0)

    assert loads(dumps([largest, -1e16, 1e300])) == [largest, -1e16, 1e300]
    assert dumps([1e308]) == f"[{1e308:.1f}]"
    with pytest.raises(TooLarge):
        dumps([1e308] * 50_000)


def test_counting_takes_a_small_part_of_decoding() -> None:
    data = b"[" + b'{"a":[]},' * 20_000 + b"0]"

    assert seconds(lambda: check_work(data, most=70_000)) < seconds(lambda: decode(data))
