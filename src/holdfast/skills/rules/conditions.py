"""Conditions on the arguments of a call. Pure.

A condition compares the values at a path. An argument that is missing or null meets no condition except `is missing`.
A value that cannot be compared, such as text with `> 100` or a path that leads into text, counts against the call: it
meets the condition of a `deny` rule and not that of an `allow` rule. If the path has a `*`, one value is enough for a
`deny` rule, and an `allow` rule needs all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import ge, gt, le, lt
from typing import Any, Literal, cast, get_args

from jsonschema_rs import RegexOptions, validator_for

from holdfast.core.errors import InvalidInput
from holdfast.skills.rules.patterns import NamePattern

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "like", "matches", "is"]
Value = str | int | float | bool | None
Check = Callable[[Mapping[str, Any]], bool]  # of arguments
Test = Callable[[Any], bool | None]  # of one value; None: it cannot be compared

OPERATORS: tuple[Operator, ...] = get_args(Operator)
MISSING, GIVEN = "missing", "given"
MAX_REGEX = 500  # characters
MAX_REGEX_BYTES = 256 * 1024  # of a compiled expression
MAX_STEPS = 16  # in a path
MAX_VALUES = 10_000  # at a path

_MISSING = object()
_OPAQUE = object()  # what the path leads into is no object or list, though a back end may read it as one
_COMPARISONS: Mapping[str, Callable[[int | float, int | float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class ArgumentCondition:
    """A condition on the values at a path of the arguments. `*` in a path is each element of a list or object."""

    path: tuple[str, ...]
    operator: Operator
    values: tuple[Value, ...]
    negated: bool = False
    text: str = ""

    def check(self, *, strict: bool) -> Check:
        """Return a function that says whether arguments meet it. `strict`: the rule allows, so that all values must."""
        meets = _meets_of(self.operator, self.values, negated=self.negated, doubt=not strict)
        if len(self.path) == 1 and self.path[0] != "*":
            name = self.path[0]
            return lambda arguments: meets(arguments.get(name, _MISSING))
        path, every = self.path, all if strict else any

        def check(arguments: Mapping[str, Any]) -> bool:
            found = list(islice(_values_at(arguments, path), MAX_VALUES + 1))
            if len(found) > MAX_VALUES:  # too many to look at: they count against the call
                return not strict
            return every(map(meets, found)) if found else meets(_MISSING)

        return check


def check_regex(text: str) -> None:
    """Raise InvalidInput if an expression is too long, too large, or not one that is matched in linear time."""
    if len(text) > MAX_REGEX:
        raise InvalidInput(f"an expression has at most {MAX_REGEX} characters", why=f"this one has {len(text)}")
    try:
        _regex(text)
    except ValueError:
        raise InvalidInput(
            "the regular expression is invalid or too large",
            why="expressions are matched in linear time, without look-ahead and back references",
        ) from None


def _regex(text: str) -> Callable[[Any], bool]:
    """Compile an expression. The engine takes linear time, so that no text can keep the server busy."""
    options = RegexOptions(size_limit=MAX_REGEX_BYTES)
    return validator_for({"type": "string", "pattern": text}, pattern_options=options).is_valid


def _meets_of(operator: Operator, values: tuple[Value, ...], *, negated: bool, doubt: bool) -> Callable[[Any], bool]:
    """Return a function that says whether a value meets a condition; `doubt` if it cannot be compared."""
    if operator == "is":
        missing = values[0] == MISSING
        return lambda value: doubt if value is _OPAQUE else (value is _MISSING or value is None) == missing
    if operator in _COMPARISONS:
        compare, limit = _COMPARISONS[operator], cast(int | float, values[0])

        def in_order(value: Any) -> bool:
            if type(value) is int or type(value) is float:
                return compare(value, limit)
            return doubt and value is not None and value is not _MISSING

        return in_order
    test = _test_of(operator, values)
    null_meets = operator in ("=", "in") and None in values and not negated

    def meets(value: Any) -> bool:
        if value is None or value is _MISSING:
            return null_meets and value is None
        if value is _OPAQUE:
            return doubt
        met = test(value)
        return doubt if met is None else met is not negated

    return meets


def _test_of(operator: Operator, values: tuple[Value, ...]) -> Test:
    first = values[0]
    match operator:
        case "=" | "in":
            return lambda value: None if isinstance(value, list | dict) else any(_equal(value, each) for each in values)
        case "!=":
            return lambda value: None if isinstance(value, list | dict) else not _equal(value, first)
        case "like":
            pattern = NamePattern.parse(str(first))
            return lambda value: pattern.matches(value) if isinstance(value, str) else None
        case _:
            is_valid = _regex(str(first))
            return lambda value: _matches(is_valid, value) if isinstance(value, str) else None


def _matches(is_valid: Callable[[Any], bool], value: str) -> bool | None:
    try:
        return is_valid(value)
    except UnicodeEncodeError:  # a lone surrogate
        return None


def _equal(value: Any, other: Value) -> bool:
    """Whether two JSON values are equal: true is not 1, and 1.0 is 1."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _values_at(value: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path, and for each place without a value, that it is missing or cannot be looked into."""
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        if step == "*":
            for each in fields.values():
                yield from _values_at(each, rest)
        else:
            yield from _values_at(fields[step], rest) if step in fields else (_MISSING,)
    elif isinstance(value, list):
        items = cast(list[Any], value)
        if step == "*":
            for each in items:
                yield from _values_at(each, rest)
        elif step.isascii() and step.isdigit() and len(step) < 8 and int(step) < len(items):
            yield from _values_at(items[int(step)], rest)
        else:
            yield _MISSING if step.isdigit() else _OPAQUE
    else:
        yield _MISSING if value is None else _OPAQUE
