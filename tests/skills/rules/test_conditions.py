"""Conditions on arguments: which values meet them, in rules that deny and in rules that allow."""

from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.skills.rules.grammar import parse_rules
from holdfast.skills.rules.patterns import NamePattern

pytestmark = pytest.mark.req("MCP-07")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def met(condition: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
    """Whether arguments meet a condition of a `deny` rule, and of an `allow` rule."""
    deny, allow = parse_rules(f"a: deny when {condition}\nb: allow when {condition}").rules
    return deny.is_met(arguments, 0), allow.is_met(arguments, 0)


@pytest.mark.parametrize(
    ("condition", "arguments", "expected"),
    [
        ("amount > 100", {"amount": 101}, True),
        ("amount > 100", {"amount": 100}, False),
        ("amount >= 100", {"amount": 100.0}, True),
        ("amount < -1.5", {"amount": -2}, True),
        ("amount <= 1e3", {"amount": 10**400}, False),
        ("amount > 100", {}, False),
        ("amount > 100", {"amount": None}, False),
        ('currency = "EUR"', {"currency": "EUR"}, True),
        ('currency = "EUR"', {"currency": "eur"}, False),
        ('currency = "EUR"', {"currency": "\uff25\uff35\uff32"}, False),
        ('currency != "EUR"', {"currency": "USD"}, True),
        ('currency != "EUR"', {}, False),
        ("count = 1", {"count": True}, False),
        ("count = 1", {"count": 1.0}, True),
        ("force = true", {"force": 1}, False),
        ("force = true", {"force": True}, True),
        ("note = null", {"note": None}, True),
        ("note = null", {}, False),
        ("note is missing", {}, True),
        ("note is missing", {"note": None}, True),
        ("note is missing", {"note": ""}, False),
        ("note is given", {"note": ""}, True),
        ("note is given", {}, False),
        ('country in "DE", "FR"', {"country": "FR"}, True),
        ('country not in "DE", "FR"', {"country": "FR"}, False),
        ('country not in "DE", "FR"', {"country": "US"}, True),
        ('country not in "DE", "FR"', {}, False),
        ('path like "/etc/*"', {"path": "/etc/passwd"}, True),
        ('path like "/etc/*"', {"path": "/ETC/passwd"}, False),
        ('path not like "/tmp/*"', {"path": "/etc/passwd"}, True),
        ('path like "a\\\\*b"', {"path": "a*b"}, True),
        ('path like "a\\\\*b"', {"path": "axb"}, False),
        ('path matches "^/etc/"', {"path": "/etc/passwd"}, True),
        ('path matches "(?i)^/etc/"', {"path": "/ETC/passwd"}, True),
        ('path matches "etc"', {"path": "/x/etc/y"}, True),
        ('path not matches "^[a-z]+$"', {"path": "A"}, True),
        ("customer.age < 18", {"customer": {"age": 17}}, True),
        ("customer.age < 18", {"customer": {}}, False),
        ("customer.age < 18", {"customer": None}, False),
        ("items.0.price > 5", {"items": [{"price": 6}]}, True),
        ("items.1.price > 5", {"items": [{"price": 6}]}, False),
        ('"/items/0/price" > 5', {"items": [{"price": 6}]}, True),
        ('"/a~1b" = 1', {"a/b": 1}, True),
        ('"a.b" = 1', {"a.b": 1, "a": {"b": 2}}, True),
        ("a.b = 2", {"a.b": 1, "a": {"b": 2}}, True),
        ("a = 1 and b = 2", {"a": 1, "b": 2}, True),
        ("a = 1 and b = 2", {"a": 1, "b": 3}, False),
    ],
)
def test_a_condition_is_met_by_these_arguments(condition: str, arguments: dict[str, Any], expected: bool) -> None:
    assert met(condition, arguments) == (expected, expected)


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("a > 100", "150"),
        ("a > 100", True),
        ("a < 100", [1]),
        ("a.b > 1", '{"b": 2}'),
        ("a.b > 1", [{"b": 2}]),
        ("a.b is missing", "x"),
        ("a.b is given", "x"),
        ("a.b not in 1, 2", 5),
        ("a.* > 1", "x"),
        ('a = "x"', ["x"]),
        ('a != "x"', ["x"]),
        ('a in "x", "y"', {"0": "x"}),
        ('a like "x*"', 5),
        ('a like "x*"', ["x"]),
        ('a not like "x*"', {"x": 1}),
        ('a matches "x"', ["x"]),
        ('a matches "x"', "\ud800"),
    ],
)
def test_what_cannot_be_compared_counts_against_the_call(condition: str, value: Any) -> None:
    assert met(condition, {"a": value}) == (True, False)


@pytest.mark.parametrize(
    ("items", "denies", "allows"),
    [
        ([1, 200], True, False),
        ([200, 300], True, True),
        ([1, 2], False, False),
        ([], False, False),
        ([200, None], True, False),
    ],
)
def test_one_of_several_values_is_enough_to_deny_and_all_are_needed_to_allow(
    items: list[Any], denies: bool, allows: bool
) -> None:
    assert met("items.* > 100", {"items": items}) == (denies, allows)


def test_too_many_values_to_look_at_count_against_the_call() -> None:
    assert met("items.* > 100", {"items": [1] * 10_001}) == (True, False)


@given(json_values)
def test_every_value_is_decided_about_and_what_allows_is_stricter_than_what_denies(value: Any) -> None:
    for condition in ("a > 1", 'a = "x"', 'a not in "x", 1', 'a like "*x"', 'a matches "x"', "a is given", "a.*.b < 2"):
        denies, allows = met(condition, {"a": value})
        assert denies or not allows


@given(st.text(alphabet="ab*", max_size=12), st.text(alphabet="ab", max_size=12))
def test_a_pattern_matches_what_the_same_regular_expression_matches(pattern: str, value: str) -> None:
    import re

    assert NamePattern.parse(pattern).matches(value) == bool(re.fullmatch(pattern.replace("*", ".*"), value))


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ('a matches "^(a+)+$"', "a" * 100_000 + "!"),
        ('a matches "(a|aa)+$"', "a" * 100_000 + "!"),
        ('a matches "(.*)*x(.*)*y(.*)*z"', "x" * 100_000),
        ('a like "*a*a*a*a*a*a*a*a*a*a*b"', "a" * 100_000),
    ],
)
def test_no_expression_and_no_pattern_keeps_the_server_busy(condition: str, value: str) -> None:
    rule = parse_rules(f"a: deny when {condition}").rules[0]

    began = perf_counter()
    rule.is_met({"a": value}, 0)

    assert perf_counter() - began < 1.0
