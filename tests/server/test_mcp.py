"""`/mcp` for modern clients, byte by byte: forms of answers, streams, refusals, and what ends a call."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import pytest
from starlette.types import Message, Scope

from holdfast import App, Engine, Run
from holdfast.core.config import Config
from holdfast.mcp.protocol import CAPABILITIES, LOG_LEVEL, MODERN, SUBSCRIPTION, VERSION
from holdfast.server.app import build_app
from holdfast.server.port import ServerAddress
from holdfast.server.request_limits import RequestLimits
from tests.server.conftest import make_key, serving
from tests.server.signs import Signs
from tests.server.wire import Reply, Site, Wire

ACCEPT = "application/json, text/event-stream"
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS_CHANGED = "notifications/tools/list_changed"


@pytest.fixture
def app(signs: Signs) -> App:
    """A program whose tools are quick, slow, talkative, or ask."""
    app = App()

    @app.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @app.tool
    async def work(run: Run, told: bool = False) -> str:
        """Work until nobody waits for it any more."""
        try:
            if told:
                await run.client.progress(1)
            signs.began.set()
            await asyncio.Event().wait()
            return "never"
        finally:
            signs.ended.set()

    @app.tool
    async def steps(run: Run) -> str:
        """Tell how it goes."""
        await run.client.progress(1, total=2)
        await run.client.log("warning", "careful")
        return "done"

    @app.tool(timeout=1)
    async def flood(run: Run) -> str:
        """Tell more than anybody reads."""
        try:
            signs.began.set()
            for number in range(1000):
                await run.client.progress(number, message="x" * 100_000)
            return "told"
        finally:
            signs.ended.set()

    @app.tool
    async def greet(run: Run) -> str:
        """Greet somebody."""
        return f"hello {(await run.client.elicit('name', 'Who?', NAME)).content.get('name')}"

    return app


@pytest.fixture
def config(config: Config) -> Config:
    """With calls that may take no longer than a test."""
    return config.model_copy(update={"gateway": config.gateway.model_copy(update={"timeout": 5})})


@pytest.fixture
async def site(config: Config, app: App, no_models: None) -> AsyncIterator[Site]:
    """A server that serves the program to the tenant `default`."""
    async with serving(config, app) as site:
        yield site


def body_of(method: str, params: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
    """A modern request."""
    said: dict[str, Any] = {VERSION: MODERN, CAPABILITIES: {"elicitation": {}}, **meta}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": said}}


def headers_of(body: Mapping[str, Any], **other: str | None) -> dict[str, str]:
    """The headers that say what a request says, but for what is given."""
    name = {"mcp-name": body["params"]["name"]} if "name" in body.get("params", {}) else {}
    standard = {"accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": str(body.get("method")), **name}
    merged = {**standard, **{key.replace("_", "-"): value for key, value in other.items()}}
    return {key: value for key, value in merged.items() if value is not None}


async def ask(site: Site, method: str, params: Mapping[str, Any] = {}, *, key: str | None = None, **meta: Any) -> Reply:
    """The answer to a modern request."""
    body = body_of(method, params, **meta)
    return await site.ask("POST", "/mcp", json=body, headers=headers_of(body), key=key)


async def call(site: Site, name: str, arguments: Mapping[str, Any] = {}, **more: Any) -> Reply:
    """The answer to the call of a tool."""
    return await ask(site, "tools/call", {"name": name, "arguments": arguments}, **more)


@asynccontextmanager
async def opened(
    site: Site, method: str, params: Mapping[str, Any], *, key: str | None = None, **meta: Any
) -> AsyncGenerator[Wire]:
    """A connection on which a request was made whose answer is not read yet."""
    body = body_of(method, params, **meta)
    text = json.dumps(body).encode()
    headers = {**headers_of(body), "host": "127.0.0.1", "content-type": "application/json"}
    headers |= {} if key is None else {"authorization": f"Bearer {key}"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    async with site.connect() as wire:
        await wire.send(f"POST /mcp HTTP/1.1\r\n{head}content-length: {len(text)}\r\n\r\n".encode() + text)
        yield wire


async def messages(wire: Wire) -> AsyncGenerator[dict[str, Any]]:
    """What comes on a stream."""
    async for chunk in wire.chunks():
        for line in chunk.splitlines():
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


async def put_tool(engine: Engine, name: str) -> None:
    """Change the registry."""
    own = engine.tenant("default")
    await own.tools.put(name, description="New.", parameters={}, kind="function", reference="shop:new")


@pytest.mark.req("MCP-01")
async def test_a_call_is_answered_by_one_object_or_by_a_stream_that_ends_with_it(site: Site) -> None:
    quick = await call(site, "echo", {"text": "hi \ud83d"})
    meta: dict[str, Any] = {"progressToken": "p", LOG_LEVEL: "info"}
    told = await call(site, "steps", {}, **meta)
    asked = await call(site, "greet")
    state = asked.json()["result"]["requestState"]
    answers = {"name": {"action": "accept", "content": {"name": "Ann"}}}
    greeted = await ask(site, "tools/call", {"name": "greet", "inputResponses": answers, "requestState": state})

    assert quick.status == told.status == asked.status == 200
    assert quick.headers["content-type"] == "application/json"
    assert quick.json()["id"] == 7
    assert quick.json()["result"]["content"][0]["text"] == "hi \ud83d"
    assert told.headers["content-type"] == "text/event-stream"
    assert told.headers["x-accel-buffering"] == "no"
    stream = [json.loads(line[6:]) for line in told.body.splitlines() if line.startswith(b"data: ")]
    assert [each.get("method") for each in stream] == ["notifications/progress", "notifications/message", None]
    assert stream[-1]["result"]["content"][0]["text"] == "done"
    assert asked.json()["result"]["resultType"] == "input_required"
    assert greeted.json()["result"]["content"] == [{"type": "text", "text": "hello Ann"}]


@pytest.mark.req("MCP-01")
async def test_each_refusal_has_its_code_and_status(site: Site) -> None:
    listing = body_of("tools/list", {})
    calling = body_of("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
    legacy = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
    strange = body_of("tools/list", {}, **{VERSION: "1900-01-01"})
    cases: list[tuple[Any, dict[str, str], int, int]] = [
        (legacy, headers_of(legacy), 400, -32602),
        (listing, headers_of(listing, mcp_protocol_version=None), 400, -32020),
        (listing, headers_of(listing, mcp_protocol_version="2025-11-25"), 400, -32020),
        (listing, headers_of(listing, mcp_method="tools/call"), 400, -32020),
        (calling, headers_of(calling, mcp_name="steps"), 400, -32020),
        (calling, headers_of(calling, mcp_name=None), 400, -32020),
        (strange, headers_of(strange, mcp_protocol_version="1900-01-01"), 400, -32022),
        (listing, headers_of(listing, accept="application/json"), 406, -32600),
        (listing, headers_of(listing, accept=None), 406, -32600),
        ([listing], headers_of(listing), 400, -32600),
        ({**listing, "id": None}, headers_of(listing), 400, -32600),
        ({"jsonrpc": "2.0", "id": 7, "result": {}}, headers_of(listing), 400, -32600),
    ]
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"):
        body = body_of(method, {})
        cases.append((body, headers_of(body), 404, -32601))
    unknown = body_of("tools/call", {"name": "Echo"})
    cases.append((unknown, headers_of(unknown), 200, -32602))

    async with site.connect() as wire:
        for body, headers, status, code in cases:
            reply = await wire.ask("POST", "/mcp", json=body, headers=headers)
            told = reply.json()
            assert (reply.status, told["error"]["code"]) == (status, code), (body, headers)
            assert told["id"] == (None if body in ([listing], {**listing, "id": None}) else 7)


@pytest.mark.req("MCP-01")
async def test_what_is_no_request_is_answered_too(site: Site) -> None:
    sent = headers_of({"method": "notifications/cancelled"})
    typed = {**sent, "content-type": "application/json"}
    async with site.connect() as wire:
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        taken = await wire.ask("POST", "/mcp", json=note, headers=sent)
        broken = await wire.ask("POST", "/mcp", body=b'{"jsonrpc": ', headers=typed)
        deep = await wire.ask("POST", "/mcp", body=b"[" * 1000 + b"]" * 1000, headers=typed)
        plain = await wire.ask("POST", "/mcp", body=b"{}", headers={**sent, "content-type": "text/plain"})
        patch = {**sent, "content-type": "application/json-patch+json"}
        other = await wire.ask("POST", "/mcp", body=json.dumps(note).encode(), headers=patch)
        named = {**sent, "content-type": "Application/JSON ; charset=utf-8"}
        same = await wire.ask("POST", "/mcp", body=json.dumps(note).encode(), headers=named)
        strange = await wire.ask("POST", "/mcp", json=note, headers={**sent, "mcp-protocol-version": "1900-01-01"})
        wrong = [await wire.ask(method, "/mcp", headers=sent) for method in ("GET", "DELETE", "PUT")]

    assert (taken.status, taken.body, same.status) == (202, b"", 202)
    assert [(each.status, each.json()["error"]["code"]) for each in (broken, deep)] == [(400, -32700)] * 2
    assert broken.json()["id"] is None
    assert (plain.status, other.status) == (415, 415)
    assert (strange.status, strange.json()["error"]["code"]) == (400, -32022)
    assert [each.status for each in wrong] == [405, 405, 405]
    assert wrong[0].headers["allow"] == "POST"


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize("told", [False, True])
async def test_a_client_that_goes_away_cancels_its_call(site: Site, signs: Signs, told: bool) -> None:
    params = {"name": "work", "arguments": {"told": told}}

    async with asyncio.timeout(20), opened(site, "tools/call", params, progressToken=1):
        await signs.began.wait()
    async with asyncio.timeout(20):  # less than the call itself may take
        await signs.ended.wait()

    assert (await call(site, "echo", {"text": "still here"})).status == 200


@pytest.mark.req("MCP-01")
async def test_a_call_that_says_nothing_for_long_shows_that_it_lives(
    site: Site, signs: Signs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.mcp.modern.HEARTBEAT", 0.05)

    async with asyncio.timeout(20), opened(site, "tools/call", {"name": "work"}) as wire:
        head = await wire.reply_without_body()
        first = await anext(wire.chunks())

    assert head.headers["content-type"] == "text/event-stream"
    assert first.startswith(b":")


@pytest.mark.req("MCP-01")
async def test_a_client_that_never_reads_keeps_neither_memory_nor_a_tool_for_long(site: Site, signs: Signs) -> None:
    async with opened(site, "tools/call", {"name": "flood"}, progressToken=1):
        async with asyncio.timeout(20):
            await signs.began.wait()
            await signs.ended.wait()  # after the time of the tool: it could tell no more than the buffers hold

    assert (await call(site, "echo", {"text": "still here"})).status == 200


@pytest.mark.req("MCP-01", "MCP-08")
async def test_a_listener_is_told_what_it_asked_for_and_each_message_says_for_whom(site: Site) -> None:
    filter = {"toolsListChanged": True, "promptsListChanged": False}
    wanted = {"notifications": filter}

    async with opened(site, "subscriptions/listen", wanted) as wire, asyncio.timeout(20):
        head = await wire.reply_without_body()
        stream = messages(wire)
        first = await anext(stream)
        await put_tool(site.engine, "newcomer")
        second = await anext(stream)

    assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == {"toolsListChanged": True}
    assert second["method"] == TOOLS_CHANGED
    assert all(each["params"]["_meta"] == {SUBSCRIPTION: 7} for each in (first, second))
    wrong: list[dict[str, Any]] = [{}, {"notifications": []}, {"notifications": {"resourceSubscriptions": [7]}}]
    for given in wrong:
        refused = await ask(site, "subscriptions/listen", given)
        assert (refused.status, refused.json()["error"]["code"]) == (400, -32602)


@pytest.mark.req("MCP-01", "ENG-08", "SAFE-06")
@pytest.mark.parametrize("limits", [{"streams": 30}])
async def test_the_streams_of_one_user_take_nobody_s_place(site: Site, limits: dict[str, Any]) -> None:
    ann, bob = await make_key(site.engine), await make_key(site.engine, "bob")
    params: dict[str, Any] = {"notifications": {"toolsListChanged": True}}
    async with AsyncExitStack() as stack:
        for _ in range(25):
            wire = await stack.enter_async_context(opened(site, "subscriptions/listen", params, key=ann))
            await wire.reply_without_body()

        more = await ask(site, "subscriptions/listen", params, key=ann)
        other = await stack.enter_async_context(opened(site, "subscriptions/listen", params, key=bob))
        called = await call(site, "echo", {"text": "hi"}, key=ann)

        assert more.json()["error"]["data"]["code"] == "overloaded"
        assert (await other.reply_without_body()).headers["content-type"] == "text/event-stream"
        assert called.json()["result"]["content"][0]["text"] == "hi"


@pytest.mark.req("MCP-01", "MCP-07")
async def test_whoever_may_not_read_is_told_of_tools_alone(site: Site) -> None:
    key = await make_key(site.engine, scopes=["write"])
    filter = {"toolsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["shop://secret"]}

    async with opened(site, "subscriptions/listen", {"notifications": filter}, key=key) as wire, asyncio.timeout(20):
        await wire.reply_without_body()
        first = await anext(messages(wire))
    read = await ask(site, "resources/list", key=key)

    assert first["params"]["notifications"] == {"toolsListChanged": True}
    assert (read.status, read.code, read.json()["details"]) == (403, "forbidden", {"scope": "read"})
    assert 'error="insufficient_scope", scope="holdfast:read"' in read.headers["www-authenticate"]


@pytest.mark.req("MCP-01")
async def test_a_stream_ends_with_a_last_message_when_the_server_stops(engine: Engine) -> None:
    key, body = await make_key(engine), body_of("subscriptions/listen", {"notifications": {}})
    traffic, sent = RequestLimits(), asyncio.Queue[Message]()
    headers = {**headers_of(body), "host": "127.0.0.1", "content-type": "application/json"}
    headers |= {"authorization": f"Bearer {key}", "content-length": "400"}
    scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "scheme": "http", "root_path": ""}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    arriving = asyncio.Queue[Message]()
    arriving.put_nowait({"type": "http.request", "body": json.dumps(body).encode()})

    app = build_app(engine, ServerAddress("127.0.0.1", 80), token="t" * 40, traffic=traffic)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(cast(Any, app(scope, arriving.get, sent.put)))
        first = [await sent.get(), await sent.get()]
        traffic.stopping.set()
        last, end = await sent.get(), await sent.get()

    assert b"acknowledged" in first[1]["body"]
    result = json.loads(last["body"].partition(b"data: ")[2])["result"]
    assert result["_meta"][SUBSCRIPTION] == 7
    assert result["resultType"] == "complete"
    assert not end.get("more_body", False)


@pytest.mark.req("MCP-01", "SAFE-03")
async def test_a_stranger_is_refused_and_told_how_to_come_in(site: Site) -> None:
    await make_key(site.engine)

    reply = await ask(site, "tools/list")

    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert reply.headers["www-authenticate"].startswith("Bearer ")
