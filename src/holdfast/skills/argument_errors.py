"""Explains why arguments do not match a schema, in words that a model can act on. Pure.

A validator quickly tells whether arguments match, but its explanation takes unbounded time for nested alternatives. So
this module walks the schema itself, and only where something is wrong.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, cast

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind as Kinds

from holdfast.core.text import render
from holdfast.skills.validators import Checker, SchemaParts, below

MAX_ERRORS = 5
MAX_SHOWN = 40  # characters of a value that is shown in full
MAX_SCHEMA = 200  # characters of the schema of an argument

# Keywords that this module follows itself, instead of a validator for the value alone.
_APPLIED = frozenset({
    "$anchor", "$defs", "$dynamicRef", "$id", "$ref", "additionalProperties", "allOf", "anyOf", "contains",
    "definitions", "dependencies", "dependentSchemas", "else", "if", "items", "not", "oneOf", "patternProperties",
    "prefixItems", "properties", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_NAMES = {
    "string": "text",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_FORMATS = {
    "date-time": "a date and time with an offset, such as 2026-01-31T09:30:00Z",
    "date": "a date, such as 2026-01-31",
    "uuid": "a UUID",
    "email": "an email address",
    "uri": "an absolute URI, such as https://example.com/",
}

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ArgumentError:
    """One error: a wrong value, a missing argument or an unknown argument.

    `rule` is the violated rule, `shape` describes the value, and `takes` is the schema of the argument.
    """

    kind: Literal["wrong", "missing", "unknown"]
    path: Path
    rule: str = ""
    shape: str = ""
    takes: Any = None
    known: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The path of the argument, such as `items[0].name`."""
        text = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in self.path).removeprefix(".")
        return text if len(text) <= MAX_SHOWN + 20 else f"{text[: MAX_SHOWN + 20]}…"

    def __str__(self) -> str:
        if self.kind == "missing":
            return f"the argument `{self.where}` is missing"
        if self.kind == "unknown":
            return f"the tool has no argument `{self.where}`{self._nearest()}"
        subject = (
            f"the argument `{self.where}` is invalid, it" if self.path else "the arguments are invalid together, they"
        )
        return f"{subject} {self.rule}{f' and is {self.shape}' if self.shape and self.path else ''}"

    def _nearest(self) -> str:
        near = difflib.get_close_matches(str(self.path[-1])[:100], self.known, n=1)
        return f", the closest is `{near[0]:.100}`" if near else ""


def find_errors(checker: Checker, arguments: Mapping[str, Any]) -> tuple[list[ArgumentError], bool]:
    """Return the first errors of arguments that do not match, and whether there are more."""
    found = list[ArgumentError]()
    with suppress(ValueError, RecursionError):  # a schema that cannot be split into parts
        found.extend(islice(_walk(checker.parts(), "", arguments, (), frozenset()), MAX_ERRORS + 1))
    return found[:MAX_ERRORS] or [ArgumentError("wrong", (), "must match the schema")], len(found) > MAX_ERRORS


def shape_of(value: object) -> str:
    """Describe a value; a short one is shown in full."""
    if isinstance(value, list):
        return f"a list of length {len(cast(list[Any], value))}"
    if isinstance(value, dict):
        return f"an object of {len(cast(dict[str, Any], value))}"
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return f"text of {len(value)} characters"
    shown = render(value).decode()
    return shown if len(shown) <= MAX_SHOWN + 2 else f"a number of {len(shown)} digits"


def shorten(schema: Any) -> str:
    """Return a schema on one line, without title, description and examples."""
    if isinstance(schema, Mapping):
        fields = cast(Mapping[str, Any], schema).items()
        schema = {key: value for key, value in fields if key not in ("title", "description", "examples")}
    shown = render(schema).decode()
    return shown if len(shown) <= MAX_SCHEMA else f"{shown[:MAX_SCHEMA]}…"


def _walk(
    parts: SchemaParts, pointer: str, value: Any, path: Path, seen: frozenset[tuple[str, int]]
) -> Iterator[ArgumentError]:
    """Yield the errors of a value by the part of a schema at `pointer`, if it does not match."""
    if (pointer, len(path)) in seen or parts.fits(pointer, value):
        return
    seen |= {(pointer, len(path))}
    schema = parts.at(pointer)
    if not isinstance(schema, Mapping):
        yield ArgumentError("wrong", path, "must be omitted")
        return
    some = False
    for each in _find(parts, pointer, cast(Mapping[str, Any], schema), value, path, seen):
        some = True
        yield each
    if not some:
        yield ArgumentError("wrong", path, f"must match {shorten(cast(Any, schema))}", shape_of(value))


def _find(
    parts: SchemaParts,
    pointer: str,
    schema: Mapping[str, Any],
    value: Any,
    path: Path,
    seen: frozenset[tuple[str, int]],
) -> Iterator[ArgumentError]:
    plain = {key: each for key, each in schema.items() if key not in _APPLIED}
    for error in parts.errors(plain, value):
        yield _to_error(parts, pointer, schema, error, value, path)
    if isinstance(value, dict):
        yield from _in_object(parts, pointer, schema, cast(dict[str, Any], value), path, seen)
    if isinstance(value, list):
        yield from _in_list(parts, pointer, schema, cast(list[Any], value), path, seen)
    if "$ref" in schema:
        target = parts.target(pointer)
        if target != pointer:
            yield from _walk(parts, target, value, path, seen)
    for index in range(len(schema.get("allOf", ()))):
        yield from _walk(parts, below(pointer, "allOf", index), value, path, seen)
    if "if" in schema:
        branch = "then" if parts.fits(below(pointer, "if"), value) else "else"
        if branch in schema:
            yield from _walk(parts, below(pointer, branch), value, path, seen)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            places = [below(pointer, keyword, index) for index in range(len(schema[keyword]))]
            yield from _alternatives(parts, places, value, path, seen, one=keyword == "oneOf")
    if "not" in schema and parts.fits(below(pointer, "not"), value):
        yield ArgumentError("wrong", path, f"must not match {shorten(schema['not'])}", shape_of(cast(object, value)))


def _in_object(
    parts: SchemaParts,
    pointer: str,
    schema: Mapping[str, Any],
    value: dict[str, Any],
    path: Path,
    seen: frozenset[tuple[str, int]],
) -> Iterator[ArgumentError]:
    properties = cast(Mapping[str, Any], schema.get("properties", {}))
    for name in properties:
        if name in value:
            yield from _walk(parts, below(pointer, "properties", name), value[name], (*path, name), seen)
    if "additionalProperties" not in schema:
        return
    patterns = dict.fromkeys(cast(Mapping[str, Any], schema.get("patternProperties", {})), True)
    for name, each in value.items():
        if name in properties or (patterns and _matches(parts, patterns, name)):
            continue
        if schema["additionalProperties"] is False:
            yield ArgumentError("unknown", (*path, name), known=tuple(properties))
        else:
            yield from _walk(parts, below(pointer, "additionalProperties"), each, (*path, name), seen)


def _matches(parts: SchemaParts, patterns: Mapping[str, bool], name: str) -> bool:
    """Whether a name matches one of the patterns."""
    return not any(parts.errors({"patternProperties": patterns, "additionalProperties": False}, {name: None}))


def _in_list(
    parts: SchemaParts,
    pointer: str,
    schema: Mapping[str, Any],
    value: list[Any],
    path: Path,
    seen: frozenset[tuple[str, int]],
) -> Iterator[ArgumentError]:
    keyword = "prefixItems" if "prefixItems" in schema else "items" if isinstance(schema.get("items"), list) else None
    first = 0 if keyword is None else len(schema[keyword])
    for index, each in enumerate(value):
        if keyword is not None and index < first:
            yield from _walk(parts, below(pointer, keyword, index), each, (*path, index), seen)
        elif "items" in schema and keyword != "items":
            yield from _walk(parts, below(pointer, "items"), each, (*path, index), seen)


def _alternatives(
    parts: SchemaParts, places: Sequence[str], value: Any, path: Path, seen: frozenset[tuple[str, int]], *, one: bool
) -> Iterator[ArgumentError]:
    """If no alternative matches, yield the errors by the one that was meant, if that is clear."""
    fitting = sum(parts.fits(place, value) for place in places)
    if fitting:
        if one and fitting > 1:
            yield ArgumentError(
                "wrong", path, f"must match exactly one of {len(places)} alternatives and matches {fitting}"
            )
        return
    schemas = {place: parts.at(parts.target(place)) for place in places}
    meant = [place for place, schema in schemas.items() if _has_type(parts, schema, value)]
    if len(meant) > 1:
        meant = [place for place in meant if _matches_constants(schemas[place], value)] or meant
    if len(meant) == 1:
        yield from _walk(parts, meant[0], value, path, seen)
        return
    types = [each for schema in schemas.values() for each in _types(schema)]
    rule = f"must be {_join_types(types)}" if types and not meant else f"must match one of {len(places)} alternatives"
    yield ArgumentError("wrong", path, rule, shape_of(value), [schemas[place] for place in places])


def _has_type(parts: SchemaParts, schema: Any, value: Any) -> bool:
    """Whether a value has the type of an alternative."""
    fields = _as_mapping(schema)
    return not any(parts.errors({"type": fields["type"]}, value)) if "type" in fields else "properties" in fields


def _matches_constants(schema: Any, value: Any) -> bool:
    """Whether an object selects an alternative by the values of its `const` properties."""
    given = _as_mapping(value)
    properties = {name: _as_mapping(each) for name, each in _as_mapping(_as_mapping(schema).get("properties")).items()}
    constants = [(each["const"], given.get(name)) for name, each in properties.items() if "const" in each]
    return bool(constants) and all(const == actual for const, actual in constants)


def _types(schema: Any) -> list[str]:
    kind = _as_mapping(schema).get("type")
    return [kind] if isinstance(kind, str) else cast(list[str], kind) if isinstance(kind, list) else []


def _as_mapping(schema: Any) -> Mapping[str, Any]:
    """Return a mapping, or an empty one for any other value."""
    return cast(Mapping[str, Any], schema) if isinstance(schema, Mapping) else {}


def _to_error(
    parts: SchemaParts,
    pointer: str,
    schema: Mapping[str, Any],
    error: jsonschema_rs.ValidationError,
    value: Any,
    path: Path,
) -> ArgumentError:
    if isinstance(error.kind, Kinds.Required):
        name = error.kind.property
        place = below(pointer, "properties", name)
        return ArgumentError("missing", (*path, name), takes=parts.at(parts.target(place)))
    takes = schema if isinstance(error.kind, Kinds.Type | Kinds.Pattern) else None
    return ArgumentError("wrong", path, _rule(error), shape_of(value), takes)


def _rule(error: jsonschema_rs.ValidationError) -> str:
    match error.kind:
        case Kinds.Type(types):
            return f"must be {_join_types(types)}"
        case Kinds.Enum(options):
            return f"must be one of {_list_values(options)}"
        case Kinds.Constant(value):
            return f"must be {_list_values([value])}"
        case (
            Kinds.Maximum(limit) | Kinds.Minimum(limit) | Kinds.ExclusiveMaximum(limit) | Kinds.ExclusiveMinimum(limit)
        ):
            return f"must be {_BOUNDS[error.kind.name]} {limit}"
        case Kinds.MultipleOf(number):
            return f"must be a multiple of {number}"
        case Kinds.MaxLength(limit) | Kinds.MaxItems(limit) | Kinds.MaxProperties(limit):
            return f"must have at most {limit} {_COUNTED[error.kind.name][limit != 1]}"
        case Kinds.MinLength(limit) | Kinds.MinItems(limit) | Kinds.MinProperties(limit):
            return f"must have at least {limit} {_COUNTED[error.kind.name][limit != 1]}"
        case Kinds.UniqueItems():
            return "must not have duplicate items"
        case Kinds.Pattern(pattern):
            return f"must match the pattern {pattern:.100}"
        case Kinds.Format(format):
            return f"must be {_FORMATS.get(format, f'a valid {format:.40}')}"
        case _:
            return " ".join(error.message.split())[:100].replace("it ", "", 1)


_BOUNDS = {
    "maximum": "at most",
    "minimum": "at least",
    "exclusiveMaximum": "less than",
    "exclusiveMinimum": "more than",
}
_COUNTED = {
    "maxLength": ("character", "characters"),
    "minLength": ("character", "characters"),
    "maxItems": ("item", "items"),
    "minItems": ("item", "items"),
    "maxProperties": ("property", "properties"),
    "minProperties": ("property", "properties"),
}


def _join_types(types: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(_NAMES.get(each, each) for each in sorted(types, key="null".__eq__)))


def _list_values(values: Sequence[Any]) -> str:
    text = ", ".join(render(each).decode() for each in values[:50])
    return text if len(text) <= MAX_SCHEMA and len(values) <= 50 else f"{text[:MAX_SCHEMA]}…"
