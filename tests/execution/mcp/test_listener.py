"""The streams on which servers announce changes: how they are opened, and how often."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import UUID

import pytest
from aiohttp import web

from holdfast.core.shares import Holder, current_holder
from holdfast.execution.mcp.connections import Upstream
from holdfast.execution.mcp.listener import McpListener
from holdfast.execution.mcp.runner import McpBackends
from holdfast.execution.mcp.servers import McpServers
from holdfast.execution.redaction import Redaction
from holdfast.mcp.protocol import METHOD_NOT_FOUND, McpError
from holdfast.postgres.database import Postgres, Row
from tests.execution.mcp.scripted import (
    TENANT,
    Message,
    ScriptedServer,
    Stream,
    failure,
    reply,
    server_at,
    sessions,
)

pytestmark = pytest.mark.req("MCP-05", "SKILL-05")

ROW: dict[str, Any] = {"host_id": UUID(TENANT), "backend": {}, "name": "first", "announces": ["tools"]}


class OneServer:
    """The servers of a tenant that has one, and a database without tenants."""

    def __init__(self, servers: McpServers, upstream: Upstream) -> None:
        self.servers = servers
        self.holders: set[Holder] = set()
        self._upstream = upstream

    async def upstream(self, _: object) -> tuple[Upstream, Redaction]:
        """The server."""
        self.holders.add(current_holder())
        return self._upstream, Redaction(())

    def tenant(self, _: UUID) -> None:
        """A database that nobody uses."""


@pytest.fixture
async def servers() -> AsyncIterator[McpServers]:
    """Sessions with servers."""
    async with sessions() as servers:
        yield servers


async def refuse(_: web.Request, message: Message) -> web.StreamResponse:
    """Know no stream of changes."""
    return reply(failure(message["id"], METHOD_NOT_FOUND, "there are no changes"))


async def test_a_server_without_a_stream_of_changes_is_an_error(servers: McpServers) -> None:
    service = ScriptedServer(modern=True)
    service.handlers["subscriptions/listen"] = refuse
    async with service.serving():
        with pytest.raises(McpError, match="there are no changes"):
            await servers.listen(server_at(service), ["tools"])


async def test_a_stream_that_is_not_opened_in_time_is_given_up(
    servers: McpServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.mcp.connections.OPEN_SECONDS", 0.2)
    service = ScriptedServer(modern=True)

    async def hang(_: web.Request, __: Message) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    service.handlers["subscriptions/listen"] = hang
    async with service.serving(), asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await servers.listen(server_at(service), ["tools"])


@pytest.mark.parametrize("modern", [True, False])
async def test_streams_that_end_at_once_are_opened_less_and_less_often(
    servers: McpServers, monkeypatch: pytest.MonkeyPatch, modern: bool
) -> None:
    pauses: list[float] = []
    service, methods = ScriptedServer(modern=modern), Counter[str]()
    ended, sleep = asyncio.Event(), asyncio.sleep

    async def pause(seconds: float) -> None:
        if seconds > 0.5:
            pauses.append(seconds)
        if len(pauses) == 6:
            ended.set()
        await sleep(0)

    async def end(request: web.Request, _: Message) -> web.StreamResponse:
        methods["listen"] += 1
        return (await Stream.begin(request)).response

    service.handlers |= {"subscriptions/listen": end, "GET": end}
    async with service.serving():
        one = OneServer(servers, server_at(service))
        listener = McpListener(cast(Postgres, one), lambda _: cast(McpBackends, one))
        monkeypatch.setattr("holdfast.execution.mcp.listener.asyncio.sleep", pause)
        task = asyncio.create_task(listener._listen(cast(Row, ROW)))  # pyright: ignore[reportPrivateUsage]
        async with asyncio.timeout(5):
            await ended.wait()
        task.cancel()
        await asyncio.wait([task])

    assert one.holders == {(TENANT, "")}
    assert methods["listen"] >= 6
    assert pauses[5] > 4 * pauses[0]
