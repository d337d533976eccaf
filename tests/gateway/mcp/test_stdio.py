"""MCP in lines, without a process: one client, both eras, what is asked and told in between."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast import App, Run
from holdfast.access.principals import OWNER_SCOPES, Principal
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.stdio import AT_ONCE, Stdio
from holdfast.mcp.protocol import CAPABILITIES, INVALID_REQUEST, LEGACY, METHOD_NOT_FOUND, MODERN, VERSION

PATIENCE = 30  # seconds: a busy machine is no failure
META: dict[str, Any] = {VERSION: MODERN, CAPABILITIES: {}}
HELLO: dict[str, Any] = {
    "protocolVersion": LEGACY[0],
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def app() -> App:
    """A program whose tool waits until it is let go, and one that asks its client."""
    app = App("lines")
    gate = asyncio.Event()

    @app.tool
    async def wait() -> str:
        """Waits."""
        await gate.wait()
        return "waited"

    @app.tool
    async def let_go() -> str:
        """Lets what waits go on."""
        gate.set()
        return "gone"

    @app.tool
    async def folders(run: Run) -> str:
        """Asks where the client works."""
        return str((await run.client.roots()).result["roots"])

    @app.resource("lines://news")
    def news() -> str:
        """What is new."""
        return "nothing"

    return app


class Lines:
    """The other end: what it writes, and what it is told."""

    def __init__(self, gateway: Gateway, caller: Principal) -> None:
        self._typed: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._served = asyncio.create_task(Stdio(gateway, caller, self._hear).serve(self._lines()))

    def send(self, id: int | None, method: str, **params: Any) -> None:
        """Write a request, or a notification."""
        self.write({"jsonrpc": "2.0", **({} if id is None else {"id": id}), "method": method, "params": params})

    def write(self, message: Any) -> None:
        """Write a message."""
        self._typed.put_nowait(json.dumps(message).encode())

    async def next(self) -> dict[str, Any]:
        """What is told next."""
        async with asyncio.timeout(PATIENCE):
            return await self._heard.get()

    async def ask(self, id: int, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request, when nothing else is told."""
        self.send(id, method, **params)
        return await self.next()

    async def end(self) -> list[dict[str, Any]]:
        """Write nothing more: what was told until it ended."""
        self._typed.put_nowait(None)
        async with asyncio.timeout(PATIENCE):
            await self._served
        return [self._heard.get_nowait() for _ in range(self._heard.qsize())]

    async def _lines(self) -> AsyncGenerator[bytes]:
        while (line := await self._typed.get()) is not None:
            yield line

    async def _hear(self, line: bytes) -> None:
        assert b"\n" not in line
        self._heard.put_nowait(json.loads(line))


@pytest.fixture
async def lines(gateway: Gateway) -> AsyncIterator[Lines]:
    """A client that talks in lines."""
    async with talking(gateway) as lines:
        yield lines


@asynccontextmanager
async def talking(gateway: Gateway) -> AsyncGenerator[Lines]:
    tenant = await gateway.engine.database.tenant()
    lines = Lines(gateway, Principal(tenant, "ann", OWNER_SCOPES))
    yield lines
    await lines.end()


def text_of(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


@pytest.mark.req("MCP-01")
async def test_requests_are_answered_as_they_are_ready(lines: Lines) -> None:
    lines.send(1, "tools/call", _meta=META, name="wait", arguments={})
    lines.send(2, "tools/call", _meta=META, name="let_go", arguments={})

    answers = [await lines.next(), await lines.next()]

    assert {answer["id"]: text_of(answer) for answer in answers} == {1: "waited", 2: "gone"}


@pytest.mark.req("MCP-01")
async def test_an_id_belongs_to_one_request_at_a_time(lines: Lines) -> None:
    lines.send(1, "tools/call", _meta=META, name="wait", arguments={})
    refused = await lines.ask(1, "tools/list", _meta=META)
    lines.send(2, "tools/call", _meta=META, name="let_go", arguments={})
    answers = [await lines.next(), await lines.next()]

    assert (refused["id"], refused["error"]["code"]) == (1, INVALID_REQUEST)
    assert {answer["id"] for answer in answers} == {1, 2}


@pytest.mark.req("MCP-01")
async def test_more_requests_than_a_client_may_have_are_refused(lines: Lines) -> None:
    for number in range(AT_ONCE):
        lines.send(number, "tools/call", _meta=META, name="wait", arguments={})
    refused = await lines.ask(AT_ONCE, "tools/list", _meta=META)

    assert refused["id"] == AT_ONCE
    assert refused["error"]["data"]["code"] == "overloaded"


@pytest.mark.req("MCP-01")
async def test_what_waits_when_no_more_lines_come_is_cancelled_and_not_answered(gateway: Gateway) -> None:
    async with talking(gateway) as lines:
        lines.send(1, "tools/call", _meta=META, name="wait", arguments={})
        lines.send(2, "tools/list", _meta=META)
        told = await lines.end()

        assert [answer["id"] for answer in told] == [2]


@pytest.mark.req("MCP-01")
async def test_a_session_begins_once_and_has_the_methods_of_its_era(lines: Lines) -> None:
    hello = await lines.ask(1, "initialize", **HELLO)
    lines.send(None, "notifications/initialized")
    again = await lines.ask(2, "initialize", **HELLO)
    ping = await lines.ask(3, "ping")
    level = await lines.ask(4, "logging/setLevel", level="error")
    unknown = await lines.ask(5, "server/discover")

    assert hello["result"]["protocolVersion"] == LEGACY[0]
    assert again["error"]["code"] == INVALID_REQUEST
    assert (ping["result"], level["result"]) == ({}, {})
    assert unknown["error"]["code"] == METHOD_NOT_FOUND


@pytest.mark.req("MCP-01")
async def test_a_session_is_asked_on_the_way_and_strange_answers_mean_nothing(lines: Lines) -> None:
    await lines.ask(1, "initialize", **HELLO)
    question = await lines.ask(2, "tools/call", name="folders", arguments={})
    others: list[Any] = ["somebody else's", 7, [], {}, None]
    for strange in others:
        lines.write({"jsonrpc": "2.0", "id": strange, "result": {}})
    lines.write({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///here"}]}})
    answer = await lines.next()

    assert question["method"] == "roots/list"
    assert (answer["id"], text_of(answer)) == (2, "[{'uri': 'file:///here'}]")


@pytest.mark.req("MCP-01")
async def test_a_session_hears_of_the_resources_that_it_follows(app: App, lines: Lines) -> None:
    await lines.ask(1, "initialize", **HELLO)
    followed = await lines.ask(2, "resources/subscribe", uri="lines://news")
    await lines.ask(3, "resources/subscribe", uri="lines://other")
    await lines.ask(4, "resources/unsubscribe", uri="lines://other")
    app.updated("lines://other")
    app.updated("lines://news")
    told = await lines.next()

    assert followed["result"] == {}
    assert told == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "lines://news"}}
