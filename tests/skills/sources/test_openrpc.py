from typing import Any

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.skills.request import Backend, RpcMethod
from holdfast.skills.sources.importers import import_tools
from holdfast.skills.sources.openrpc import import_openrpc
from holdfast.skills.sources.source import Choice

pytestmark = pytest.mark.req("MCP-11")

EVERYTHING = Choice(everything=True)
ENDPOINT = "https://market.example/rpc"
ORDER = "lightapi.net/market/createOrder/0.1.0"


def param(name: str, *, required: Any = False, **schema: Any) -> dict[str, Any]:
    return {"name": name, "required": required, "schema": schema or {"type": "string"}}


def method(name: str, *params: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "params": list(params), "result": {"name": "result", "schema": True}, **more}


def document(*methods: dict[str, Any], **more: Any) -> dict[str, Any]:
    info = {"title": "Market", "version": "2.1"}
    return {"openrpc": "1.3.2", "info": info, "servers": [{"url": ENDPOINT}], "methods": list(methods), **more}


def test_a_method_becomes_a_tool_with_its_params_as_arguments() -> None:
    item = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
    root = document(
        method(
            ORDER,
            param("item", required=True, **{"$ref": "#/components/schemas/Item"}),
            {**param("count", type="integer"), "description": "How many."},
            summary="Create an order",
            description="Creates an order for an item.",
        ),
        components={"schemas": {"Item": item}},
    )

    found = import_openrpc(root, EVERYTHING)

    (imported,) = found.tools
    tool = imported.tool
    assert (found.title, found.version, imported.operation) == ("Market", "2.1", ORDER)
    assert (tool.kind, tool.name, tool.service) == ("jsonrpc", "lightapi_net_market_createOrder_0_1_0", ORDER)
    assert tool.description == "Create an order\n\nCreates an order for an item."
    assert tool.request is not None
    assert (tool.request.url, tool.request.rpc) == (ENDPOINT, RpcMethod(ORDER))
    assert tool.parameters["required"] == ["item"]
    assert tool.parameters["properties"]["count"] == {"type": "integer", "description": "How many."}
    assert tool.parameters["$defs"]["Item"] == item
    assert tool.idempotent is False


def test_a_method_that_takes_its_params_by_position_says_in_which_order() -> None:
    root = document(method("subtract", param("minuend"), param("subtrahend"), paramStructure="by-position"))

    (imported,) = import_openrpc(root, EVERYTHING).tools

    assert imported.tool.request is not None
    assert imported.tool.request.rpc == RpcMethod("subtract", ("minuend", "subtrahend"))
    assert imported.tool.service is None  # it has not the form of a service id


def test_marks_tags_and_names_choose_methods_and_the_document_forbids_some() -> None:
    root = document(
        method("marked", **{"x-ai-enabled": True}),
        method("tagged", tags=[{"name": "orders"}]),
        method("named"),
        method("forbidden", **{"x-ai-enabled": False}),
        method("left"),
        method("rpc.discover"),
    )

    found = import_openrpc(root, Choice(operations=("named", "forbidden", "none"), tags=("orders",)))

    assert [each.operation for each in found.tools] == ["marked", "tagged", "named"]
    reasons = {each.operation: each.reason for each in found.skipped}
    assert reasons.keys() == {"forbidden", "left", "none"}
    assert "forbids" in reasons["forbidden"]
    assert "no such operation" in reasons["none"]


def test_methods_that_cannot_be_a_tool_are_skipped_with_the_reason() -> None:
    root = document(
        method("twice"),
        method("twice"),
        method("no such schema", param("a", **{"$ref": "#/components/schemas/None"})),
        method("odd name", param("a b")),
        {"params": []},
        {"$ref": "https://elsewhere.example/methods.json"},
        method("a.b"),
        method("a-b"),
        method("a b"),
    )

    found = import_openrpc(root, EVERYTHING)

    names = [each.tool.name for each in found.tools]
    assert names[0] == "twice"
    assert [name.startswith(("a_b", "a-b")) for name in names[1:]] == [True, True, True]
    assert len({*names}) == len(names)
    assert len(found.skipped) == 5
    assert "twice" in found.skipped[0].reason


@pytest.mark.parametrize(
    ("servers", "location", "base_url", "expected"),
    [
        ([{"url": "https://a.example/rpc"}], "https://b.example/openrpc.json", None, "https://a.example/rpc"),
        ([{"url": "/rpc"}], "https://b.example/docs/openrpc.json", None, "https://b.example/rpc"),
        ([], "https://b.example/rpc", None, "https://b.example/rpc"),
        ([{"url": "https://{host}/rpc"}], "https://b.example/rpc", None, "https://b.example/rpc"),
        ([{"url": "https://a.example/rpc"}], "", "https://c.example/rpc", "https://c.example/rpc"),
    ],
)
def test_calls_go_to_the_base_url_the_documents_server_or_where_it_was_read(
    servers: list[Any], location: str, base_url: str | None, expected: str
) -> None:
    root = document(method("a")) | {"servers": servers}

    (imported,) = import_openrpc(root, EVERYTHING, location=location, base_url=base_url).tools

    assert imported.tool.request is not None
    assert imported.tool.request.url == expected


def test_a_document_without_an_address_or_methods_is_refused() -> None:
    with pytest.raises(InvalidInput, match="address of its service"):
        import_openrpc(document(method("a")) | {"servers": []}, EVERYTHING)
    with pytest.raises(InvalidInput, match="methods"):
        import_openrpc({"openrpc": "1.3.2", "servers": [{"url": ENDPOINT}]}, EVERYTHING)


def test_the_document_says_which_kind_it_is() -> None:
    rpc = (
        b'{"openrpc": "1.3.2", "servers": [{"url": "https://a.example/rpc"}], "methods": [{"name": "a", "params": []}]}'
    )
    rest = b"openapi: 3.0.0\nservers: [{url: 'https://a.example'}]\npaths:\n  /pets: {get: {}}\n"

    assert import_tools(rpc, None, EVERYTHING, Backend())[0] == "jsonrpc"
    assert import_tools(rest, None, EVERYTHING, Backend())[0] == "openapi"
    with pytest.raises(InvalidInput):
        import_tools(rest, "jsonrpc", EVERYTHING, Backend())
