"""Servers over HTTP that break the protocol: their callers get a clear error in time, and nobody else notices."""

import asyncio
import json
import statistics
from collections.abc import AsyncIterator, Mapping
from time import monotonic
from typing import Any

import pytest
from aiohttp import web

from holdfast.postgres.embedded import EmbeddedServer
from tests.execution.backend import Service
from tests.execution.mcp.federation import gateway, own
from tests.server.mcp_wire import call
from tests.server.wire import Site

pytestmark = pytest.mark.req("MCP-05", "SAFE-06")

LIMIT = 200_000  # bytes of a response
SHORT = 1.0  # seconds for a call
STREAM = {"Content-Type": "text/event-stream"}


class Faulty(Service):
    """A server of the version 2025-11-25 without sessions; `faults` answers calls of tools by their names."""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer a message."""
        message = await request.json()
        id, method = message.get("id"), message["method"]
        match method:
            case "initialize":
                about = {"name": "faulty", "version": "1"}
                result: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
            case "tools/list":
                result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("good", *FAULTS)]}
            case "tools/call" if message["params"]["name"] != "good":
                return await FAULTS[message["params"]["name"]](request, id)
            case "tools/call":
                result = {"content": [{"type": "text", "text": "fine"}]}
            case _ if id is None:
                return web.Response(status=202)
            case _:
                error = {"code": -32601, "message": "unknown"}
                return web.json_response({"jsonrpc": "2.0", "id": id, "error": error})
        return web.json_response({"jsonrpc": "2.0", "id": id, "result": result})


async def die(request: web.Request, _: object) -> web.StreamResponse:
    """Close the connection."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def hang(_: web.Request, __: object) -> web.StreamResponse:
    """Answer never."""
    await asyncio.Event().wait()
    return web.Response()


async def huge(request: web.Request, _: object) -> web.StreamResponse:
    """Answer with a gigabyte."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for _number in range(2**14):
        await response.write(b"x" * 2**16)
    return response


async def garbage(_: web.Request, __: object) -> web.StreamResponse:
    """Answer with something that is not JSON."""
    return web.Response(body=b'{"jsonrpc": "2.0", "id":', content_type="application/json")


async def wrong_id(_: web.Request, __: object) -> web.StreamResponse:
    """Answer another request."""
    return web.json_response({"jsonrpc": "2.0", "id": "another", "result": {"content": []}})


async def page(_: web.Request, __: object) -> web.StreamResponse:
    """Answer with a page for people."""
    return web.Response(text="<h1>Bad gateway</h1>", content_type="text/html", status=502)


async def not_content(_: web.Request, id: object) -> web.StreamResponse:
    """Answer with a result that is none."""
    return web.json_response({"jsonrpc": "2.0", "id": id, "result": {"content": "fine"}})


async def deep(_: web.Request, id: object) -> web.StreamResponse:
    """Answer with very deep JSON."""
    body = '{"jsonrpc":"2.0","id":' + json.dumps(id) + ',"result":' + "[" * 50_000 + "]" * 50_000 + "}"
    return web.Response(text=body, content_type="application/json")


async def endless(request: web.Request, _: object) -> web.StreamResponse:
    """Send notifications and no response."""
    response = web.StreamResponse(headers=STREAM)
    await response.prepare(request)
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
    while True:
        await response.write(f"data: {line}\n\n".encode() * 100)


async def silent(request: web.Request, _: object) -> web.StreamResponse:
    """Keep a stream open with comments."""
    response = web.StreamResponse(headers=STREAM)
    await response.prepare(request)
    while True:
        await response.write(b": still here\n\n")
        await asyncio.sleep(0.05)


async def cut(request: web.Request, _: object) -> web.StreamResponse:
    """End a stream before the response."""
    response = web.StreamResponse(headers=STREAM)
    await response.prepare(request)
    await response.write(b": that is all\n\n")
    return response


FAULTS: Mapping[str, Any] = {
    fault.__name__: fault
    for fault in (die, hang, huge, garbage, wrong_id, page, not_content, deep, endless, silent, cut)
}
EXPECTED: Mapping[str, str] = {
    "die": "closed the connection",
    "hang": "did not respond within 1 seconds",
    "huge": "more than 200,000 bytes",
    "garbage": "not valid JSON",
    "wrong_id": "without a result",
    "page": "returned 502",
    "not_content": "invalid result",
    "deep": "not valid JSON",
    "endless": "more than 800,000 bytes",
    "silent": "did not respond within 1 seconds",
    "cut": "without a result",
}


@pytest.fixture
async def upstream() -> AsyncIterator[Faulty]:
    """The server."""
    service = Faulty()
    service.will_answer("/mcp", service.serve)
    async with service.serving():
        yield service


@pytest.fixture
async def site(
    server: EmbeddedServer, template: str, tmp_path: Any, no_models: None, upstream: Faulty
) -> AsyncIterator[Site]:
    """A gateway with that server as a source."""
    async with gateway(server, template, tmp_path, **{"execution.max_response_bytes": LIMIT}) as site:
        sources = (await own(site)).sources
        await sources.add("bad", kind="mcp", url=f"{upstream.url}/mcp", timeout=SHORT)
        yield site


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_of_a_server_is_an_error_in_time_and_the_next_call_works(site: Site, fault: str) -> None:
    began = monotonic()
    failed = (await call(site, f"bad_{fault}")).json()["result"]
    lasted = monotonic() - began
    after = (await call(site, "bad_good")).json()["result"]

    assert failed["isError"] is True
    assert EXPECTED[fault] in failed["content"][0]["text"]
    assert lasted < SHORT + 2
    assert after["content"][0]["text"] == "fine"


async def test_calls_of_other_tools_are_as_quick_while_a_server_fails(site: Site) -> None:
    async def measure(calls: int) -> float:
        times: list[float] = []
        for _ in range(calls):
            began = monotonic()
            assert (await call(site, "bad_good")).json()["result"]["content"][0]["text"] == "fine"
            times.append(monotonic() - began)
        return statistics.median(times)

    await measure(20)
    calm = await measure(50)
    faults = [asyncio.create_task(call(site, f"bad_{fault}")) for fault in ("hang", "silent", "endless", "huge") * 3]
    beside = await measure(50)
    await asyncio.gather(*faults)

    assert beside < 5 * calm + 0.1
