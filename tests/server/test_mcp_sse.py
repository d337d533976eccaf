"""HTTP+SSE, the transport of the oldest clients: a session is its stream, whichever node a message comes to."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from starlette.types import Message, Scope

from holdfast import App, Engine, Run
from holdfast.access.principals import OWNER_SCOPES, Principal
from holdfast.core.config import Config
from holdfast.core.limits import LimitSettings
from holdfast.engine import open_engine
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.mcp.legacy.sessions import McpSessions
from holdfast.server.app import build_app
from holdfast.server.port import ServerAddress
from holdfast.server.request_limits import RequestLimits
from tests.server.conftest import make_key, running, serving
from tests.server.old_client import Event, calling, events, hello, note, request, send, soon, text_of
from tests.server.signs import Signs
from tests.server.wire import PATIENCE, Reply, Site, connect

OLDEST = "2024-11-05"
PATCH = {"content-type": "application/json-patch+json"}


@pytest.fixture
def app(signs: Signs) -> App:
    """A program whose tools talk, ask, or work on."""
    app = App()

    @app.tool
    async def steps(run: Run) -> str:
        """Tell how it goes."""
        for number in range(20):
            await run.client.progress(number)
        return "done"

    @app.tool
    async def folders(run: Run) -> int:
        """Count the folders."""
        return len((await run.client.roots()).result["roots"])

    @app.tool
    async def work() -> str:
        """Work until nobody waits for it any more."""
        try:
            signs.began.set()
            await asyncio.Event().wait()
            return "never"
        finally:
            signs.ended.set()

    return app


@pytest.fixture
async def site(config: Config, app: App, no_models: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """A server that serves the program to the tenant `default`."""
    monkeypatch.setattr("holdfast.server.mcp.legacy.running_requests.QUICK", 0.05)
    monkeypatch.setattr("holdfast.server.mcp.legacy.running_requests.BEAT", 0.6)
    async with serving(config, app) as site:
        yield site


@pytest.fixture
async def other(config: Config, site: Site) -> AsyncIterator[Site]:
    """Another node on the same database, under a path of its own; it runs none of the tools."""
    config = config.model_copy(update={"server": config.server.model_copy(update={"root_path": "/holdfast"})})
    async with open_engine(config=config) as engine, running(engine, config) as site:
        yield site


@dataclass
class Session:
    """A client of HTTP+SSE: its stream, and where it is to post to."""

    port: int
    stream: AsyncIterator[Event]
    address: str
    key: str | None = None

    async def post(self, message: Any, *, port: int | None = None, key: str | None = None) -> Reply:
        """Post a message, to another node and by another key if they are given."""
        async with connect(port or self.port) as wire:
            return await wire.ask("POST", self.address, key=key or self.key, json=message)

    async def answer(self) -> dict[str, Any]:
        """The next message on the stream."""
        return (await soon(self.stream)).message


@asynccontextmanager
async def opened(site: Site, key: str | None = None, path: str = "/mcp/sse") -> AsyncGenerator[Session]:
    """A stream, and what it says first."""
    async with connect(site.port) as wire:
        await send(wire, "GET", path, key, {"accept": "text/event-stream"})
        head = await wire.reply_without_body()
        assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
        stream = events(wire)
        first = await soon(stream)
        assert first.kind == "endpoint"
        yield Session(site.port, stream, first.data, key)


@pytest.mark.req("MCP-01", "MCP-08")
async def test_what_is_posted_to_any_node_is_answered_on_the_stream(site: Site, other: Site) -> None:
    async with opened(other, path="/holdfast/mcp/sse") as session:
        assert session.address.startswith("/holdfast/mcp/message?session_id=")
        there = session.address.removeprefix("/holdfast")
        taken = await session.post(hello(OLDEST))
        begun = await session.answer()
        session.address = there
        noted = await session.post(note("notifications/initialized"), port=site.port)
        called = await session.post(calling("steps", id="s", token="t"), port=site.port)
        told = [await session.answer() for _ in range(21)]
        await session.post(request("no/such", id=9), port=site.port)
        unknown = await session.answer()

    assert [each.status for each in (taken, noted, called)] == [202, 202, 202]
    assert begun["result"]["protocolVersion"] == OLDEST
    assert [each["params"]["progress"] for each in told[:-1]] == [*range(20)]
    assert (told[-1]["id"], text_of(told[-1])) == ("s", "done")
    assert (unknown["id"], unknown["error"]["code"]) == (9, -32601)


@pytest.mark.req("MCP-01", "MCP-08")
async def test_a_client_is_asked_and_told_what_changes_on_the_same_stream(
    site: Site, other: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "holdfast.gateway.mcp.legacy.stored_streams.MOST", 0
    )  # what is asked is told, however full it is
    async with opened(site) as session:
        await session.post(hello("2025-03-26"))
        begun = await session.answer()
        await session.post([calling("folders", id=1), note("notifications/x")])
        question = await session.answer()
        await session.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///a"}]}})
        counted = await session.answer()
        await site.engine.tenant("default").tools.put(
            "newcomer", description="New.", parameters={}, kind="function", reference="shop:new"
        )
        changed = await session.answer()

    assert begun["result"]["protocolVersion"] == "2025-03-26"
    assert question["method"] == "roots/list"
    assert text_of(counted) == "1"
    assert changed["method"] == "notifications/tools/list_changed"


@pytest.mark.req("MCP-01", "MCP-08")
async def test_a_session_is_its_users_and_ends_with_its_stream(site: Site, signs: Signs) -> None:
    ann, bob = await make_key(site.engine, "ann"), await make_key(site.engine, "bob")
    async with opened(site, ann) as session:
        await session.post(hello(OLDEST))
        await session.answer()
        stolen = await session.post(request("ping"), key=bob)
        strange = await site.ask("POST", "/mcp/message", json=request("ping"), key=ann)
        as_http = {"mcp-session-id": session.address.rpartition("=")[2], "accept": "*/*"}
        elsewhere = await site.ask("POST", "/mcp", json=request("ping"), key=ann, headers=as_http)
        bad = await session.post([request("ping")])
        patch = await site.ask("POST", session.address, body=b"[]", headers=PATCH, key=ann)
        async with asyncio.timeout(PATIENCE):
            await session.post(calling("work"))
            await signs.began.wait()
    async with asyncio.timeout(PATIENCE):
        await signs.ended.wait()
        while (await session.post(request("ping"))).status != 404:
            pass

    assert [each.status for each in (stolen, strange, elsewhere, bad, patch)] == [404, 400, 404, 400, 415]
    assert json.loads(bad.body)["error"]["code"] == -32600
    assert [
        (await site.ask(method, path, key=ann)).status
        for method, path in (("POST", "/mcp/sse"), ("GET", "/mcp/message"))
    ] == [405, 405]


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/sse"])
async def test_a_stream_is_one_of_so_many_of_its_user_and_ends_when_the_server_stops(
    words_only: Engine, path: str
) -> None:
    tenant = await words_only.tenants.id_of("default")
    key, ann = await make_key(words_only), Principal(tenant, "ann", OWNER_SCOPES)
    id, _ = await McpSessions.of(Gateways(words_only).of(tenant)).begin(ann, OLDEST, {})
    traffic, sent, refused = RequestLimits(LimitSettings(streams=1)), asyncio.Queue[Message](), asyncio.Queue[Message]()
    headers = {"host": "127.0.0.1", "authorization": f"Bearer {key}", "mcp-session-id": id}
    scope: Scope = {"type": "http", "method": "GET", "path": path, "scheme": "http", "root_path": ""}
    scope |= {"query_string": b"", "headers": [(name.encode(), value.encode()) for name, value in headers.items()]}

    app = build_app(words_only, ServerAddress("127.0.0.1", 80), token="t" * 40, traffic=traffic)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(cast(Any, app(scope, asyncio.Queue[Message]().get, sent.put)))
        started, first = await sent.get(), await sent.get()
        await app({**scope}, asyncio.Queue[Message]().get, refused.put)
        traffic.stopping.set()
        last = await sent.get()

    assert started["status"] == 200
    assert (await refused.get())["status"] == 429
    assert first["more_body"]
    assert (last["body"], last.get("more_body", False)) == (b"", False)
