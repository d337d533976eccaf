from typing import Any

import jsonschema_rs
import msgspec
import pytest

from holdfast.skills.sources.openapi.pruning import MAX_SCHEMA_BYTES
from tests.skills.sources.openapi import argument, document, imported, operation, skipped, with_body

pytestmark = pytest.mark.req("MCP-03", "SKILL-03")

THIRTY_ONE = {f"p{number}": {"type": "string"} for number in range(31)}

CONVERTED: list[tuple[Any, Any]] = [
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
    (
        {"nullable": True, "oneOf": [{"type": "string"}], "description": "D"},
        {"anyOf": [{"anyOf": [{"type": "string"}]}, {"type": "null"}], "description": "D"},
    ),
    (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": False},
        {"type": "integer", "exclusiveMinimum": 1, "maximum": 5},
    ),
    ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
    ({"type": "object", "example": {"a": 1}}, {"type": "object"}),
    (
        {"type": "object", "discriminator": {"propertyName": "a"}, "xml": {}, "externalDocs": {}, "x-y": 1},
        {"type": "object"},
    ),
    ({"type": "string", "format": "int-like", "title": "X"}, {"type": "string", "format": "int-like"}),
    ({"type": "string", "format": "binary"}, {"type": "string", "contentEncoding": "base64"}),
    ({"type": "string", "pattern": "^(?=a)b$"}, {"type": "string", "pattern": "^(?=a)b$"}),
    ({"allOf": [{"type": "string"}], "oneOf": [{}], "anyOf": [{}]}, None),
    ({"type": "string", "enum": [1.0, True, "x"]}, {"type": "string", "enum": ["1.0", "true", "x"]}),
    ({"type": "string", "default": 5}, {"type": "string", "default": "5"}),
    ({"type": "array", "items": [{"type": "string"}]}, {"type": "array", "prefixItems": [{"type": "string"}]}),
    (
        {"type": "object", "properties": {"a": {"readOnly": True}, "b": {}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"b": {}}, "required": ["b"]},
    ),
    ({"type": "object", "additionalProperties": True}, {"type": "object"}),
    ({"properties": {"type": {"type": "string"}, "default": {"default": "x"}}}, None),
]

LEFT_OUT: list[tuple[Any, Any, str]] = [
    ({"type": "string", "pattern": "("}, {"type": "string"}, "pattern"),
    ({"type": "string", "maxLength": "5"}, {"type": "string"}, "maxLength"),
    ({"type": "integer", "default": "many"}, {"type": "integer"}, "default"),
    ({"type": "integer", "enum": ["a"]}, {"type": "integer"}, "enum"),
    ({"type": "Integer"}, {"type": "integer"}, "type"),
    ({"type": "whatever"}, {}, "type"),
    ({"type": "object", "properties": ["a"]}, {"type": "object"}, "properties"),
    ({"type": "object", "properties": {"a": "text"}}, {"type": "object", "properties": {"a": {}}}, "no schema"),
    ({"type": "array", "items": "string"}, {"type": "array"}, "items"),
    ({"anyOf": []}, {}, "anyOf"),
    ({"patternProperties": {"(": {}}, "additionalProperties": False}, {"patternProperties": {}}, "pattern"),
    ("text", {}, "no schema"),
]


@pytest.mark.parametrize(("said", "becomes"), CONVERTED)
def test_a_schema_becomes_json_schema_that_says_the_same_or_less(said: Any, becomes: Any) -> None:
    found = argument(said)

    assert becomes is None or found == becomes
    jsonschema_rs.Draft202012Validator(found)


@pytest.mark.parametrize(("said", "becomes", "note"), LEFT_OUT)
def test_what_no_validator_takes_is_left_out_with_a_note(said: Any, becomes: Any, note: str) -> None:
    parameters = [{"name": "x", "in": "query", "schema": said}]

    found = operation({"parameters": parameters}, method="get")

    assert found.tool.parameters["properties"]["x"] == becomes
    assert len(found.notes) == 1
    assert note in found.notes[0]
    assert found.notes[0].startswith("paths./things.get.parameters.0.schema")


def test_later_versions_say_more_beside_a_reference_than_earlier_ones() -> None:
    schemas = {"schemas": {"A": {"type": "string"}}}
    said = {"$ref": "#/components/schemas/A", "description": "Mine", "maxLength": 5}

    assert argument(said, components=schemas) == {"$ref": "#/$defs/A", "description": "Mine"}
    assert argument(said, components=schemas, openapi="3.1.0") == {
        "$ref": "#/$defs/A",
        "description": "Mine",
        "maxLength": 5,
    }


def test_a_schema_of_3_1_stays_as_it_is() -> None:
    said = {"type": ["string", "null"], "const": "a", "examples": ["a"], "contentMediaType": "text/plain"}

    assert argument(said, openapi="3.1.0") == {
        "type": ["string", "null"],
        "const": "a",
        "contentMediaType": "text/plain",
    }
    assert argument({"exclusiveMinimum": 1, "const": None}, openapi="3.1.0") == {"exclusiveMinimum": 1, "const": None}


def test_definitions_come_along_that_are_reached_and_no_others() -> None:
    schemas = {
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}},
        "Tree": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        "Other": {"type": "string"},
    }
    body = with_body({"$ref": "#/components/schemas/Tree"})

    found = operation(body, components={"schemas": schemas}).tool

    assert found.parameters["properties"] == {"body": {"$ref": "#/$defs/Tree"}}
    assert found.parameters["$defs"].keys() == {"Tree", "Node"}
    assert found.parameters["$defs"]["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}
    checked = jsonschema_rs.Draft202012Validator(dict(found.parameters))
    assert checked.is_valid({"body": [{"next": {"next": {}}}]})
    assert not checked.is_valid({"body": [{"next": {"next": 5}}]})


def test_a_reference_may_point_anywhere_in_the_document() -> None:
    schemas = {"A b/c": {"type": "object", "properties": {"x": {"type": "integer"}}}}
    inside = "#/components/schemas/A%20b~1c/properties/x"

    found = operation(
        {"parameters": [{"name": "x", "in": "query", "schema": {"$ref": inside}}]}, components={"schemas": schemas}
    ).tool

    name = found.parameters["properties"]["x"]["$ref"].removeprefix("#/$defs/")
    assert found.parameters["$defs"] == {name: {"type": "integer"}}
    assert name.startswith("properties_x_")


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("other.yaml#/A", "another document"),
        ("https://example.com/a.json", "another document"),
        ("#/components/schemas/None", "does not exist"),
        ("#anchor", "does not exist"),
        ("#/info/title", "not a schema"),
        (5, "not a string"),
    ],
)
def test_a_reference_that_leads_nowhere_is_told_with_its_place(reference: Any, reason: str) -> None:
    found = skipped(with_body({"properties": {"a": {"$ref": reference}}}))

    assert found.operation == "POST /things"
    assert found.path == "paths./things.post.requestBody.content.application/json.schema.properties.a"
    assert reason in found.reason


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/components/schemas/A"},
        {"allOf": [{"$ref": "#/components/schemas/A"}]},
        {"anyOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/A"}]},
    ],
)
def test_a_schema_that_is_itself_ends(schema: Any) -> None:
    found = operation(with_body({"$ref": "#/components/schemas/A"}), components={"schemas": {"A": schema}})

    assert found.tool.parameters["properties"].keys() == {"body"}
    jsonschema_rs.Draft202012Validator(dict(found.tool.parameters)).is_valid({"body": {}})


BODIES: list[tuple[Any, set[str]]] = [
    ({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}, {"a", "b"}),
    ({"$ref": "#/components/schemas/Base"}, {"name"}),
    ({"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"b": {}}}]}, {"name", "b"}),
    ({"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"name": {}}}]}, {"body"}),
    ({"type": "object", "properties": THIRTY_ONE}, {"body"}),
    ({"type": "object", "properties": {"q": {}}}, {"body"}),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}, {"body"}),
    ({"type": "object", "properties": {"a": {}}, "oneOf": [{"required": ["a"]}]}, {"body"}),
    ({"type": "object", "properties": {"a": {}}, "nullable": True}, {"body"}),
    ({"type": "object"}, {"body"}),
    ({"type": "array", "items": {}}, {"body"}),
    ({}, {"body"}),
]


@pytest.mark.parametrize(("schema", "names"), BODIES)
def test_a_small_object_becomes_arguments_of_its_own_and_all_else_one(schema: Any, names: set[str]) -> None:
    said = {"parameters": [{"name": "q", "in": "query"}], **with_body(schema)}
    base = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    found = operation(said, components={"schemas": {"Base": base}}).tool

    assert found.parameters["properties"].keys() - {"q"} == names
    assert "Base" not in found.parameters.get("$defs", {}) or names == {"body"}
    assert found.parameters["additionalProperties"] is False


def test_what_is_required_of_a_body_that_is_not_stays_inside_of_it() -> None:
    said = with_body({"type": "object", "properties": {"a": {}}, "required": ["a"]})
    said["requestBody"]["required"] = False

    found = operation(said).tool

    assert found.parameters["properties"].keys() == {"body"}
    assert "required" not in found.parameters


def large(width: int, depth: int) -> dict[str, Any]:
    """An object with objects in it."""
    inner: dict[str, Any] = {"type": "string", "enum": ["a", "b"], "description": "A leaf."}
    for level in range(depth):
        inner = {
            "type": "object",
            "description": f"Level {level}.",
            "properties": {f"p{n}": inner for n in range(width)},
            "required": ["p0"],
        }
    return inner


def test_a_schema_that_is_too_large_is_cut_and_becomes_looser() -> None:
    schema = {**large(4, 7), "not": {"required": ["x"]}}

    found = operation(with_body({"type": "array", "items": schema}))

    assert 500 < len(msgspec.json.encode(found.tool.parameters)) <= MAX_SCHEMA_BYTES
    assert "cut below level 5" in found.notes[0]
    body = found.tool.parameters["properties"]["body"]
    assert body["items"]["properties"]["p0"]["required"] == ["p0"]
    assert "not" not in body["items"]
    deep = body["items"]["properties"]["p0"]["properties"]["p0"]["properties"]["p0"]
    assert deep["properties"]["p1"] == {"type": "object", "description": "Level 2."}
    whole = jsonschema_rs.Draft202012Validator({"type": "array", "items": schema})
    cut = jsonschema_rs.Draft202012Validator(body)
    value: Any = "a"
    for _ in range(7):
        value = {"p0": value}
    assert whole.is_valid([value])
    assert cut.is_valid([value])


def test_definitions_are_cut_where_they_are_reached_first() -> None:
    names = [f"S{number}" for number in range(40)]
    schemas = {
        name: {
            "type": "object",
            "description": f"This is {name}. " * 60,
            "properties": {
                other: {"$ref": f"#/components/schemas/{other}"} for other in names[number + 1 : number + 4]
            },
        }
        for number, name in enumerate(names)
    }
    found = operation(with_body({"items": {"$ref": "#/components/schemas/S0"}}), components={"schemas": schemas}).tool

    size = len(msgspec.json.encode(found.parameters))
    assert 8_000 < size <= MAX_SCHEMA_BYTES
    assert 10 < len(found.parameters["$defs"]) < 40
    jsonschema_rs.Draft202012Validator(dict(found.parameters))


def test_hundreds_of_arguments_are_still_a_tool() -> None:
    parameters = [
        {"name": f"n{number}", "in": "query", "description": "Long. " * 50, "schema": {"type": "string"}}
        for number in range(400)
    ]

    found = operation({"parameters": parameters}, method="get")

    assert len(found.tool.parameters["properties"]) == 400
    assert len(msgspec.json.encode(found.tool.parameters)) <= MAX_SCHEMA_BYTES


def test_read_only_counts_when_it_is_said_of_the_type() -> None:
    schemas = {"Id": {"type": "string", "readOnly": True}}
    body = with_body({"properties": {"id": {"$ref": "#/components/schemas/Id"}, "name": {"type": "string"}}})

    assert operation(body, components={"schemas": schemas}).tool.parameters["properties"].keys() == {"name"}


def test_one_part_of_the_document_that_many_use_is_converted_once() -> None:
    shared = {"$ref": "#/components/requestBodies/Big"}
    bodies = {"Big": with_body({"type": "array", "items": large(5, 4)})["requestBody"]}

    found = imported(
        document({f"/t{n}": {"post": {"requestBody": shared}} for n in range(3)}, components={"requestBodies": bodies})
    )

    first, second, third = (tool.tool.parameters["properties"]["body"] for tool in found.tools)
    assert (
        first["items"]["properties"]["p0"] == second["items"]["properties"]["p0"] == third["items"]["properties"]["p0"]
    )
