"""Describes the arguments of operations by JSON Schema, with definitions of input types and enums.

What may be null in GraphQL may be null here: null can mean something else than no value.
"""

import re
from typing import Any

from holdfast.skills.sources.graphql.schema import Argument, GraphqlSchema, named
from holdfast.skills.sources.openapi.references import References, UnusablePart
from holdfast.skills.sources.openapi.schemas import Schemas

REFERENCE = "#/components/schemas/"
MAX_DEFAULT = 200  # characters
MAX_DEPTH = 8  # lists in lists

BUILT_IN: dict[str, dict[str, Any]] = {
    "Boolean": {"type": "boolean"},
    "Float": {"type": "number"},
    "ID": {"type": "string"},
    "Int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "String": {"type": "string"},
}
_TEXT: dict[str, Any] = {"type": "string"}
# Scalars of services that mean the same everywhere: their schemas, and their names in lower case without `_`.
_KNOWN: tuple[tuple[dict[str, Any], str], ...] = (
    ({"type": "string", "format": "date-time"}, "datetime iso8601datetime datetimeiso timestamptz"),
    ({"type": "string", "format": "date"}, "date iso8601date localdate"),
    ({"type": "string", "format": "uri"}, "uri url"),
    ({"type": "string", "format": "email"}, "email emailaddress"),
    ({"type": "string", "format": "uuid"}, "uuid"),
    (_TEXT, "base64 base64string byte html markdown gitobjectid gitrefname gitsshremote x509certificate decimal"),
    (_TEXT, "time localtime localdatetime timelessdate duration gittimestamp precisedatetime"),
    ({"type": "object"}, "jsonobject object map"),
    ({"type": ["integer", "string"]}, "bigint long int64 uint64 unsignedint64"),
    ({}, "json jsonvalue any"),
)
KNOWN = {name: schema for schema, names in _KNOWN for name in names.split()}
FILES = frozenset({"upload", "file"})  # are sent as parts of a form

_INNER = re.compile(r"\[(.*)\]")


class InputSchemas:
    """Converts the arguments of one schema. Input types may refer to themselves."""

    def __init__(self, schema: GraphqlSchema) -> None:
        self._schema = schema
        self._definitions: dict[str, Any] = {}
        self._waiting: list[str] = []  # input types that something refers to, and that are still to be defined
        self.schemas = Schemas(References({"components": {"schemas": self._definitions}}), "3.1")

    def of(self, argument: Argument, place: str) -> dict[str, Any]:
        """Return the JSON Schema of an argument. Raise UnusablePart if it cannot be sent."""
        type = named(argument.type)
        if self._is_file(type):
            raise UnusablePart(place, f"it takes a file (`{type}`), which cannot be sent")
        if not self._is_input(type):
            raise UnusablePart(place, f"the schema has no input type `{type[:100]}`")
        found = self._described(argument)
        while self._waiting:
            self._define(self._waiting.pop())
        return found

    def _is_input(self, type: str) -> bool:
        schema = self._schema
        return type in BUILT_IN or type in schema.enums or type in schema.inputs or type in schema.scalars

    def _is_file(self, type: str) -> bool:
        return type.lower() in FILES and type in self._schema.scalars

    def _described(self, argument: Argument) -> dict[str, Any]:
        found = self._type(argument.type)
        if argument.description.strip():
            found = {**found, "description": argument.description}
        if argument.deprecated:
            found = {**found, "deprecated": True}
        if argument.has_default and argument.default is not None and len(str(argument.default)) <= MAX_DEFAULT:
            found = {**found, "default": argument.default}
        return found

    def _type(self, type: str, depth: int = 0) -> dict[str, Any]:
        inner = type.removesuffix("!")
        nullable = {} if inner != type else {"nullable": True}
        if found := _INNER.fullmatch(inner):
            items = self._type(found[1], depth + 1) if depth < MAX_DEPTH else {}
            return {"type": "array", "items": items, **nullable}
        return {**self._named(inner), **nullable}

    def _named(self, name: str) -> dict[str, Any]:
        schema = self._schema
        if name in BUILT_IN:
            return BUILT_IN[name]
        if name in schema.enums:
            if name not in self._definitions:
                each = schema.enums[name]
                self._definitions[name] = {"type": "string", "enum": [*each.values], **_about(each.description)}
        elif name in schema.inputs:
            if name not in self._definitions:
                self._definitions[name] = {}
                self._waiting.append(name)
        else:
            known = KNOWN.get(name.lower().replace("_", ""))
            return known if known is not None else {"description": f"A value of the type {name}."}
        return {"$ref": REFERENCE + name}

    def _define(self, name: str) -> None:
        each = self._schema.inputs[name]
        fields = [field for field in each.fields if field.is_required or not self._is_file(named(field.type))]
        definition: dict[str, Any] = self._definitions[name]
        definition |= {
            "type": "object",
            **_about(each.description),
            "properties": {field.name: self._described(field) for field in fields},
            "required": [field.name for field in fields if field.is_required],
            "additionalProperties": False,
        }
        if each.is_one_of:
            definition |= {"minProperties": 1, "maxProperties": 1}


def _about(description: str) -> dict[str, Any]:
    return {"description": description} if description.strip() else {}
