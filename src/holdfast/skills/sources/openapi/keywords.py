"""Keywords of JSON Schema 2020-12: what may stand under each, and which of them hold schemas.

Descriptions of APIs say things that no validator takes (`required: true`, `maxLength: "5"`, patterns of another
language). A keyword whose value is none of its own says nothing, and is left out.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import jsonschema_rs

TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
# What is written where a type is meant, and what is meant; "" is any.
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
# Where a looser schema inside makes a tighter one outside.
FRAGILE = frozenset({"not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "maxContains"})

MAX_DESCRIPTION = 1000  # characters
MAX_EXAMPLE = 80
# What a document says can keep nobody busy: patterns look ahead within limits, or not at all.
_REGEX = jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000, size_limit=1024 * 1024)


def subschemas(schema: dict[str, Any]) -> Iterator[Any]:
    """The schemas right inside of a schema."""
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
    """A number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None


def count(value: Any) -> int | None:
    """A number of things, or None."""
    found = number(value)
    return int(found) if found is not None and found >= 0 and found == int(found) else None


def step(value: Any) -> Any:
    """A number above zero, or None."""
    found = number(value)
    return found if found is not None and found > 0 else None


def text(value: Any) -> str | None:
    """A text, or None."""
    return value if isinstance(value, str) else None


def flag(value: Any) -> bool | None:
    """True; what is false goes without saying."""
    return True if value is True else None


@functools.lru_cache(maxsize=10_000)
def is_pattern(pattern: str) -> bool:
    """Whether our validator can look for it."""
    try:
        compiled({"pattern": pattern})
    except ValueError:
        return False
    return True


def pattern(value: Any) -> str | None:
    """A pattern that can be looked for, or None."""
    return value if isinstance(value, str) and is_pattern(value) else None


def short(value: str, limit: int) -> str:
    """A text of at most so many characters, cut at a word."""
    if len(value) <= limit:
        return value
    cut = value[: limit - 1]
    return f"{cut.rsplit(None, 1)[0] if len(cut.split(None, 1)) > 1 else cut}…"


def described(value: Any) -> str | None:
    """A description, or None."""
    found = value.strip() if isinstance(value, str) else ""
    return short(found, MAX_DESCRIPTION) or None


def names(value: Any) -> list[str] | None:
    """Names, each once, or None."""
    if not isinstance(value, list):
        return None
    found = cast(list[Any], value)
    return list(dict.fromkeys(found)) if found and all(isinstance(name, str) for name in found) else None


def values(value: Any) -> list[Any] | None:
    """Values of which one is meant, or None."""
    return cast(list[Any], value) if isinstance(value, list) and value else None


def is_of(value: Any, types: Any) -> bool:
    """Whether a value is of a type, or of one of several."""
    if isinstance(types, list):
        return any(is_of(value, kind) for kind in cast(list[str], types))
    if isinstance(value, bool):
        return types == "boolean"
    if isinstance(value, float) and value.is_integer() and types == "integer":
        return True
    return isinstance(value, _PYTHON[types])


def compiled(schema: dict[str, Any] | bool) -> jsonschema_rs.Draft202012Validator:
    """A validator, or ValueError that says why the schema is none."""
    try:
        return jsonschema_rs.Draft202012Validator(schema, pattern_options=_REGEX, offline=True)
    except jsonschema_rs.ReferencingError as error:
        raise ValueError(str(error)) from None


# What a keyword that holds no schema becomes; None: it says nothing.
PLAIN: dict[str, Callable[[Any], Any]] = {
    "description": described,
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
