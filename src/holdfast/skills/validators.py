"""Validators: compiled JSON Schemas of arguments, cached. Pure.

Nothing is fetched: a `$ref` to another document is an error. Patterns are matched in linear time. Patterns that need
more, such as look-ahead, have a limited number of steps.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast
from urllib.parse import quote, unquote

import jsonschema_rs
from jsonschema_rs import FancyRegexOptions, RegexOptions, Registry, Validator

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.json_limits import check_work, decode
from holdfast.core.text import render

Schema = Mapping[str, Any] | bool

MAX_SCHEMA_VALUES = 10_000  # compiling takes up to 10 µs for each
MAX_CACHED = 500  # cached checkers; a large one takes half a megabyte
MAX_DEFAULTS_DEPTH = 8  # levels of nested objects that get defaults
MAX_COMBINATIONS = 10_000  # paths on which one value is checked

_PATTERN_BYTES = 1024 * 1024
_BACKTRACKS = 100_000
_LOCAL = re.compile(r"#(?:/|\Z)")
_CHAIN = 16  # references in a row
_ROOT = "holdfast:schema"
_DRAFTS = ("http://json-schema.org/", "https://json-schema.org/")
# Documents use these formats although back ends accept other values. Models see them, but they are not checked.
_ANNOTATIONS = (
    "duration", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer",
    "regex", "relative-json-pointer", "time", "uri-reference", "uri-template",
)  # fmt: skip


def _any(_: str) -> bool:
    return True


_FORMATS: dict[str, Callable[[str], bool]] = dict.fromkeys(_ANNOTATIONS, _any)

# Keywords that can allow arguments which `properties` does not name.
_OPENING = frozenset({
    "$dynamicRef", "$ref", "additionalProperties", "allOf", "anyOf", "dependentSchemas", "if", "oneOf",
    "patternProperties", "propertyNames", "unevaluatedProperties",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Defaults:
    """The defaults of an object, and of the objects in it."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    inside: "dict[str, Defaults]" = field(default_factory=dict[str, "Defaults"])

    def fill(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the given values, and defaults for missing ones. `given` is not modified."""
        if not self.values and not self.inside:
            return given
        whole = dict(given)
        for name, inner in self.inside.items():
            if isinstance(within := whole.get(name), dict):
                whole[name] = inner.fill(cast(dict[str, Any], within))
        for name, value in self.values.items():
            if name not in whole:
                whole[name] = deepcopy(value)
        return whole


@dataclass(frozen=True, slots=True)
class Checker:
    """A compiled schema. Its parts are compiled one by one, on demand."""

    schema: Schema
    validator: Validator
    defaults: Defaults
    options: Mapping[str, Any]

    def parts(self) -> "SchemaParts":
        """Return the parts of the schema."""
        return SchemaParts(self.schema, self.options)


class SchemaParts:
    """The parts of a schema, by JSON pointer."""

    def __init__(self, schema: Schema, options: Mapping[str, Any]) -> None:
        self._schema = schema
        self._options = options
        self._registry = Registry([(_ROOT, cast(Any, schema))])
        self._validators: dict[str, Validator] = {}
        self._found: dict[str, Any] = {}

    def fits(self, pointer: str, value: Any) -> bool:
        """Whether a value matches the part at a pointer."""
        if pointer not in self._validators:
            part = {"$ref": f"{_ROOT}#{quote(pointer, safe='/~')}"}
            self._validators[pointer] = jsonschema_rs.validator_for(part, registry=self._registry, **self._options)
        return self._validators[pointer].is_valid(value)

    def at(self, pointer: str) -> Any:
        """Return the part at a pointer."""
        if pointer not in self._found:
            self._found[pointer] = resolve(self._schema, pointer)
        return self._found[pointer]

    def target(self, pointer: str) -> str:
        """Return the pointer to which the `$ref` of a part leads; the same pointer without a local reference."""
        for _ in range(_CHAIN):
            part = self.at(pointer)
            reference = cast(Mapping[str, Any], part).get("$ref") if isinstance(part, Mapping) else None
            if (
                not isinstance(reference, str)
                or not reference.startswith(("#/", "#"))
                or reference[1:2] not in ("", "/")
            ):
                break
            pointer = unquote(reference[1:])
        return pointer

    def errors(self, part: Mapping[str, Any], value: Any) -> Iterator[jsonschema_rs.ValidationError]:
        """Return the errors of a value by a part that has no references."""
        draft = (
            {"$schema": self._schema["$schema"]}
            if isinstance(self._schema, Mapping) and "$schema" in self._schema
            else {}
        )
        return jsonschema_rs.validator_for({**draft, **part}, mask="it", **self._options).iter_errors(value)


class _Same:
    """A schema as a cache key, compared by identity, which takes no time."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.schema is other.schema


def checker_of(schema: Schema, *, formats: bool = True) -> Checker:
    """Return the checker of a schema of arguments. Raise InvalidInput with the reason if it is invalid.

    Arguments that the schema does not name are refused, unless it has a keyword for them. `formats`: whether the
    formats date-time, date, uuid, email and uri are checked.
    """
    return _cached_checker(_Same(schema), formats)


@lru_cache(MAX_CACHED)
def _cached_checker(same: _Same, formats: bool) -> Checker:
    return _compile(render(same.schema), formats)


@lru_cache(MAX_CACHED)
def _compile(text: bytes, formats: bool) -> Checker:
    try:
        _refuse_large(text)
        schema = _close(decode(text))
        _refuse_complex(schema)
        checker = _checker(schema, formats)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        why = " ".join(str(error).partition("\n")[0].split())
        next = "Correct the declaration of the tool, or import the tool again."
        raise InvalidInput("the schema of its arguments is invalid", why=f"{why:.300}", next=next) from None
    if b'"default"' not in text:
        return checker
    return replace(checker, defaults=_defaults(checker.parts(), "", 0, {}))


def _checker(schema: Schema, formats: bool) -> Checker:
    linear = RegexOptions(size_limit=_PATTERN_BYTES)
    options: dict[str, Any] = {
        "validate_formats": formats,
        "formats": _FORMATS,
        "offline": True,
        "pattern_options": linear,
    }
    try:
        validator = jsonschema_rs.validator_for(cast(Any, schema), **options)
    except jsonschema_rs.ValidationError:
        limited = FancyRegexOptions(backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_BYTES)
        options["pattern_options"] = limited
        validator = jsonschema_rs.validator_for(cast(Any, schema), **options)
    return Checker(schema, validator, Defaults(), options)


def _close(schema: Any) -> Schema:
    """Drop an unknown `$schema`, and forbid additional properties unless the schema is open on purpose."""
    if not isinstance(schema, dict):
        return bool(schema)
    whole = cast(dict[str, Any], schema)
    if not str(whole.get("$schema", _DRAFTS[0])).startswith(_DRAFTS):
        del whole["$schema"]
    return (
        {**whole, "additionalProperties": False} if whole.get("properties") and not _OPENING & whole.keys() else whole
    )


def _refuse_large(text: bytes) -> None:
    """Refuse a schema that takes long to compile: nothing else runs meanwhile."""
    try:
        check_work(text, most=MAX_SCHEMA_VALUES)
    except TooLarge as error:
        raise ValueError(error.why) from None


def _refuse_complex(schema: Schema) -> None:
    """Refuse a schema that checks one value on too many paths, because each path takes time.

    Paths go through alternatives, conditions and references. Even a few of these multiply.
    """
    ways: dict[int, int] = {}
    for part in _with_parts(schema):
        if _combinations(schema, part, ways) > MAX_COMBINATIONS:
            raise ValueError(f"nested alternatives give more than {MAX_COMBINATIONS} combinations")


def _with_parts(schema: Any) -> Iterator[Any]:
    """Yield a schema and everything in it."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, dict):
            waiting += cast(dict[str, Any], part).values()
        elif isinstance(part, list):
            waiting += cast(list[Any], part)


def _combinations(schema: Schema, part: Any, known: dict[int, int]) -> int:
    """Return the number of paths on which a part of a schema checks a value. A cycle counts once."""
    stack = [part]
    visited = set[int]()
    while stack:
        part = stack[-1]
        if id(part) in known:
            stack.pop()
            continue
        inner = [*_in_place(schema, part)]
        waiting = [each for each in inner if id(each) not in known and id(each) not in visited]
        if waiting and id(part) not in visited:
            visited.add(id(part))
            stack += waiting
        else:
            known[id(part)] = min(1 + sum(known.get(id(each), 1) for each in inner), MAX_COMBINATIONS + 1)
            stack.pop()
    return known[id(part)]


def _in_place(schema: Schema, part: Any) -> Iterator[Any]:
    """Yield the parts that apply to the same value as a part."""
    if not isinstance(part, dict):
        return
    keywords = cast(dict[str, Any], part)
    for key in ("allOf", "anyOf", "oneOf"):
        yield from cast(list[Any], keywords[key]) if isinstance(keywords.get(key), list) else ()
    for key in ("not", "if", "then", "else"):
        if key in keywords:
            yield keywords[key]
    for key in ("dependentSchemas", "dependencies"):
        yield from cast(dict[str, Any], keywords[key]).values() if isinstance(keywords.get(key), dict) else ()
    reference = keywords.get("$ref")
    if isinstance(reference, str) and _LOCAL.match(reference):
        yield resolve(schema, unquote(reference[1:]))


def _defaults(parts: "SchemaParts", pointer: str, depth: int, known: dict[tuple[str, int], Defaults]) -> Defaults:
    """Return the defaults of an object.

    Defaults that do not match their schema are left out, because the caller did not write them. A part to which several
    others refer is visited once per level, because the number of paths to it is not bounded.
    """
    target = parts.target(pointer)
    if (target, depth) in known:
        return known[target, depth]
    found = known[target, depth] = Defaults()
    schema = parts.at(target)
    if depth > MAX_DEFAULTS_DEPTH or not isinstance(schema, Mapping):
        return found
    for name, each in cast(dict[str, Any], cast(Mapping[str, Any], schema).get("properties", {})).items():
        place = below(target, "properties", name)
        for candidate in (each, parts.at(parts.target(place))):
            if name not in found.values and isinstance(candidate, Mapping) and "default" in candidate:
                default = cast(Mapping[str, Any], candidate)["default"]
                if parts.fits(place, default):
                    found.values[name] = default
        inner = _defaults(parts, place, depth + 1, known)
        if inner.values or inner.inside:
            found.inside[name] = inner
    return found


def below(pointer: str, *names: str | int) -> str:
    """Return the pointer to a part further inside."""
    return pointer + "".join("/" + str(name).replace("~", "~0").replace("/", "~1") for name in names)


def resolve(schema: Any, pointer: str) -> Any:
    """Return the part of a schema at a JSON pointer, or None."""
    found = schema
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            items = cast(list[Any], found)
            found = items[int(name)] if name.isdecimal() and int(name) < len(items) else None
        else:
            found = cast(Mapping[str, Any], found).get(name) if isinstance(found, Mapping) else None
    return found
