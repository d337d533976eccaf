"""How many requests a call sends to its MCP server."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.text import parse, render
from holdfast.mcp.protocol import LEGACY, MODERN
from tests.execution.backend import Handler, Service
from tests.execution.mcp.federation import own
from tests.server.mcp_wire import call
from tests.server.wire import Site

TOOL = {"name": "tell", "inputSchema": {"type": "object"}}
CALLS = 20


@pytest.mark.req("MCP-05")
@pytest.mark.parametrize("versions", [(MODERN,), LEGACY], ids=["modern", "legacy"])
async def test_a_warm_call_is_one_request_to_its_server(site: Site, versions: Sequence[str]) -> None:
    async with Service().serving() as service:
        methods = Counter[str]()
        service.will_answer("/mcp", mcp_server(versions, methods))
        await (await own(site)).sources.add("first", kind="mcp", url=f"{service.url}/mcp")
        await call(site, "first_tell")
        service.asked.clear()
        methods.clear()

        replies = await asyncio.gather(*(call(site, "first_tell") for _ in range(CALLS)))

        assert [reply.json()["result"]["content"][0]["text"] for reply in replies] == ["told"] * CALLS
        assert methods == {"tools/call": CALLS}
        assert len(service.asked) == CALLS


def mcp_server(versions: Sequence[str], methods: Counter[str]) -> Handler:
    """A server with one tool, which speaks these versions, keeps sessions in the legacy ones, and counts methods."""
    about: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "teller", "version": "1"}}
    results: dict[str, dict[str, Any]] = {
        "tools/list": {"tools": [TOOL], "ttlMs": 0, "cacheScope": "private"},
        "tools/call": {"content": [{"type": "text", "text": "told"}]},
    }
    if MODERN in versions:
        results["server/discover"] = {**about, "supportedVersions": [*versions]}
    else:
        results["initialize"] = {**about, "protocolVersion": versions[0]}

    async def answer(request: web.Request) -> web.StreamResponse:
        message = parse(await request.read())
        method = message["method"]
        methods[method] += 1
        if "id" not in message:
            return web.Response(status=202)
        if method in results:
            content: dict[str, Any] = {"result": results[method]}
        else:
            content = {"error": {"code": -32601, "message": "there is no such method"}}
        headers = {"Mcp-Session-Id": "one"} if method == "initialize" else {}
        body = render({"jsonrpc": "2.0", "id": message["id"], **content})
        return web.Response(body=body, content_type="application/json", headers=headers)

    return answer
