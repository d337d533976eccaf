"""Streams of MCP servers that stay open: they keep nobody from calling."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.shares import set_holder
from holdfast.core.text import parse
from holdfast.execution.egress import PER_HOST
from holdfast.execution.mcp.connections import Upstream
from holdfast.execution.mcp.servers import McpServers
from holdfast.mcp.inputs import InputRequest, Reply
from tests.execution.backend import Service
from tests.execution.mcp.scripted import (
    CALL,
    INITIALIZED,
    TELL,
    TENANT,
    TOLD,
    AskedClient,
    Message,
    ScriptedServer,
    Stream,
    response,
    server_at,
    sessions,
)

pytestmark = pytest.mark.req("MCP-05", "SAFE-06")

MORE = PER_HOST + 5  # users than connections to one host


class SseServer(Service):
    """A server with the transport of 2024: HTTP with SSE. `streams` are those that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: dict[str, Stream] = {}
        self.opened = 0
        self.will_answer("/mcp", self._open)
        self.will_answer("/message", self._take)

    async def _open(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            return web.Response(status=405)
        stream, self.opened = await Stream.begin(request), self.opened + 1
        id = str(self.opened)
        self.streams[id] = stream
        await stream.response.write(f"event: endpoint\ndata: /message?id={id}\n\n".encode())
        with suppress(ConnectionError):
            while True:  # until the client closes it
                await stream.response.write(b": still here\n\n")
                await asyncio.sleep(0.02)
        del self.streams[id]
        return stream.response

    async def _take(self, request: web.Request) -> web.StreamResponse:
        message = parse(await request.read())
        if "id" in message:
            result = INITIALIZED if message["method"] == "initialize" else TOLD
            await self.streams[request.query["id"]].send(response(message["id"], result))
        return web.Response(status=202)


async def call_as(servers: McpServers, upstream: Upstream, client: AskedClient | None = None) -> Mapping[str, Any]:
    """Call a tool in the name of the user of a server."""
    set_holder(TENANT, upstream.user)
    return await servers.call(upstream, CALL, TELL, client=client or AskedClient())


async def test_an_idle_session_of_http_with_sse_takes_no_place_among_the_connections() -> None:
    service = SseServer()
    async with service.serving(), sessions() as servers, asyncio.timeout(10):
        for number in range(MORE):
            assert await asyncio.create_task(call_as(servers, server_at(service, f"user {number}"))) == TOLD

        assert service.opened == len(service.streams) == MORE


async def test_a_tenant_has_a_limited_number_of_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.execution.mcp.servers.MAX_OF_TENANT", 3)
    first, second = SseServer(), SseServer()
    async with first.serving(), second.serving(), sessions() as servers, asyncio.timeout(10):
        for number in range(2):
            await call_as(servers, server_at(first, f"user {number}"))
        for number in range(3):
            await call_as(servers, server_at(second, f"user {number}"))
        while len(first.streams) + len(second.streams) > 3:  # noqa: ASYNC110 - the server learns it later
            await asyncio.sleep(0.01)

    assert (first.opened, second.opened) == (2, 3)


async def test_a_call_that_waits_for_a_person_takes_no_place_among_the_connections() -> None:
    service, waiting, answered = ScriptedServer(), asyncio.Semaphore(0), asyncio.Event()

    async def ask(request: web.Request, message: Message) -> web.StreamResponse:
        stream = await Stream.begin(request)
        if "elicitation" in message["params"]["arguments"]:
            question: dict[str, Any] = {"message": "sure?", "requestedSchema": {}}
            await stream.send({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question})
            await answered.wait()
        await stream.send(response(message["id"], TOLD))
        return stream.response

    class Slow(AskedClient):
        async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
            """Wait."""
            waiting.release()
            await answered.wait()
            return await super().inputs(requests)

    async def wait(upstream: Upstream) -> None:
        set_holder(TENANT, upstream.user)
        await servers.call(upstream, CALL, {"name": "t", "arguments": {"elicitation": 1}}, client=Slow(elicitation={}))

    service.handlers[CALL] = ask
    async with service.serving(), sessions() as servers, asyncio.timeout(10):
        calls = [asyncio.create_task(wait(server_at(service, f"user {number}"))) for number in range(MORE)]
        for _ in calls:
            await waiting.acquire()

        assert await call_as(servers, server_at(service, "ann")) == TOLD
        answered.set()
        await asyncio.gather(*calls)
