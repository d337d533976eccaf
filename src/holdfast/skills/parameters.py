"""Converts the JSON Schema of a tool's arguments to rows of tool_param_t, and back. Pure.

The columns of a row hold what they can express of an argument, and `validation_schema` the rest. `rest` holds what the
schema says outside of its properties. `schema_of(*parameters_of(schema))` returns the schema again, normalized by
`normalize`:

    the root has the type object, and `properties`, even if empty
    properties whose names are too long for a row come last, by name
    `required` is in the order of the properties, without duplicates, and is left out if empty
    NUL and lone surrogates, which PostgreSQL cannot store, are replaced
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from holdfast.core.errors import InvalidInput
from holdfast.core.text import MAX_JSON_DEPTH

ParameterType = Literal["string", "number", "boolean", "object", "array", "any"]
Schema = Mapping[str, Any]

LONGEST_NAME = 255  # of a row; an argument with a longer name is in `rest`

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_INSTEAD = "\ufffd"
_TYPES: dict[str, ParameterType] = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "object": "object",
    "array": "array",
}


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """A row of tool_param_t.

    `validation_schema` holds a default of null, and a `type` that takes precedence over `param_type`.
    """

    name: str
    param_type: ParameterType = "any"
    required: bool = True
    default_value: Any = None
    description: str | None = None
    validation_schema: dict[str, Any] | bool | None = None
    order_index: int = 0


def parameters_of(schema: Schema | bool) -> tuple[list[ParameterRow], dict[str, Any]]:
    """Split a schema into rows and the rest. Raise InvalidInput if it is not a schema of arguments."""
    whole = normalize(schema)
    del whole["type"]
    properties = cast(dict[str, Any], whole.pop("properties"))
    required = cast(list[str], whole.pop("required", []))
    in_rows = {name: each for name, each in properties.items() if len(name) <= LONGEST_NAME}
    rows = [
        _row(name, each, required=name in required, order_index=index)
        for index, (name, each) in enumerate(in_rows.items())
    ]
    if in_rest := {name: each for name, each in properties.items() if name not in in_rows}:
        whole["properties"] = in_rest
    if required_in_rest := [name for name in required if name not in in_rows]:
        whole["required"] = required_in_rest
    return rows, whole


def schema_of(rows: Iterable[ParameterRow], rest: Schema) -> dict[str, Any]:
    """Return the schema of rows and the rest."""
    ordered = sorted(rows, key=lambda row: (row.order_index, row.name))
    properties = {row.name: _property(row) for row in ordered} | dict(rest.get("properties", {}))
    required = list(dict.fromkeys([row.name for row in ordered if row.required] + list(rest.get("required", ()))))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema | {key: value for key, value in rest.items() if key not in schema and key != "required"}


def normalize(schema: Schema | bool) -> dict[str, Any]:
    """Return a schema of arguments in its stored form. Raise InvalidInput if it is not one."""
    if schema is True:
        schema = {}
    if not isinstance(schema, Mapping):
        raise _schema_error("it is not an object", "Pass the JSON Schema of an object, such as {}.")
    clean = storable(schema)
    types = clean.pop("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        raise _schema_error(f"its type is {types!r:.80}", 'Use "type": "object"; arguments are passed by name.')
    properties = clean.pop("properties", {})
    if not isinstance(properties, dict):
        raise _schema_error("its `properties` is not an object", "Map each name to a schema.")
    for name, each in cast(dict[str, Any], properties).items():
        if not isinstance(each, dict | bool):
            raise _schema_error(f"`properties.{name:.80}` is not a schema", "Use an object or true.")
    required = clean.pop("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in cast(list[Any], required)):
        raise _schema_error("its `required` is not a list of names", "Use a list of names.")
    properties = dict(sorted(cast(dict[str, Any], properties).items(), key=_long_names_last))
    names = _in_order(cast(list[str], required), properties)
    result: dict[str, Any] = {"type": "object", "properties": properties}
    return result | ({"required": names} if names else {}) | clean


def storable(schema: Schema) -> dict[str, Any]:
    """Return a schema that jsonb can hold: NUL and lone surrogates are replaced by U+FFFD."""
    return cast(dict[str, Any], _clean(schema, 0))


def _row(name: str, schema: dict[str, Any] | bool, *, required: bool, order_index: int) -> ParameterRow:
    if isinstance(schema, bool):
        return ParameterRow(name, "any", required, None, None, schema, order_index)
    rest = dict(schema)
    param_type = _type(rest.get("type"))
    if param_type != "any" and rest["type"] == param_type:
        del rest["type"]
    default = rest["default"] if rest.get("default") is not None else None
    description = rest["description"] if isinstance(rest.get("description"), str) else None
    if default is not None:
        del rest["default"]
    if description is not None:
        del rest["description"]
    return ParameterRow(name, param_type, required, default, description, rest or None, order_index)


def _property(row: ParameterRow) -> dict[str, Any] | bool:
    rest = row.validation_schema
    if isinstance(rest, bool):
        plain = (row.param_type, row.default_value, row.description) == ("any", None, None)
        if plain or not rest:
            return rest
        rest = {}
    schema: dict[str, Any] = {} if row.param_type == "any" else {"type": row.param_type}
    if row.description is not None:
        schema["description"] = row.description
    if row.default_value is not None:
        schema["default"] = row.default_value
    return schema | (rest or {})


def _type(value: object) -> ParameterType:
    """Return the column's type for the type, or list of types, of a schema."""
    if isinstance(value, list):
        others: set[ParameterType] = {_type(each) for each in cast(list[object], value) if each != "null"}
        return others.pop() if len(others) == 1 else "any"
    return _TYPES.get(value, "any") if isinstance(value, str) else "any"


def _long_names_last(item: tuple[str, Any]) -> str:
    return item[0] if len(item[0]) > LONGEST_NAME else ""


def _in_order(required: Sequence[str], properties: Mapping[str, Any]) -> list[str]:
    required_names = set(required)
    return [name for name in properties if name in required_names] + [
        name for name in dict.fromkeys(required) if name not in properties
    ]


def _clean(value: Any, depth: int) -> Any:
    if depth > MAX_JSON_DEPTH:
        raise _schema_error(f"it has more than {MAX_JSON_DEPTH} levels", "Move repeated parts to `$defs`.")
    if isinstance(value, str):
        return _UNSTORABLE.sub(_INSTEAD, value)
    if isinstance(value, Mapping):
        items = cast(Mapping[str, Any], value).items()
        return {_UNSTORABLE.sub(_INSTEAD, str(key)): _clean(each, depth + 1) for key, each in items}
    if isinstance(value, list | tuple):
        return [_clean(each, depth + 1) for each in cast(Sequence[Any], value)]
    return value


def _schema_error(why: str, next: str) -> InvalidInput:
    return InvalidInput("the schema of the tool's arguments is invalid", why=why, next=next)
