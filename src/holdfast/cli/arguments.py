"""Parses the arguments of tools on the command line."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from holdfast.core.errors import InvalidInput

MAX_DEPTH = 20  # of schema references

_EXAMPLES = {"array": "'[1, 2]'", "boolean": "true", "integer": "42", "null": "null", "number": "1.5", "object": "'{}'"}
_PYTHON: dict[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}


def arguments_of(schema: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """Parse words like `name=value` into arguments, each by its type in the schema."""
    arguments: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise InvalidInput(f"{word[:80]!r} is not an argument", next="Write it like name=value.")
        if name in arguments:
            raise InvalidInput(f"the argument {name[:80]!r} is given twice", next="Give it once.")
        arguments[name] = value_of(name, schema.get("properties", {}).get(name, {}), schema, text)
    return arguments


def value_of(name: str, schema: Any, root: Mapping[str, Any], text: str) -> Any:
    """Parse the value of an argument: text if the schema takes only text, else JSON. The tool validates it."""
    types = types_of(schema, root)
    if types == {"string"}:
        return text
    try:
        value = _json(text)
    except (ValueError, RecursionError):
        if not types or "string" in types:
            return text
        kinds = " or ".join(sorted(types))
        raise InvalidInput(
            f"the argument {name[:80]!r} cannot be {text[:80]!r}",
            why=f"it is not JSON, and the tool expects {kinds}",
            next=f"Write it like {name[:80]}={_EXAMPLES[min(types)]}.",
        ) from None
    if types and "string" in types and not _is_one_of(value, types):
        return text
    return value


def types_of(schema: Any, root: Mapping[str, Any], depth: int = 0) -> set[str]:
    """Return the JSON types that a schema accepts; an empty set if it names none."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return set()
    fields = cast(dict[str, Any], schema)
    if isinstance(fields.get("$ref"), str):
        return types_of(_resolve_reference(fields["$ref"], root), root, depth + 1)
    if "type" in fields:
        types: list[str] = [fields["type"]] if isinstance(fields["type"], str) else fields["type"]
        return set(types) & _PYTHON.keys()
    values: list[Any] = [fields["const"]] if "const" in fields else fields.get("enum", [])
    if values:
        return {next(name for name, kind in _PYTHON.items() if isinstance(value, kind)) for value in values}
    ways: list[Any] = fields.get("anyOf", fields.get("oneOf", []))
    found = [types_of(way, root, depth + 1) for way in ways]
    return set[str]().union(*found) if all(found) else set()


def whole_of(words: Sequence[str], arguments: str | None) -> dict[str, Any] | None:
    """Return the arguments that are given as one JSON object, or None."""
    if (words and arguments is not None) or ("-" in words and len(words) > 1):
        raise InvalidInput(
            "the arguments are given in several ways", next="Use one: name=value, --arguments, or - for stdin."
        )
    text = sys.stdin.read() if list(words) == ["-"] else arguments
    return json_object("the text of the arguments", text, '{"text": "hello"}')


def json_object(name: str, text: str | None, example: str) -> dict[str, Any] | None:
    """Parse the value of an option as a JSON object."""
    if text is None:
        return None
    try:
        value, why = _json(text), "it is another kind of value"
    except (ValueError, RecursionError) as error:
        value, why = None, str(error)
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} cannot be read as a JSON object", why=why, next=f"Write it like '{example}'.")
    return cast(dict[str, Any], value)


def _json(text: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def _is_one_of(value: Any, types: set[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in types
    return any(isinstance(value, _PYTHON[type]) for type in types)


def _resolve_reference(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        found = cast(dict[str, Any], found).get(name) if isinstance(found, dict) else None
    return found
