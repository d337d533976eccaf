import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.text import (
    ESCAPE,
    MAX_INTEGER_DIGITS,
    MAX_JSON_DEPTH,
    MAX_TEXT_BYTES,
    dumps,
    loads,
    parse,
    render,
    restore,
    store,
)

TROUBLE = st.sampled_from(
    ["\0", "\ud83d", "\ude00", ESCAPE, "0000", "d83d", "fffe", "nan", "inf", "-inf", "null", "😀"]
)
ANY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=())), st.lists(TROUBLE | st.text(max_size=2), max_size=6).map("".join)
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


class Parcel(msgspec.Struct):
    name: str
    weight: float


@dataclass
class Stop:
    at: datetime
    parcels: list[Parcel]


def same(one: Any, other: Any) -> bool:
    """Equal, of the same type, and NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict):
        mapping = cast(dict[str, Any], one)
        return mapping.keys() == other.keys() and all(same(item, other[key]) for key, item in mapping.items())
    if isinstance(one, list):
        items = cast(list[Any], one)
        return len(items) == len(other) and all(map(same, items, other))
    return one == other


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def as_jsonb(data: str) -> str:
    """What PostgreSQL makes of a number: digits without exponent, an integer unless a fraction is written."""
    return re.sub(r"(?<![\w.\"])-?\d+(?:\.\d+)?e\d+", lambda number: f"{int(float(number[0]))}", data)


@pytest.mark.req("ENG-08")
@given(ANY_TEXT)
@example("\ud83d\ude00")
@example(f"{ESCAPE}0000")
def test_any_text_is_stored_and_comes_back_as_it_was(text: str) -> None:
    stored = store(text)

    assert "\0" not in stored
    assert stored.encode().decode() == stored
    assert restore(stored) == text


def test_clean_text_is_stored_as_it_is() -> None:
    text = "Grüße, 世界 😀"

    assert store(text) is text
    assert restore(text) is text


def test_what_looks_like_an_escape_and_is_none_is_left_alone() -> None:
    assert restore(f"{ESCAPE}zzzz") == f"{ESCAPE}zzzz"


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    "text", ["a" * (MAX_TEXT_BYTES + 1), "ü" * (MAX_TEXT_BYTES // 2 + 1), "\0" * (MAX_TEXT_BYTES // 8 + 1)]
)
def test_text_beyond_the_limit_is_refused_with_both_figures(text: str) -> None:
    with pytest.raises(TooLarge) as caught:
        store(text)

    assert caught.value.details["limit"] == MAX_TEXT_BYTES
    assert str(caught.value.details["size"]) in str(caught.value)


@pytest.mark.req("ENG-08")
@given(ANY_JSON)
@example([1e16, 1e22, 1e23, -1e308, 5e-324])
@example({"a": [None, math.nan], "null": f"{ESCAPE}nan"})
def test_any_json_value_comes_back_as_it_was(value: Any) -> None:
    stored = dumps(value)

    assert "\0" not in stored
    assert "\\u0000" not in stored.replace("\\\\", "")
    assert same(loads(stored), value)
    assert same(loads(stored.encode()), value)


@pytest.mark.req("ENG-08")
@given(st.floats(min_value=1e15, allow_infinity=False) | st.floats(max_value=-1e15, allow_infinity=False))
def test_a_large_float_stays_a_float_in_a_numeric_column(number: float) -> None:
    stored = as_jsonb(dumps([number]))

    assert same(loads(stored), [number])


def test_an_infinity_beside_clean_values_is_not_lost() -> None:
    assert loads(dumps({"low": -math.inf, "high": math.inf, "n": 1})) == {"low": -math.inf, "high": math.inf, "n": 1}


def test_a_string_that_spells_an_escaped_number_stays_a_string() -> None:
    assert loads(dumps([f"{ESCAPE}inf", "nan"])) == [f"{ESCAPE}inf", "nan"]


def test_values_of_our_types_are_written_as_their_json_form() -> None:
    stop = Stop(datetime(2026, 1, 2, tzinfo=UTC), [Parcel("a\0b", math.inf)])
    id_ = UUID("0190a8c0-0000-7000-8000-000000000001")

    value = loads(dumps({"stop": stop, "id": id_}))

    assert value == {
        "stop": {"at": "2026-01-02T00:00:00Z", "parcels": [{"name": "a\0b", "weight": math.inf}]},
        "id": str(id_),
    }


def test_an_integer_of_many_digits_comes_back_and_of_too_many_is_refused() -> None:
    largest = 10**MAX_INTEGER_DIGITS - 1

    back = loads(dumps([largest, -largest, 2**64, -(2**63) - 1]))

    assert back == [largest, -largest, 2**64, -(2**63) - 1]
    with pytest.raises(InvalidInput, match="4300 digits"):
        dumps([largest + 1])


def test_a_number_as_key_becomes_text_and_any_other_key_is_refused() -> None:
    assert loads(dumps({1: "a", "b": math.nan}))["1"] == "a"
    with pytest.raises(InvalidInput, match="keys"):
        dumps({None: 1})
    with pytest.raises(InvalidInput, match="keys"):
        dumps({(1, 2): 1})


def test_an_object_without_a_json_form_is_refused() -> None:
    with pytest.raises(InvalidInput, match="unsupported"):
        dumps({"a": object()})


@pytest.mark.req("ENG-08")
def test_json_may_be_as_deep_as_the_limit_and_no_deeper() -> None:
    deepest = nested(MAX_JSON_DEPTH)

    assert loads(dumps(deepest)) == deepest
    assert parse(render(deepest)) == deepest
    with pytest.raises(InvalidInput, match="128 levels"):
        dumps([deepest])
    with pytest.raises(InvalidInput, match="128 levels"):
        parse(render([deepest]))


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("inner", ["clean", "\0", "\ud83d", None])
@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_json_without_bottom_is_refused_whatever_it_holds(depth: int, inner: object) -> None:
    value: object = inner
    for _ in range(depth):
        value = {"a": value} if depth % 2 else [value]

    with pytest.raises(InvalidInput, match="128 levels"):
        dumps(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(InvalidInput, match="128 levels"):
        dumps(value)


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("data", [b"[" * 90_000, b'{"a":' * 90_000, b"[" * 90_000 + b"]" * 90_000])
def test_bytes_nested_ninety_thousand_deep_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        loads(data)
    with pytest.raises(InvalidInput, match="128 levels"):
        parse(data)


def test_brackets_in_text_are_not_depth() -> None:
    text = "[{" * 1_000

    assert loads(dumps([text])) == [text]
    assert parse(render(text)) == text


def test_wide_json_is_not_deep() -> None:
    rows = [{"n": n, "tags": [n]} for n in range(1_000)]

    assert loads(dumps(rows)) == rows
    assert parse(render(rows)) == rows


@pytest.mark.req("ENG-08")
def test_json_beyond_the_limit_is_refused_with_both_figures() -> None:
    with pytest.raises(TooLarge, match=f"has {MAX_TEXT_BYTES + 1} bytes, the limit is {MAX_TEXT_BYTES}"):
        dumps("a" * (MAX_TEXT_BYTES - 1))
    with pytest.raises(TooLarge, match="has 12 bytes, the limit is 10"):
        parse(b'"0123456789"', limit=10)


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"[1, NaN]", 4),
        (b"[Infinity]", 1),
        (b'["ok", "\xff"]', 8),
        (b'"\xed\xa0\xbd"', 1),
        (b"[1,]", 3),
        (b"{'a': 1}", 1),
        (b"\xef\xbb\xbf{}", 0),
        (b'["\\ud83d", NaN]', None),
        (b'["\\ud83d", 1e999]', None),
        (b'["\\ud83d", -Infinity]', None),
        (b'["\\ud83d"', None),
        (b"", 0),
        (b'{"a": 1', 7),
        (b"1e999", None),
        (b"9" * 5_000, None),
    ],
)
def test_what_is_not_json_is_refused_and_the_place_named_where_it_is_known(data: bytes, offset: int | None) -> None:
    with pytest.raises(InvalidInput, match="not valid JSON") as caught:
        parse(data)

    assert caught.value.details.get("offset") == offset


@pytest.mark.req("ENG-08")
@given(ANY_JSON)
def test_what_python_clients_write_is_parsed_and_rendered_back(value: Any) -> None:
    finite = json.loads(re.sub(r"\b(NaN|Infinity)\b", "0", json.dumps(value)))

    parsed = parse(json.dumps(finite).encode())

    assert same(parsed, finite)
    assert same(parse(render(parsed)), finite)


def test_a_number_json_cannot_write_is_rendered_as_null() -> None:
    assert render([math.nan, 1]) == b"[null,1]"
    assert render([math.nan, "\ud83d"]) == b'[null,"\\ud83d"]'


def test_errors_text_and_ids_load_without_the_settings_library() -> None:
    code = (
        "import sys, holdfast.core.errors, holdfast.core.ids, holdfast.core.wires; sys.exit('pydantic' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], check=False)

    assert done.returncode == 0
