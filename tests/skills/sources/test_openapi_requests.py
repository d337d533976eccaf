from typing import Any

import pytest

from holdfast.skills.request import AuthScheme, BodyField, RequestBody, RequestParameter, RequestTemplate
from tests.skills.sources.openapi import document, imported, operation, skipped, with_body

pytestmark = pytest.mark.req("MCP-03", "EXEC-01")


def request_of(said: dict[str, Any], **more: Any) -> RequestTemplate:
    found = operation(said, **more).tool.request
    assert found is not None
    return found


def body_of(said: dict[str, Any]) -> RequestBody:
    found = request_of(said).body
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("method", "access", "idempotent"),
    [
        ("get", "read", True),
        ("head", "read", True),
        ("put", "write", True),
        ("delete", "write", True),
        ("options", "write", True),
        ("post", "write", False),
        ("patch", "write", False),
    ],
)
def test_the_method_says_what_calling_takes_and_whether_it_may_repeat(
    method: str, access: str, idempotent: bool
) -> None:
    found = operation({}, method=method)

    assert (found.tool.kind, found.tool.access, found.tool.idempotent) == ("rest", access, idempotent)
    assert found.operation == f"{method.upper()} /things"
    assert found.raw == {}


def test_a_method_that_is_about_the_connection_is_no_tool() -> None:
    assert skipped({}, method="trace").reason == "tools cannot use the HTTP method TRACE"


def test_methods_of_3_2_are_known() -> None:
    item: dict[str, Any] = {"query": {}, "additionalOperations": {"COPY": {}, "not a method": {}}}

    found = imported(document({"/a": item}, openapi="3.2.0"))

    assert [tool.tool.name for tool in found.tools] == ["query_a", "copy_a"]
    assert found.skipped[0].path == "paths./a.additionalOperations.not a method"


def test_parameters_go_where_the_document_says_in_its_style() -> None:
    said = {
        "parameters": [
            {"name": "ids", "in": "query", "schema": {"type": "array"}, "style": "pipeDelimited", "explode": False},
            {"name": "where", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
            {"name": "url", "in": "query", "allowReserved": True, "required": True, "description": "An address."},
            {"name": "filter", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
            {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
            {"name": "session", "in": "cookie", "schema": {"type": "string"}},
            {"name": "id", "in": "path", "style": "matrix", "explode": True, "schema": {"type": "string"}},
            {"name": "odd", "in": "header", "style": "form"},
        ]
    }

    found = operation(said, method="get", path="/things/{id}")

    assert found.tool.request is not None
    assert found.tool.request.parameters == (
        RequestParameter("id", "id", "path", "matrix", explode=True),
        RequestParameter("ids", "ids", "query", "pipeDelimited"),
        RequestParameter("where", "where", "query", "deepObject", explode=True),
        RequestParameter("url", "url", "query", "form", explode=True, allow_reserved=True),
        RequestParameter("filter", "filter", "query", "form", explode=True, content_type="application/json"),
        RequestParameter("X-Trace", "X-Trace", "header", "simple"),
        RequestParameter("odd", "odd", "header", "simple"),
        RequestParameter("session", "session", "cookie", "form", explode=True),
    )
    assert found.tool.parameters["required"] == ["id", "url"]
    assert found.tool.parameters["properties"]["url"] == {"description": "An address."}
    assert found.notes == ("paths./things/{id}.get.parameters.7: style form is invalid for a header parameter",)


def test_an_operation_says_its_parameters_over_those_of_its_path() -> None:
    shared = {"Page": {"name": "page", "in": "query", "schema": {"type": "integer"}}}
    item = {
        "parameters": [{"$ref": "#/components/parameters/Page"}, {"name": "size", "in": "query"}],
        "get": {"parameters": [{"name": "size", "in": "query", "required": True, "schema": {"type": "integer"}}]},
    }

    found = imported(document({"/a": item}, components={"parameters": shared})).tools[0].tool

    assert found.parameters["properties"] == {"page": {"type": "integer"}, "size": {"type": "integer"}}
    assert found.parameters["required"] == ["size"]


def test_one_name_in_several_places_is_told_apart() -> None:
    places = [{"name": "id", "in": place} for place in ("cookie", "header", "query", "path")]
    form = with_body({"properties": {"id": {}, "body": {}}}, "application/x-www-form-urlencoded")

    found = request_of({"parameters": places, **form}, path="/a/{id}")

    assert [one.argument for one in found.parameters] == ["id", "id_query", "id_header", "id_cookie"]
    assert found.body is not None
    assert [(one.argument, one.name) for one in found.body.fields] == [("id_body", "id"), ("body", "body")]


def test_headers_that_are_not_for_a_caller_to_say_are_left_out() -> None:
    names = ("Authorization", "accept", "Content-Type", "Host", "bad name", "X-Good")
    said = {"parameters": [{"name": name, "in": "header", "required": True} for name in names]}

    found = operation(said, method="get")

    assert found.tool.parameters["properties"].keys() == {"X-Good"}
    assert len(found.notes) == 5


def test_the_path_is_what_its_parameters_are_taken_from() -> None:
    said = {"parameters": [{"name": "other", "in": "path", "required": True}]}

    found = operation(said, path="/a/{id}.json")

    assert found.tool.parameters["properties"] == {"id": {"type": "string"}}
    assert found.tool.parameters["required"] == ["id"]
    assert len(found.notes) == 2


UNUSABLE: list[tuple[dict[str, Any], str, str]] = [
    ({"parameters": {}}, "paths./things.post.parameters", "not a list"),
    ({"parameters": [5]}, "paths./things.post.parameters.0", "not an object"),
    ({"parameters": [{"in": "query"}]}, "paths./things.post.parameters.0", "has no `name`"),
    ({"parameters": [{"$ref": "#/no"}]}, "paths./things.post.parameters.0", "does not exist"),
    (
        {"parameters": [{"name": "q", "in": "querystring", "required": True}]},
        "paths./things.post.parameters.0",
        "querystring",
    ),
    ({"requestBody": "text"}, "paths./things.post.requestBody", "not an object"),
    ({"requestBody": {"$ref": "a.yaml"}}, "paths./things.post.requestBody", "another document"),
    ({"servers": [{"url": "ws://x"}]}, "paths./things.post.servers.0", "ws"),
    ({"servers": [{"url": "https://{region}.x"}]}, "paths./things.post.servers.0", "region"),
    ({"servers": [{"url": "https://ann:pw@x"}]}, "paths./things.post.servers.0", "secret"),
    ({"security": [{"none": []}]}, "paths./things.post.security", "none"),
]


@pytest.mark.parametrize(("said", "path", "reason"), UNUSABLE)
def test_an_operation_that_cannot_be_a_tool_says_where_and_why(said: dict[str, Any], path: str, reason: str) -> None:
    found = skipped(said)

    assert found.path == path
    assert reason in found.reason


def test_a_path_that_is_broken_leaves_the_others() -> None:
    paths: dict[str, Any] = {"/a": 5, "/b": {"$ref": "b.yaml"}, "/c": {"get": 5, "post": {}}, "x-more": 1, "/d": None}

    found = imported(document(paths))

    assert [tool.operation for tool in found.tools] == ["POST /c"]
    assert {one.path for one in found.skipped} == {"paths./a", "paths./b", "paths./c.get"}


def test_a_path_may_be_said_elsewhere() -> None:
    paths = {"/a": {"$ref": "#/components/pathItems/A", "parameters": [{"name": "q", "in": "query"}]}}

    found = imported(document(paths, openapi="3.1.0", components={"pathItems": {"A": {"get": {}}}}))

    assert found.tools[0].tool.parameters["properties"].keys() == {"q"}


@pytest.mark.parametrize(
    ("content", "body"),
    [
        (["text/plain", "application/json"], RequestBody("application/json", fields=(BodyField("a", "a"),))),
        (
            ["application/vnd.x+json", "multipart/form-data"],
            RequestBody("application/vnd.x+json", fields=(BodyField("a", "a"),)),
        ),
        (
            ["application/json; charset=utf-8"],
            RequestBody("application/json; charset=utf-8", fields=(BodyField("a", "a"),)),
        ),
        (
            ["application/x-www-form-urlencoded"],
            RequestBody("application/x-www-form-urlencoded", fields=(BodyField("a", "a"),)),
        ),
        (["*/*"], RequestBody("application/json", fields=(BodyField("a", "a"),))),
        (["application/xml", "image/png"], RequestBody("application/xml", argument="body")),
        (["image/png"], RequestBody("image/png", argument="body")),
    ],
)
def test_the_type_of_content_that_says_most_is_sent(content: list[str], body: RequestBody) -> None:
    media = {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}

    assert body_of({"requestBody": {"content": dict.fromkeys(content, media)}}) == body


def test_bytes_are_given_in_base64() -> None:
    raw = operation(with_body({"type": "string", "format": "binary"}, "application/octet-stream")).tool
    text = operation(with_body({"type": "object", "description": "D"}, "text/csv")).tool

    assert raw.parameters["properties"] == {"body": {"type": "string", "contentEncoding": "base64"}}
    assert text.parameters["properties"] == {"body": {"type": "string", "description": "D"}}


def test_the_parts_of_a_form_have_their_types_and_styles() -> None:
    schema = {
        "type": "object",
        "properties": {
            "file": {"type": "string", "format": "binary"},
            "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
            "picture": {"type": "object", "description": "P"},
            "meta": {"type": "object"},
            "name": {"type": "string"},
        },
        "required": ["file"],
    }
    encoding = {"picture": {"contentType": "image/png, image/jpeg"}, "meta": {"contentType": "application/json"}}

    found = operation(with_body(schema, "multipart/form-data", encoding=encoding)).tool

    assert found.request is not None
    assert found.request.body is not None
    assert {field.name: field.content_type for field in found.request.body.fields} == {
        "file": "application/octet-stream",
        "files": "application/octet-stream",
        "picture": "image/png, image/jpeg",
        "meta": "application/json",
        "name": None,
    }
    assert found.parameters["properties"]["picture"] == {
        "type": "string",
        "contentEncoding": "base64",
        "description": "P",
    }
    assert found.parameters["required"] == ["file"]


def test_fields_of_a_form_keep_their_style_however_many_they_are() -> None:
    properties = {f"p{number}": {"type": "object"} for number in range(40)}
    encoding = {"p0": {"style": "deepObject", "explode": True}}

    found = body_of(with_body({"properties": properties}, "application/x-www-form-urlencoded", encoding=encoding))

    assert len(found.fields) == 40
    assert found.fields[0] == BodyField("p0", "p0", style="deepObject", explode=True)


@pytest.mark.parametrize(
    ("servers", "location", "url"),
    [
        ({"root": ["https://a.example/v1/"]}, "", "https://a.example/v1/things/{id}"),
        ({"root": ["https://a.example"], "path": ["https://b.example"]}, "", "https://b.example/things/{id}"),
        ({"path": ["https://b.example"], "operation": ["https://c.example"]}, "", "https://c.example/things/{id}"),
        ({"root": ["ws://a.example", "https://b.example"]}, "", "https://b.example/things/{id}"),
        ({"root": ["/v2"]}, "https://d.example/docs/openapi.json", "https://d.example/v2/things/{id}"),
        ({"root": ["v2"]}, "https://d.example/docs/openapi.json", "https://d.example/docs/v2/things/{id}"),
        ({"root": ["/v2"]}, "", "/v2/things/{id}"),
        ({}, "https://d.example/docs/openapi.json", "https://d.example/things/{id}"),
        ({}, "", "/things/{id}"),
        ({}, "folder/openapi.json", "/things/{id}"),
    ],
)
def test_the_nearest_server_is_called(servers: dict[str, list[str]], location: str, url: str) -> None:
    listed = {place: {"servers": [{"url": one} for one in found]} for place, found in servers.items()}
    item = {"get": listed.get("operation", {}), **listed.get("path", {})}

    found = imported(
        document({"/things/{id}": item}, **{"servers": [], **listed.get("root", {})}), location=location
    ).tools[0]

    assert found.tool.request is not None
    assert found.tool.request.url == url


def test_variables_of_a_server_have_their_defaults_and_a_base_url_goes_before_all() -> None:
    server = {
        "url": "https://{region}.example:{port}/v1",
        "variables": {"region": {"default": "eu"}, "port": {"default": 443}},
    }
    root = document({"/a#b": {"get": {"servers": [server]}}})

    plain, based = imported(root).tools[0].tool, imported(root, base_url="http://localhost:1").tools[0].tool

    assert plain.request is not None
    assert based.request is not None
    assert plain.request.url == "https://eu.example:443/v1/a"
    assert based.request.url == "/a"


SCHEMES: dict[str, Any] = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api_key"},
    "basic": {"type": "http", "scheme": "Basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "oidc": {"type": "openIdConnect"},
    "tls": {"type": "mutualTLS"},
    "digest": {"type": "http", "scheme": "digest"},
}


SECURITY: list[tuple[Any, Any, Any]] = [
    ([{"key": []}], None, ((AuthScheme("key", "header", "X-Key"),),)),
    ([{"key": []}], [], ()),
    (None, None, ()),
    (None, [{}, {"basic": []}], ((), (AuthScheme("basic", "basic"),))),
    (None, [{"key": [], "bearer": []}], ((AuthScheme("key", "header", "X-Key"), AuthScheme("bearer", "bearer")),)),
    (
        None,
        [{"oauth": ["a"]}, {"oauth": ["b"]}, {"oidc": []}],
        ((AuthScheme("oauth", "bearer"),), (AuthScheme("oidc", "bearer"),)),
    ),
    (None, [{"tls": []}, {"query": []}], ((AuthScheme("query", "query", "api_key"),),)),
]


@pytest.mark.parametrize(("root", "own", "alternatives"), SECURITY)
def test_who_calls_is_shown_by_one_of_the_alternatives(root: Any, own: Any, alternatives: Any) -> None:
    said = {} if own is None else {"security": own}
    everywhere = {} if root is None else {"security": root}

    assert request_of(said, components={"securitySchemes": SCHEMES}, **everywhere).security == alternatives


@pytest.mark.parametrize("name", ["tls", "digest"])
def test_security_that_no_secret_can_serve_leaves_no_tool(name: str) -> None:
    found = skipped({"security": [{name: []}]}, components={"securitySchemes": SCHEMES})

    assert found.path == f"components.securitySchemes.{name}"
    assert "is not supported" in found.reason


def test_a_key_that_a_secret_is_shown_for_is_not_asked_of_the_model() -> None:
    said: dict[str, Any] = {
        "security": [{"key": []}],
        "parameters": [{"name": "x-key", "in": "header", "required": True}],
    }

    assert operation(said, components={"securitySchemes": SCHEMES}).tool.parameters["properties"] == {}


def test_a_query_of_the_server_is_left_out_and_told() -> None:
    found = operation({}, servers=[{"url": "https://api.example.com/v1/?key=1"}])

    assert found.tool.request is not None
    assert found.tool.request.url == "https://api.example.com/v1/things"
    assert found.notes == ("servers.0: omitted the query of the server's address",)
