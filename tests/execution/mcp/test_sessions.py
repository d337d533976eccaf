"""Sessions with MCP servers: when they are opened, shared, lost and ended."""

from collections.abc import Callable, Sequence
from itertools import count

import pytest
from aiohttp import web

from holdfast.mcp.protocol import McpError
from tests.execution.mcp.scripted import (
    CALL,
    INITIALIZED,
    TELL,
    TOLD,
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
