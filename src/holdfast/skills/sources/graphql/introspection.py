"""Reads GraphQL schemas from the answer to the introspection query, and has that query."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

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
from holdfast.skills.sources.openapi.documents import document_error

ANSWER = "__schema"
MAX_WRAPPERS = 16  # lists and `!` around a type

Object = dict[str, Any]


@lru_cache(maxsize=1)
def introspection_query() -> str:
    """Return the query that asks a service for its schema. Every version of GraphQL understands it."""
    from graphql.utilities import get_introspection_query

    return get_introspection_query(descriptions=True)


def is_introspection(root: Mapping[str, Any]) -> bool:
    """Whether a document is the answer to an introspection query."""
    return _schema_of(root) is not None


def read_introspection(root: Mapping[str, Any]) -> GraphqlSchema:
    """Read a schema. Parts that are not as they should be are left out."""
    found = _schema_of(root)
    if found is None:
        raise document_error(ANSWER, "it is missing", "Pass the answer to an introspection query, or SDL.")
    schema = GraphqlSchema(description=_text(found.get("description")))
    by_name = {each["name"]: each for each in _objects(found.get("types")) if is_name(each.get("name"))}
    for name, each in by_name.items():
        if not name.startswith("__"):
            _take(schema, name, each)
    kinds: tuple[OperationKind, ...] = ("query", "mutation")
    for kind in kinds:
        for each in _fields(by_name, found.get(f"{kind}Type")):
            arguments = tuple(map(_argument, _named(each.get("args"))))
            deprecated = _text(each.get("deprecationReason")) or "No longer supported"
            schema.operations.append(
                RootField(
                    kind,
                    each["name"],
                    _type(each.get("type")),
                    _text(each.get("description")),
                    arguments,
                    deprecated if each.get("isDeprecated") is True else None,
                )
            )
    schema.subscriptions = [each["name"] for each in _fields(by_name, found.get("subscriptionType"))]
    return schema


def _take(schema: GraphqlSchema, name: str, each: Object) -> None:
    about = _text(each.get("description"))
    match each.get("kind"):
        case "OBJECT" | "INTERFACE" | "UNION":
            outputs = {one["name"]: _output_field(one) for one in _named(each.get("fields"))}
            members = tuple(one["name"] for one in _named(each.get("possibleTypes")))
            schema.outputs[name] = OutputType(outputs, members, each["kind"] != "OBJECT")
        case "INPUT_OBJECT":
            fields = tuple(map(_argument, _named(each.get("inputFields"))))
            schema.inputs[name] = InputType(about, fields, each.get("isOneOf") is True)
        case "ENUM":
            schema.enums[name] = EnumType(about, tuple(one["name"] for one in _named(each.get("enumValues"))))
        case "SCALAR":
            schema.scalars[name] = about
        case _:
            pass


def _schema_of(root: Mapping[str, Any]) -> Object | None:
    data: object = root.get("data")
    found: object = cast(Object, data).get(ANSWER) if isinstance(data, dict) else root.get(ANSWER)
    return cast(Object, found) if isinstance(found, dict) else None


def _fields(by_name: Mapping[str, Object], root: object) -> list[Object]:
    name: object = cast(Object, root).get("name") if isinstance(root, dict) else None
    return _named(by_name.get(name, {}).get("fields")) if isinstance(name, str) else []


def _output_field(each: Object) -> OutputField:
    arguments = {one["name"]: _argument_type(one) for one in _named(each.get("args"))}
    return OutputField(_type(each.get("type")), arguments, each.get("isDeprecated") is True)


def _argument_type(each: Object) -> str:
    kind = _type(each.get("type"))
    return kind if each.get("defaultValue") is None else kind.removesuffix("!")


def _argument(each: Object) -> Argument:
    text = each.get("defaultValue")
    has_default, default = isinstance(text, str), None
    if isinstance(text, str):
        default = _value(text)
    return Argument(
        each["name"],
        _type(each.get("type")),
        _text(each.get("description")),
        has_default,
        default,
        each.get("isDeprecated") is True,
    )


def _value(text: str) -> Any:
    from graphql.error import GraphQLError
    from graphql.language import parse_value
    from graphql.utilities import value_from_ast_untyped

    try:
        value = value_from_ast_untyped(parse_value(text[:1000], no_location=True))
    except (GraphQLError, RecursionError):
        return None
    return None if "\0" in str(value) else value  # PostgreSQL cannot store NUL


def _type(reference: object) -> str:
    """Return a type as text. One that cannot be read is a type that nobody knows."""
    before, after = "", ""
    for _ in range(MAX_WRAPPERS):
        each = cast(Object, reference) if isinstance(reference, dict) else {}
        match each.get("kind"):
            case "LIST":
                before, after = f"{before}[", f"]{after}"
            case "NON_NULL":
                after = f"!{after}"
            case _:
                name = each.get("name")
                return f"{before}{name}{after}" if is_name(name) else "_"
        reference = each.get("ofType")
    return "_"


def _objects(value: object) -> list[Object]:
    return [each for each in cast(list[Any], value) if isinstance(each, dict)] if isinstance(value, list) else []


def _named(value: object) -> list[Object]:
    return [each for each in _objects(value) if is_name(each.get("name"))]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
