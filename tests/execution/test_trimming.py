"""What is too long for a model is shortened so that it stays JSON, and says what is missing."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.text import render
from holdfast.execution.trimming import trimmed, trimmed_text

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(), inner, max_size=30),
    max_leaves=200,
)


@pytest.mark.req("EXEC-02")
@given(VALUES, st.integers(2, 2000))
def test_nothing_is_larger_than_asked_and_equal_values_are_trimmed_equally(value: Any, most: int) -> None:
    left = trimmed(value, most)

    assert len(render(left)) <= most
    assert render(trimmed(value, most)) == render(left)


@given(VALUES)
def test_what_fits_is_the_same_object(value: Any) -> None:
    assert trimmed(value, len(render(value))) is value


@pytest.mark.req("EXEC-02")
def test_a_long_list_keeps_its_first_items_whole_and_says_how_many_more_there_are() -> None:
    rows = [{"id": number, "name": f"customer {number}"} for number in range(1000)]

    left = trimmed(rows, 1000)

    assert left[:20] == rows[:20]
    assert left[-1] == f"… {1000 - len(left) + 1:,} more of 1,000 items"
    assert len(render(left)) > 900


def test_a_list_of_long_items_shows_several_of_them() -> None:
    left = trimmed([{"id": number, "text": "x" * 10_000} for number in range(100)], 4000)

    assert [item["id"] for item in left[:5]] == [0, 1, 2, 3, 4]
    assert left[0]["text"].endswith("… [10,000 characters in all]")


@pytest.mark.req("EXEC-02")
def test_an_object_keeps_its_keys_and_what_is_small_in_it() -> None:
    page = {"total": 5000, "next": "/customers?page=2", "items": [{"id": n} for n in range(5000)], "note": "n" * 5000}

    left = trimmed(page, 2000)

    assert list(left) == ["total", "next", "items", "note"]
    assert (left["total"], left["next"]) == (5000, "/customers?page=2")
    assert left["items"][:50] == page["items"][:50]  # type: ignore[index]
    assert left["note"].startswith("n" * 700)


def test_an_object_of_too_many_keys_keeps_the_first_and_says_how_many_more_there_are() -> None:
    left = trimmed({f"key {number}": number for number in range(1000)} | {"…": 1}, 500)

    assert left["key 0"] == 0
    assert left["……"] == f"{1001 - len(left) + 1:,} more of 1,001 keys"


@pytest.mark.parametrize("value", [10**4000, [10**4000], ["x" * 100], {"x" * 100: 1}, {"a": {"b": "c" * 100}}])
@pytest.mark.parametrize("most", [2, 3, 10, 30])
def test_even_little_room_holds_something(value: Any, most: int) -> None:
    assert len(render(trimmed(value, most))) <= most


def test_what_is_nested_very_deep_is_left_out() -> None:
    value: Any = "x" * 5000
    for _ in range(100):
        value = {"a": value}

    left = trimmed(value, 4000)

    assert b"keys left out" in render(left)


def test_ten_megabytes_are_trimmed_in_a_moment() -> None:
    rows = {"rows": [{"id": number, "tags": ["a", "b"], "text": "x" * 80} for number in range(90_000)]}
    start = time.process_time()

    left = trimmed(rows, 32_000)

    assert 30_000 < len(render(left)) <= 32_000
    assert time.process_time() - start < 2


@given(st.text(), st.integers(0, 300))
def test_a_text_is_never_larger_than_asked(text: str, most: int) -> None:
    left = trimmed_text(text * 5, most)

    assert len(left.encode(errors="surrogatepass")) <= most


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = "begin " + "é" * 10_000 + " end"

    left = trimmed_text(text, 1000)

    assert left.startswith("begin éé")
    assert left.endswith("é end")
    assert "20,010 bytes in all" in left
    assert trimmed_text("short", 1000) == "short"
