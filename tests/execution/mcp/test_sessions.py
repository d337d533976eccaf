"""Sessions with MCP servers: when they are opened, shared, lost and ended."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count, product

import pytest
from aiohttp import web

from holdfast.core.errors import TimedOut
from holdfast.mcp.protocol import McpError
from tests.execution.mcp.scripted import (
    CALL,
    INITIALIZED,
    TELL,
    TOLD,
    AskedClient,
    Message,
    ScriptedServer,
    failure,
    reply,
    response,
    server_at,
    sessions,
)

pytestmark = pytest.mark.req("MCP-05")

Refuse = Callable[[object], web.Response]  # takes the id of a request


class ServerWithSessions(ScriptedServer):
    """A server that keeps sessions. `refuse` answers requests of sessions that it does not know."""

    def __init__(self, refuse: Refuse | None = None) -> None:
        super().__init__()
        self.live: list[str] = []
        self.ended: list[str] = []
        numbers = count(1)

        async def initialize(_: web.Request, message: Message) -> web.StreamResponse:
            self.live.append(f"s{next(numbers)}")
            return reply(response(message["id"], INITIALIZED), session=self.live[-1])

        async def call(request: web.Request, message: Message) -> web.StreamResponse:
            if refuse is not None and request.headers.get("Mcp-Session-Id") not in self.live:
                return refuse(message["id"])
            return reply(response(message["id"], TOLD))

        async def delete(request: web.Request, _: Message) -> web.StreamResponse:
            self.ended.append(request.headers["Mcp-Session-Id"])
            return web.Response(status=200)

        self.handlers |= {"initialize": initialize, CALL: call, "DELETE": delete}


REFUSALS: Sequence[Refuse] = (
    lambda _: reply(failure(None, -32001, "Session not found"), 404),
    lambda id: reply(failure(id, -32001, "Session not found"), 404),
    lambda _: reply(failure("server-error", -32600, "Session not found"), 404),
    lambda id: reply(failure(id, -32000, "Bad Request: No valid session ID provided"), 400),
    lambda _: reply(failure(None, -32000, "Bad Request: Server not initialized"), 400),
    lambda _: web.Response(status=404),
    lambda _: web.Response(status=400, text="No valid session ID provided"),
)


@pytest.mark.parametrize("refuse", REFUSALS)
async def test_a_session_that_its_server_has_lost_is_opened_again(refuse: Refuse) -> None:
    service = ServerWithSessions(refuse)
    async with service.serving(), sessions() as servers:
        upstream = server_at(service)
        await servers.call(upstream, CALL, TELL)
        service.live.clear()  # it was restarted

        results = [await servers.call(upstream, CALL, TELL) for _ in range(2)]

    assert results == [TOLD, TOLD]
    assert service.methods["initialize"] == 2


async def test_an_error_of_a_request_with_the_status_400_does_not_end_its_session() -> None:
    service = ServerWithSessions()

    async def refuse(_: web.Request, message: Message) -> web.StreamResponse:
        return reply(failure(message["id"], -32602, "there is no such tool"), 400)

    service.handlers[CALL] = refuse
    async with service.serving(), sessions() as servers:
        for _ in range(2):
            with pytest.raises(McpError, match="there is no such tool"):
                await servers.call(server_at(service), CALL, TELL)

    assert service.methods["initialize"] == 1
    assert service.methods[CALL] == 2


async def test_a_session_in_use_waits_for_no_session_that_another_user_opens() -> None:
    service = ServerWithSessions()
    opened, hanging = service.handlers["initialize"], asyncio.Event()

    async def hang(request: web.Request, message: Message) -> web.StreamResponse:
        if service.methods["initialize"] != 2:
            return await opened(request, message)
        hanging.set()
        await asyncio.Event().wait()
        return web.Response()

    service.handlers["initialize"] = hang
    async with service.serving(), sessions() as servers, asyncio.timeout(5):
        await servers.call(server_at(service, "ann"), CALL, TELL)
        bob = asyncio.create_task(servers.call(server_at(service, "bob"), CALL, TELL))
        await hanging.wait()

        warm = await servers.call(server_at(service, "ann"), CALL, TELL)
        cold = await servers.call(server_at(service, "carol"), CALL, TELL)
        bob.cancel()

    assert warm == cold == TOLD


async def test_a_handshake_that_hangs_fails_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.execution.mcp.connections.HANDSHAKE_SECONDS", 0.05)
    service = ServerWithSessions()

    async def hang(_: web.Request, __: Message) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    service.handlers["initialize"] = hang
    async with service.serving(), sessions() as servers, asyncio.timeout(5):
        with pytest.raises(TimedOut, match="did not open a session"):
            await servers.call(server_at(service), CALL, TELL)


async def test_calls_at_the_same_time_open_one_session() -> None:
    service = ServerWithSessions()
    async with service.serving(), sessions() as servers:
        await asyncio.gather(*(servers.call(server_at(service, "ann"), CALL, TELL) for _ in range(20)))

    assert service.methods["initialize"] == 1


async def test_unknown_capabilities_of_clients_open_no_sessions() -> None:
    service = ServerWithSessions()
    async with service.serving(), sessions() as servers:
        for number in range(5):
            client = AskedClient(elicitation={"x": number}, roots={"listChanged": bool(number % 2)}, y=number)
            await servers.call(server_at(service, "ann"), CALL, TELL, client=client)

    assert service.methods["initialize"] == 1


async def test_no_user_gets_the_session_in_which_the_lists_of_a_server_are_read() -> None:
    service = ServerWithSessions()
    async with service.serving(), sessions() as servers:
        await servers.about(server_at(service))
        await servers.call(server_at(service, "ann"), CALL, TELL)

    assert service.methods["initialize"] == 2


async def test_a_user_with_many_sessions_ends_its_own() -> None:
    service = ServerWithSessions()
    elicitation: Sequence[Message] = ({}, {"form": {}}, {"url": {}})
    sampling: Sequence[Message] = ({}, {"tools": {}}, {"context": {}})
    async with service.serving(), sessions() as servers:
        await servers.call(server_at(service, "ann", sampling=True), CALL, TELL)
        for each, other in product(elicitation, sampling):
            client = AskedClient(elicitation=each, sampling=other)
            await servers.call(server_at(service, "bob", sampling=True), CALL, TELL, client=client)
        ended = [*service.ended]

    assert service.methods["initialize"] == 10
    assert ended == ["s2"]
