"""Keywords of JSON Schema 2020-12: their valid values, and which of them hold schemas.

Descriptions of APIs contain values that no validator accepts (`required: true`, `maxLength: "5"`, patterns of another
language). A keyword with an invalid value is left out.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import jsonschema_rs

TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
# Words that documents use as types, and the types that they mean; "" is any type.
MEANT = {
    "any": "", "bool": "boolean", "byte": "string", "date": "string", "datetime": "string", "dict": "object",
    "double": "number", "enum": "string", "file": "string", "float": "number", "int": "integer", "int32": "integer",
    "int64": "integer", "list": "array", "long": "integer", "str": "string", "text": "string", "uuid": "string",
}  # fmt: skip

_PYTHON: dict[str, Any] = {
    "null": type(None), "boolean": bool, "object": dict, "array": list, "number": (int, float), "string": str,
    "integer": int,
}  # fmt: skip

MAPS = ("properties", "patternProperties", "dependentSchemas")
LISTS = ("allOf", "anyOf", "prefixItems")
SINGLES = (
    "items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else", "unevaluatedItems",
    "unevaluatedProperties",
)  # fmt: skip
HOLDERS = frozenset((*MAPS, *LISTS, *SINGLES))
# Keywords in which a looser schema makes the outer one tighter.
FRAGILE = frozenset({"not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "maxContains"})

MAX_DESCRIPTION = 1000  # characters
MAX_EXAMPLE = 80
# Limits the backtracking and the size of a document's patterns, so that none takes unbounded time.
_REGEX = jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000, size_limit=1024 * 1024)


def subschemas(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the schemas directly inside a schema."""
    for keyword, value in schema.items():
        if keyword not in HOLDERS:
            continue
        if keyword in MAPS:
            yield from value.values()
        elif keyword in LISTS:
            yield from value
        else:
            yield value


def number(value: Any) -> Any:
    """Return a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None


def count(value: Any) -> int | None:
    """Return a whole number of at least zero, or None."""
    found = number(value)
    return int(found) if found is not None and found >= 0 and found == int(found) else None


def step(value: Any) -> Any:
    """Return a number above zero, or None."""
    found = number(value)
    return found if found is not None and found > 0 else None


def text(value: Any) -> str | None:
    """Return a text, or None."""
    return value if isinstance(value, str) else None


def flag(value: Any) -> bool | None:
    """Return True, or None for other values, as false is the default."""
    return True if value is True else None


@functools.lru_cache(maxsize=10_000)
def is_pattern(pattern: str) -> bool:
    """Whether the validator accepts a pattern."""
    try:
        compile_schema({"pattern": pattern})
    except ValueError:
        return False
    return True


def pattern(value: Any) -> str | None:
    """Return a pattern that the validator accepts, or None."""
    return value if isinstance(value, str) and is_pattern(value) else None


def short(value: str, limit: int) -> str:
    """Shorten a text to at most `limit` characters, at a word."""
    if len(value) <= limit:
        return value
    cut = value[: limit - 1]
    return f"{cut.rsplit(None, 1)[0] if len(cut.split(None, 1)) > 1 else cut}…"


def description_of(value: Any) -> str | None:
    """Return a description, shortened, or None."""
    found = value.strip() if isinstance(value, str) else ""
    return short(found, MAX_DESCRIPTION) or None


def names(value: Any) -> list[str] | None:
    """Return names without duplicates, or None."""
    if not isinstance(value, list):
        return None
    found = cast(list[Any], value)
    return list(dict.fromkeys(found)) if found and all(isinstance(name, str) for name in found) else None


def values(value: Any) -> list[Any] | None:
    """Return the values of an enum, or None."""
    return cast(list[Any], value) if isinstance(value, list) and value else None


def is_of(value: Any, types: Any) -> bool:
    """Whether a value has a type, or one of several."""
    if isinstance(types, list):
        return any(is_of(value, kind) for kind in cast(list[str], types))
    if isinstance(value, bool):
        return types == "boolean"
    if isinstance(value, float) and value.is_integer() and types == "integer":
        return True
    return isinstance(value, _PYTHON[types])


def compile_schema(schema: dict[str, Any] | bool) -> jsonschema_rs.Draft202012Validator:
    """Return a validator. Raise ValueError with the reason if the schema is invalid."""
    try:
        return jsonschema_rs.Draft202012Validator(schema, pattern_options=_REGEX, offline=True)
    except jsonschema_rs.ReferencingError as error:
        raise ValueError(str(error)) from None


# Convert the values of keywords that hold no schema; None: the keyword is left out.
PLAIN: dict[str, Callable[[Any], Any]] = {
    "description": description_of,
    "format": text,
    "multipleOf": step,
    "maximum": number,
    "minimum": number,
    "exclusiveMaximum": number,
    "exclusiveMinimum": number,
    "maxLength": count,
    "minLength": count,
    "pattern": pattern,
    "maxItems": count,
    "minItems": count,
    "uniqueItems": flag,
    "maxContains": count,
    "minContains": count,
    "maxProperties": count,
    "minProperties": count,
    "required": names,
    "enum": values,
    "deprecated": flag,
    "contentEncoding": text,
    "contentMediaType": text,
}
