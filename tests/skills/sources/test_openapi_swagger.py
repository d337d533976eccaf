from typing import Any

import pytest

from holdfast.skills.request import AuthScheme, BodyField, RequestBody, RequestParameter
from holdfast.skills.sources.source import ImportedTool
from tests.skills.sources.openapi import document, imported

pytestmark = pytest.mark.req("MCP-03")

PET = {"type": "object", "properties": {"name": {"type": "string"}, "mate": {"$ref": "#/definitions/Pet"}}}


def swagger(said: dict[str, Any], **more: Any) -> ImportedTool:
    root = {"swagger": "2.0", "host": "api.example.com", "basePath": "/v2", "schemes": ["http", "https"], **more}
    found = imported(document({"/pets/{id}": {"post": said}}, **root))
    assert not found.skipped, found.skipped
    return found.tools[0]


def test_a_body_and_its_definitions_are_taken() -> None:
    said = {"parameters": [{"name": "pet", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}}]}

    found = swagger(said, definitions={"Pet": PET}).tool

    assert found.parameters["properties"].keys() == {"id", "name", "mate"}
    assert found.parameters["properties"]["mate"] == {"$ref": "#/$defs/Pet"}
    assert found.parameters["$defs"].keys() == {"Pet"}
    assert found.request is not None
    assert found.request.url == "https://api.example.com/v2/pets/{id}"
    assert found.request.body == RequestBody(
        "application/json", fields=(BodyField("name", "name"), BodyField("mate", "mate"))
    )


@pytest.mark.parametrize(
    ("place", "collection", "style", "explode"),
    [
        ("query", None, "form", False),
        ("query", "csv", "form", False),
        ("query", "ssv", "spaceDelimited", False),
        ("query", "tsv", "tabDelimited", False),
        ("query", "pipes", "pipeDelimited", False),
        ("query", "multi", "form", True),
        ("header", "csv", "simple", False),
        ("header", "pipes", "simple", False),
    ],
)
def test_collections_have_the_style_that_says_the_same(place: Any, collection: Any, style: Any, explode: bool) -> None:
    parameter = {"name": "tags", "in": place, "type": "array", "items": {"type": "string"}, "description": "Tags."}
    said = {"parameters": [parameter if collection is None else {**parameter, "collectionFormat": collection}]}

    found = swagger(said).tool

    assert found.request is not None
    assert found.request.parameters[1] == RequestParameter("tags", "tags", place, style, explode=explode)
    assert found.parameters["properties"]["tags"] == {
        "type": "array",
        "items": {"type": "string"},
        "description": "Tags.",
    }


@pytest.mark.parametrize(
    ("consumes", "with_file", "kind"),
    [
        ([], False, "application/x-www-form-urlencoded"),
        (["multipart/form-data"], False, "multipart/form-data"),
        (["multipart/form-data", "application/x-www-form-urlencoded"], False, "application/x-www-form-urlencoded"),
        (["application/x-www-form-urlencoded"], True, "multipart/form-data"),
    ],
)
def test_a_form_is_sent_as_what_is_consumed(consumes: list[str], with_file: bool, kind: str) -> None:
    form = [
        {"name": "note", "in": "formData", "type": "string", "required": True, "description": "N"},
        {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "ssv"},
    ]
    if with_file:
        form.append({"name": "file", "in": "formData", "type": "file"})

    found = swagger({"parameters": form, "consumes": consumes}).tool

    assert found.request is not None
    assert found.request.body is not None
    assert found.request.body.content_type == kind
    assert found.parameters["properties"]["note"] == {"type": "string", "description": "N"}
    assert found.parameters["required"] == ["id", "note"]
    styles = {field.name: field.style for field in found.request.body.fields}
    assert styles["tags"] == (None if "multipart" in kind else "spaceDelimited")
    if with_file:
        assert found.request.body.fields[-1] == BodyField("file", "file", "application/octet-stream")
        assert found.parameters["properties"]["file"] == {"type": "string", "contentEncoding": "base64"}


@pytest.mark.parametrize(
    ("said", "scheme"),
    [
        ({"type": "basic"}, AuthScheme("who", "basic")),
        ({"type": "apiKey", "in": "query", "name": "key"}, AuthScheme("who", "query", "key")),
        ({"type": "oauth2", "flow": "implicit"}, AuthScheme("who", "bearer")),
    ],
)
def test_security_definitions_are_schemes(said: dict[str, str], scheme: AuthScheme) -> None:
    found = swagger({}, securityDefinitions={"who": said}, security=[{"who": []}]).tool

    assert found.request is not None
    assert found.request.security == ((scheme,),)


@pytest.mark.parametrize(
    ("more", "url"),
    [
        ({"host": "", "basePath": "/v3"}, "/v3/pets/{id}"),
        ({"schemes": ["http"]}, "http://api.example.com/v2/pets/{id}"),
        ({"schemes": []}, "https://api.example.com/v2/pets/{id}"),
        ({"basePath": None}, "https://api.example.com/pets/{id}"),
    ],
)
def test_the_address_is_made_of_scheme_host_and_base_path(more: dict[str, Any], url: str) -> None:
    found = swagger({}, **more).tool

    assert found.request is not None
    assert found.request.url == url


def test_a_parameter_may_be_said_elsewhere_and_types_of_files_noted() -> None:
    parameters = {"Limit": {"name": "limit", "in": "query", "type": "integer", "maximum": 10, "exclusiveMaximum": True}}

    found = swagger({"parameters": [{"$ref": "#/parameters/Limit"}]}, parameters=parameters).tool

    assert found.parameters["properties"]["limit"] == {"type": "integer", "exclusiveMaximum": 10}


def test_what_a_form_with_a_file_cannot_say_is_told() -> None:
    tags = {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"}
    said = {"parameters": [{"name": "photo", "in": "formData", "type": "file"}, tags]}

    found = swagger(said)

    assert "paths./pets/{id}.post.parameters.1: sent as one part per value, its collectionFormat is ignored" in (
        found.notes
    )
