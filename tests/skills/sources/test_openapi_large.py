import json
import random
import time
import tracemalloc
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from holdfast.core.errors import InvalidInput
from holdfast.skills.sources.openapi import import_document, read_document
from holdfast.skills.sources.openapi.pruning import MAX_SCHEMA_BYTES
from tests.skills.sources.openapi import EVERYTHING, document, imported

pytestmark = pytest.mark.req("MCP-03")


def expandable(schemas: int, operations: int) -> dict[str, Any]:
    """Schemas that refer to one another in unions, so that each reaches all others on countless ways."""
    chance = random.Random(1)

    def reference() -> dict[str, str]:
        return {"$ref": f"#/components/schemas/s{chance.randrange(schemas)}"}

    def union() -> dict[str, Any]:
        return {
            "description": "An id, or all of it.",
            "nullable": True,
            "anyOf": [{"type": "string"}, reference(), reference()],
        }

    components = {
        f"s{number}": {"type": "object", "properties": {f"p{field}": union() for field in range(12)}}
        for number in range(schemas)
    }
    paths = {
        f"/v1/s{number}/{{id}}": {
            "post": {"requestBody": {"required": True, "content": {"application/json": {"schema": reference()}}}}
        }
        for number in range(operations)
    }
    return document(paths, components={"schemas": components})


def test_hundreds_of_schemas_that_refer_to_one_another_become_small_tools_in_seconds() -> None:
    data = json.dumps(expandable(400, 200)).encode()
    start = time.process_time()

    found = import_document(read_document(data), EVERYTHING)

    assert time.process_time() - start < 10
    assert len(found.tools) == 200
    for tool in found.tools:
        Draft202012Validator(dict(tool.tool.parameters))
        assert len(msgspec.json.encode(tool.tool.parameters)) <= MAX_SCHEMA_BYTES
        assert "cut below" in tool.notes[0]


def test_memory_grows_with_the_document_and_not_with_the_ways_through_it() -> None:
    def peak(schemas: int) -> int:
        read = read_document(json.dumps(expandable(schemas, 20)).encode())
        tracemalloc.start()
        import_document(read, EVERYTHING)
        _, found = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found

    assert peak(200) < 4 * peak(100)


VALUES = st.sampled_from(
    [None, True, False, 0, -1, 5.5, "", "x", "#/paths", [], [None], {}, {"$ref": "#/a"}, {"type": 5}]
)
WHOLE = document(
    {
        "/a/{id}": {
            "parameters": [{"$ref": "#/components/parameters/P"}],
            "servers": [{"url": "https://{x}.example", "variables": {"x": {"default": "a"}}}],
            "post": {
                "operationId": "a",
                "tags": ["t"],
                "summary": "S",
                "security": [{"key": []}],
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "style": "simple", "schema": {"type": "string"}}
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {
                            "schema": {"$ref": "#/components/schemas/S"},
                            "encoding": {"a": {"style": "form"}},
                        }
                    },
                },
            },
        }
    },
    components={
        "parameters": {
            "P": {"name": "q", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}}
        },
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "K"}},
        "schemas": {
            "S": {
                "type": "object",
                "required": ["a"],
                "properties": {
                    "a": {
                        "type": "array",
                        "items": {"type": "string", "enum": ["x"], "default": "x", "nullable": True},
                    },
                    "b": {"oneOf": [{"$ref": "#/components/schemas/S"}, {"type": "integer", "minimum": 1}]},
                },
                "additionalProperties": False,
            }
        },
    },
    tags=[{"name": "t", "x-ai-enabled": True}],
)
OLD: dict[str, Any] = {
    "swagger": "2.0",
    "host": "a.example",
    "basePath": "/",
    "schemes": ["https"],
    "consumes": ["application/json"],
    "securityDefinitions": {"key": {"type": "basic"}},
    "definitions": {"S": {"type": "object", "properties": {"a": {"type": "string"}}}},
    "paths": {
        "/a": {
            "get": {"parameters": [{"name": "q", "in": "query", "type": "array", "items": {"type": "string"}}]},
            "put": {"parameters": [{"name": "b", "in": "body", "schema": {"$ref": "#/definitions/S"}}]},
            "post": {"parameters": [{"name": "f", "in": "formData", "type": "file"}], "security": [{"key": []}]},
        }
    },
}


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(cast(dict[Any, Any], value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast(list[Any], value)))
    return [way, *(found for key, item in inner for found in places(item, (*way, key)))]


def put(value: Any, way: tuple[Any, ...], other: Any) -> Any:
    if not way:
        return other
    copied: Any = dict(cast(dict[Any, Any], value)) if isinstance(value, dict) else list(value)
    copied[way[0]] = put(copied[way[0]], way[1:], other)
    return copied


@given(st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_wrong_in_a_document_is_told_and_nothing_breaks(data: st.DataObject) -> None:
    root: Any = data.draw(st.sampled_from([WHOLE, {**WHOLE, "openapi": "3.1.0"}, OLD]))
    for _ in range(data.draw(st.integers(1, 3))):
        root = put(root, data.draw(st.sampled_from(places(root)[1:])), data.draw(VALUES))

    try:
        found = imported(root)
    except InvalidInput:
        return

    for tool in found.tools:
        Draft202012Validator(dict(tool.tool.parameters))
        msgspec.json.encode(tool.tool.request)
    assert all(one.reason for one in found.skipped)
