"""Reads GraphQL schemas from SDL, the schema definition language."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.skills.sources.graphql.schema import (
    Argument,
    EnumType,
    GraphqlSchema,
    InputType,
    OperationKind,
    OutputField,
    OutputType,
    RootField,
    is_name,
)

if TYPE_CHECKING:
    from graphql import language

MAX_TOKENS = 1_500_000  # GitHub's schema has 60,000
MAX_TYPE = 300  # characters of a type, with its lists

# Possessive, as each character can be matched in one way only: otherwise the matcher remembers a way back for each.
_IGNORED = re.compile(r'[\s,\ufeff]++|#[^\n\r]*+|"""(?:\\"""|[^"]|"(?!""))*+"""|"(?:[^"\\\n\r]|\\.)*+"')
_DEFINITION = re.compile(
    r"(?:extend\s+)?(?:schema\s*[@{]|directive\s*@|(?:type|interface|union|scalar|enum|input)\s+[_A-Za-z])"
)


def is_sdl(text: str) -> bool:
    """Whether a text begins like a schema in SDL, and not like JSON or YAML."""
    place = 0
    while found := _IGNORED.match(text, place):
        place = found.end()
    return _DEFINITION.match(text, place) is not None


def read_sdl(text: str) -> GraphqlSchema:
    """Read a schema. An InvalidInput names the line of an error."""
    from graphql.error import GraphQLSyntaxError
    from graphql.language import parse

    try:
        document = parse(text, no_location=True, max_tokens=MAX_TOKENS)
    except GraphQLSyntaxError as error:
        if "token" in error.message and str(MAX_TOKENS) in error.message:
            why = f"it has more than {MAX_TOKENS:,} tokens"
            raise TooLarge("the document is too large", why=why, limit=MAX_TOKENS) from None
        place = error.locations[0] if error.locations else None
        where = f" (line {place.line}, column {place.column})" if place else ""
        why = " ".join(error.message.removeprefix("Syntax Error: ").split())[:300]
        raise _error(f"{why}{where}") from None
    except RecursionError:
        raise _error("it is nested too deeply") from None
    return _Reader().read(document)


def _error(why: str) -> InvalidInput:
    return InvalidInput("the document is not a valid GraphQL schema", why=why, next="Correct the schema.")


class _Reader:
    """Collects the definitions of one document. Extensions add to the type that they extend."""

    def __init__(self) -> None:
        self._schema = GraphqlSchema()
        self._fields: dict[str, dict[str, language.FieldDefinitionNode]] = {}
        self._interfaces: dict[str, list[str]] = {}  # by type
        self._objects: dict[str, None] = {}
        self._unions: dict[str, list[str]] = {}
        self._roots: dict[str, str] = {}
        self._inputs: dict[str, list[Argument]] = {}
        self._enums: dict[str, list[str]] = {}
        self._about: dict[str, str] = {}
        self._one_of: set[str] = set()

    def read(self, document: "language.DocumentNode") -> GraphqlSchema:
        for definition in document.definitions:
            self._take(definition)
        schema = self._schema
        members = self._members()
        for name, fields in self._fields.items():
            outputs = {key: _output_field(each) for key, each in fields.items() if is_name(key)}
            schema.outputs[name] = OutputType(outputs, tuple(members.get(name, ())), name not in self._objects)
        for name, among in self._unions.items():
            schema.outputs[name] = OutputType({}, tuple(each for each in among if each in self._objects), True)
        about = self._about
        schema.inputs = {
            name: InputType(about.get(name, ""), tuple(fields), name in self._one_of)
            for name, fields in self._inputs.items()
        }
        schema.enums = {name: EnumType(about.get(name, ""), tuple(values)) for name, values in self._enums.items()}
        self._take_operations()
        return schema

    def _take_operations(self) -> None:
        roots = self._roots or {"query": "Query", "mutation": "Mutation", "subscription": "Subscription"}
        kinds: tuple[OperationKind, ...] = ("query", "mutation")
        for kind in kinds:
            for name, each in self._fields.get(roots.get(kind, ""), {}).items():
                self._schema.operations.append(
                    RootField(
                        kind,
                        name,
                        _type(each.type),
                        _text(each.description),
                        tuple(map(_argument, each.arguments or ())),
                        _deprecated(each.directives),
                    )
                )
        self._schema.subscriptions = list(self._fields.get(roots.get("subscription", ""), {}))

    def _members(self) -> dict[str, list[str]]:
        members: dict[str, list[str]] = {}
        for name in self._objects:
            for interface in dict.fromkeys(self._interfaces.get(name, ())):
                members.setdefault(interface, []).append(name)
        return members

    def _take(self, definition: "language.DefinitionNode") -> None:
        kind = definition.kind.removesuffix("_definition").removesuffix("_extension")
        node = cast(Any, definition)  # which attributes it has depends on its kind
        if kind == "schema":
            for each in node.operation_types or ():
                self._roots[each.operation.value] = each.type.name.value
            self._schema.description = _text(getattr(node, "description", None)) or self._schema.description
            return
        if not kind.endswith("_type"):
            return  # directives, and operations
        name: str = node.name.value
        if not is_name(name):
            return
        if getattr(node, "description", None) is not None:
            self._about[name] = _text(node.description)
        match kind:
            case "object_type" | "interface_type":
                if kind == "object_type":
                    self._objects[name] = None
                self._fields.setdefault(name, {}).update({each.name.value: each for each in node.fields or ()})
                self._interfaces.setdefault(name, []).extend(each.name.value for each in node.interfaces or ())
            case "union_type":
                self._unions.setdefault(name, []).extend(each.name.value for each in node.types or ())
            case "input_object_type":
                self._inputs.setdefault(name, []).extend(map(_argument, node.fields or ()))
                if any(each.name.value == "oneOf" for each in node.directives or ()):
                    self._one_of.add(name)
            case "enum_type":
                self._enums.setdefault(name, []).extend(each.name.value for each in node.values or ())
            case _:
                self._schema.scalars[name] = self._about.get(name, "")


def _output_field(node: "language.FieldDefinitionNode") -> OutputField:
    arguments = {each.name.value: _argument_type(each) for each in node.arguments or () if is_name(each.name.value)}
    return OutputField(_type(node.type), arguments, _deprecated(node.directives) is not None)


def _argument_type(node: "language.InputValueDefinitionNode") -> str:
    kind = _type(node.type)
    return kind if node.default_value is None else kind.removesuffix("!")


def _argument(node: "language.InputValueDefinitionNode") -> Argument:
    from graphql.utilities import value_from_ast_untyped

    default = node.default_value
    value = None if default is None else value_from_ast_untyped(default)
    return Argument(
        node.name.value,
        _type(node.type),
        _text(node.description),
        default is not None,
        None if "\0" in str(value) else value,
        _deprecated(node.directives) is not None,
    )


def _type(node: Any) -> str:
    """Return a type as text. One that is too long, by its lists, is a type that nobody knows."""
    before, after = "", ""
    while node.kind != "named_type":
        if node.kind == "list_type":
            before, after = f"{before}[", f"]{after}"
        else:
            after = f"!{after}"
        node = node.type
        if len(after) > MAX_TYPE:
            return "_"
    return f"{before}{node.name.value}{after}"


def _text(node: Any) -> str:
    return "" if node is None else str(node.value).replace("\0", "\ufffd")  # PostgreSQL cannot store NUL


def _deprecated(directives: "Iterable[language.DirectiveNode] | None") -> str | None:
    for each in directives or ():
        if each.name.value == "deprecated":
            given: Iterable[Any] = each.arguments or ()
            reason: Any = next((one.value for one in given if one.name.value == "reason"), None)
            return _text(reason) if getattr(reason, "kind", "") == "string_value" else "No longer supported"
    return None
