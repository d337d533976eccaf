"""The gateway and what no decent client sends: each has a clear answer, and the next call works."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import App, Run
from holdfast.core.config import Config
from holdfast.mcp.protocol import MODERN, VERSION
from tests.server.conftest import serving
from tests.server.mcp_wire import (
    ACCEPT,
    BATCHES,
    HELLO,
    ask,
    begin,
    call,
    legacy,
    messages,
    mirror,
    modern,
    of_session,
    opened,
    post,
    sse,
)
from tests.server.wire import Reply, Site, Wire

pytestmark = pytest.mark.req("MCP-01", "ENG-08")

JSON = {"content-type": "application/json"}
COUNT = 50  # messages, which are more than are taken at once
TEN_MEGABYTES = 10_000_000
MEGABYTE = "x" * 1_000_000
DEEP = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"}"
ODD = ("\0", "a\0b", "\ud83d", "a\udfffb", "\u202e", "\ufffe", "\U0010fffe", "'; drop table tool_t; --", "{{secret:x}}")
VERSIONS: list[Any] = ["1900-01-01", "2026-07-29", "", "latest", "x" * 10_000, "2026-07-28\ud83d", 7, None, {}]
CURSORS: list[Any] = [MEGABYTE, "===", 7, [], {"a": 1}, -1, True]
NO_JSON = {
    "nothing": b"",
    "half of it": b'{"jsonrpc":"2.0","id":1,"meth',
    "two values": b"{} {}",
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":NaN}}',
    "infinity": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":Infinity}}',
    "a number beyond a float": b'{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}',
    "an integer without end": b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b',"method":"tools/list"}',
    "depth 1,000": DEEP,
    "not UTF-8": b'{"jsonrpc":"2.0","id":"\xff\xfe","method":"tools/list"}',
    "UTF-16": '{"jsonrpc":"2.0"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0"}',
}


@pytest.fixture
def ended() -> asyncio.Queue[str]:
    """The calls that have ended."""
    return asyncio.Queue()


@pytest.fixture
def app(ended: asyncio.Queue[str]) -> App:
    """A program with something of each kind."""
    app = App()

    @app.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @app.tool
    async def recite(run: Run, text: str) -> str:
        """Say it twice."""
        await run.client.progress(1, message=text)
        return text

    @app.tool
    async def flood(run: Run) -> str:
        """Tell more than anybody reads."""
        try:
            for number in range(300):
                await run.client.progress(number, message="x" * 100_000)
            return "told"
        finally:
            ended.put_nowait("flood")

    @app.tool
    async def count(run: Run) -> str:
        """Count."""
        for number in range(COUNT):
            await run.client.progress(number)
        ended.put_nowait("count")
        return "counted"

    @app.resource("shop://orders/{order}", complete={"order": ["A-1"]})
    async def order(order: str) -> str:
        """An order."""
        return order

    @app.prompt
    def greet(name: str) -> str:
        """Greet somebody."""
        return name

    return app


@pytest.fixture
async def site(config: Config, app: App, no_models: None) -> AsyncIterator[Site]:
    """A server that serves the program."""
    async with serving(config, app) as site:
        yield site


async def usable(door: Site | Wire, session: str | None = None) -> None:
    """Good calls are answered, on the same connection."""
    good = await call(door, "echo", {"text": "still here"})
    assert good.json()["result"]["content"][0]["text"] == "still here"
    if session is not None:
        reply = await post(door, session, legacy("tools/call", {"name": "echo", "arguments": {"text": "and here"}}))
        assert reply.json()["result"]["content"][0]["text"] == "and here"


def told(reply: Reply) -> tuple[int, int | None, Any]:
    """The status, the code and the id of an answer."""
    if not reply.body:
        return reply.status, None, None
    given = reply.json()
    return reply.status, given.get("error", {}).get("code"), given.get("id")


async def test_what_is_no_json_is_a_parse_error_in_every_era(site: Site) -> None:
    async with site.connect() as wire:
        session = await begin(wire)
        heads = [mirror(modern("tools/list")), of_session(session), {"accept": ACCEPT}]
        for name, body in NO_JSON.items():
            for head in heads:
                reply = await wire.ask("POST", "/mcp", body=body, headers={**JSON, **head})
                assert told(reply) == (400, -32700, None), (name, head)
            rpc = await wire.ask("POST", "/rpc", body=body, headers=JSON)
            assert told(rpc) == (200, -32700, None), name
        await usable(wire, session)


async def test_what_would_take_too_much_work_to_read_is_refused_in_every_era(site: Site) -> None:
    async with site.connect() as wire:
        session = await begin(wire)
        for head in (mirror(modern("tools/list")), of_session(session), {"accept": ACCEPT}):
            reply = await wire.ask("POST", "/mcp", body=b"[" * 1_000_000, headers={**JSON, **head})
            assert reply.status == 413, head
        rpc = await wire.ask("POST", "/rpc", body=b"[" * 1_000_000, headers=JSON)
        assert rpc.json()["error"]["message"] == "Too large", rpc
        await usable(wire, session)


async def test_what_is_no_message_is_refused_under_its_id_in_every_era(site: Site) -> None:
    wrong: list[Any] = [
        True, 7, "text", [], [[]], [1], {}, {"jsonrpc": "2.0"}, {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": 2.0, "id": 1, "method": "ping"}, {"id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 7}, {"jsonrpc": "2.0", "id": 1, "method": None},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "text"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"}, {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, {"jsonrpc": "2.0", "id": [1], "method": "ping"},
        {"jsonrpc": "2.0", "id": {}, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
    ]  # fmt: skip

    async with site.connect() as wire:
        session = await begin(wire)
        for message in wrong:
            id = message.get("id") if isinstance(message, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            known = id if isinstance(id, int) and not isinstance(id, bool) else None
            old = await post(wire, session, message)
            new = await wire.ask("POST", "/mcp", json=message, headers=mirror(modern("ping")))
            assert told(old) == (400, -32600, known), message
            assert told(new)[0] == 400, message
            assert told(new)[1] in (-32600, -32602, -32020), message
            assert told(new)[2] == known, message
        await usable(wire, session)


async def test_an_id_of_any_length_comes_back_and_one_that_is_used_twice_at_once_is_answered_once(site: Site) -> None:
    async with site.connect() as wire:
        session = await begin(wire)
        batches = await begin(wire, version=BATCHES)
        for id in (MEGABYTE, "", "\0", "\ud83d", 0, -1, 2**63, 10**300):
            new = await ask(wire, "tools/list", id=id)
            old = await post(wire, session, legacy("ping", id=id))
            assert [told(new), told(old)] == [(200, None, id)] * 2, str(id)[:50]
        twice = await post(wire, batches, [legacy("ping", id=1), legacy("ping", id=1), legacy("ping", id="1")])
        await usable(wire, session)

    answers = sorted(json.dumps([each["id"], "result" in each]) for each in twice.json())
    assert answers == ['["1", true]', "[1, false]", "[1, true]"]


async def test_another_version_is_told_which_there_are(site: Site) -> None:
    async with site.connect() as wire:
        session = await begin(wire)
        for version in VERSIONS:
            body = modern("tools/list", {}, **{VERSION: version})
            said = version if isinstance(version, str) and version.isascii() else "x"
            new = await wire.ask("POST", "/mcp", json=body, headers={**mirror(body), "mcp-protocol-version": said})
            assert told(new)[0] == 400, version
            assert told(new)[1] in (-32020, -32022), version
            old = await wire.ask(
                "POST", "/mcp", json=legacy("ping"), headers={**of_session(session), "mcp-protocol-version": said}
            )
            assert told(old)[0] == 400, version
            hello = await post(wire, None, legacy("initialize", {"protocolVersion": version, **HELLO}))
            assert told(hello)[:2] == ((200, None) if isinstance(version, str) else (400, -32602)), version
        await usable(wire, session)


async def test_text_that_a_database_cannot_hold_breaks_nothing(site: Site) -> None:
    uri = "holdfast://{kind}/{name}"
    async with site.connect() as wire:
        session = await begin(wire)
        for text in ODD:
            calls: list[tuple[str, dict[str, Any]]] = [
                ("tools/call", {"name": text, "arguments": {text: text}}),
                ("tools/call", {"name": "echo", "arguments": {"text": text}}),
                ("tools/call", {"name": "echo", "arguments": {text: text}}),
                ("tools/call", {"name": "call_tool", "arguments": {"name": text, "arguments": {text: text}}}),
                ("tools/call", {"name": "search_tools", "arguments": {"query": text}}),
                ("tools/call", {"name": "search_skills", "arguments": {"query": text}}),
                ("tools/call", {"name": "use_skill", "arguments": {"name": text}}),
                ("tools/call", {"name": "remember", "arguments": {"content": text}}),
                ("tools/call", {"name": "recall", "arguments": {"query": text}}),
                ("tools/call", {"name": "read_notes", "arguments": {"agent": text}}),
                (
                    "tools/call",
                    {"name": "edit_notes", "arguments": {"agent": text, "operation": "append", "content": text}},
                ),
                ("tools/call", {"name": "read_conversation", "arguments": {"session_id": text}}),
                ("tools/call", {"name": "ask_agent", "arguments": {"agent": text, "message": text}}),
                ("resources/read", {"uri": text}),
                ("resources/read", {"uri": f"shop://orders/{text}"}),
                ("prompts/get", {"name": text}),
                ("prompts/get", {"name": "greet", "arguments": {"name": text, text: text}}),
                ("resources/list", {"cursor": text}),
                ("prompts/list", {"cursor": text}),
                ("tools/list", {"cursor": text}),
                ("tools/call", {"name": "echo", "requestState": text, "inputResponses": {text: {}}}),
                ("completion/complete", completing("holdfast://skills/{name}", "name", text)),
                ("completion/complete", completing("holdfast://notes/{agent}", "agent", text)),
                ("completion/complete", completing("holdfast://conversations/{session_id}", "session_id", text)),
                ("completion/complete", completing("shop://orders/{order}", text, text)),
                (text, {}),
            ]
            calls += [
                ("resources/read", {"uri": uri.format(kind=kind, name=name)})
                for kind in ("skills", "notes", "conversations")
                for name in ("%00", "%ED%A0%80", "%FF", text)
            ]
            for method, params in calls:
                for reply in (
                    await post(wire, session, legacy(method, params)),
                    await spoken(wire, method, params),
                ):
                    assert reply.status in (200, 400, 404), (method, params, reply)
                    assert "something broke" not in reply.body.decode(), (method, params, reply)
                    assert told(reply)[1] != -32603, (method, params, reply)
            meta = {"_meta": {"progressToken": text}}
            said = {"name": "recite", "arguments": {"text": text}}
            stream = await post(wire, session, legacy("tools/call", {**said, **meta}, id=text))
            first, last = [json.loads(line[6:]) for line in stream.body.splitlines() if line.startswith(b"data: {")]
            assert first["params"] == {"progressToken": text, "progress": 1, "message": text}
            assert (last["id"], last["result"]["content"][0]["text"]) == (text, text)
            for method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
                reply = await post(wire, session, legacy(method, {"uri": text, "level": text}))
                assert told(reply)[1] in (None, -32602), (method, text, reply)
        await usable(wire, session)


async def test_numbers_and_cursors_out_of_all_measure_are_refused_by_name(site: Site) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        (name, {**given, limit: number})
        for number in (-1, 0, 10**30, 1.5, "7", True)
        for name, limit, given in (
            ("search_tools", "limit", {"query": "a"}),
            ("recall", "limit", {"query": "a"}),
            ("list_conversations", "limit", {}),
            ("read_conversation", "last", {"session_id": "a"}),
        )
    ]

    async with site.connect() as wire:
        session = await begin(wire)
        for name, arguments in calls:
            for reply in (
                await call(wire, name, arguments),
                await post(wire, session, legacy("tools/call", {"name": name, "arguments": arguments})),
            ):
                result = reply.json()["result"]
                assert result["isError"], (name, arguments)
                assert "`limit`" in result["content"][0]["text"] or "`last`" in result["content"][0]["text"], result
        for method in ("tools/list", "resources/list", "prompts/list"):
            for cursor in CURSORS:
                reply = await ask(wire, method, {"cursor": cursor})
                assert told(reply)[:2] in [(400, -32602), (200, -32602)], (method, str(cursor)[:20])
        await usable(wire, session)


async def test_more_than_is_taken_is_refused_before_it_is_read(site: Site) -> None:
    async with site.connect() as wire:
        session = await begin(wire)
        for path, head in (("/mcp", mirror(modern("tools/list"))), ("/mcp", of_session(session)), ("/rpc", {})):
            large = await wire.ask("POST", path, body=b" " * TEN_MEGABYTES, headers={**JSON, **head})
            assert (large.status, large.code) == (413, "too_large"), path
        hello = legacy("initialize", {"protocolVersion": MODERN, **HELLO, "clientInfo": {"name": MEGABYTE}})
        assert told(await post(wire, None, hello)) == (400, -32602, 7)
        batches = await begin(wire, version=BATCHES)
        assert told(await post(wire, batches, [legacy("ping", id=n) for n in range(10_000)])) == (400, -32600, None)
        follow = {"notifications": {"resourceSubscriptions": [f"shop://{n}" for n in range(2_000)]}}
        assert told(await ask(wire, "subscriptions/listen", follow)) == (400, -32602, 7)
        assert told(await post(wire, session, legacy("resources/subscribe", {"uri": MEGABYTE})))[1] == -32602
        await usable(wire, session)


async def test_a_head_of_any_shape_is_answered_or_refused(site: Site) -> None:
    body = modern("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
    said = [*mirror(body).items()]

    async with site.connect() as wire:
        many = await wire.ask("POST", "/mcp", json=body, headers=[*said, *[("x-a", "b")] * 2_000])
        long = await wire.ask("POST", "/mcp", json=body, headers=[*said, ("x-long", "a" * 50_000)])
        named = await wire.ask("POST", "/mcp", json=body, headers=[*said[:-1], ("mcp-name", "a" * 50_000)])
        twice = await wire.ask("POST", "/mcp", json=body, headers=[*said, ("Mcp-Name", "echo")])
        session = await wire.ask("POST", "/mcp", json=legacy("ping"), headers=of_session("a" * 50_000))
        await usable(wire)
    for head in (b"".join(b"x-header-%d: value\r\n" % n for n in range(5_000)), b"mcp-name: " + b"a" * 70_000):
        async with site.connect() as wire:
            await wire.send(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n" + head)
            assert (await wire.reply()).code == "invalid_input"
            assert await wire.ended()

    assert [told(many), told(long)] == [(200, None, 7)] * 2
    assert [told(named), told(twice)] == [(400, -32020, 7)] * 2
    assert told(session) == (404, -32600, 7)
    await usable(site)


@pytest.mark.parametrize("settings", [{"body_timeout": 0.3}])
async def test_what_is_sent_by_halves_is_given_up(site: Site, settings: dict[str, Any]) -> None:
    session = await begin(site)
    heads: list[tuple[str, dict[str, str]]] = [
        ("/mcp", mirror(modern("tools/list"))),
        ("/mcp", of_session(session)),
        ("/rpc", {}),
    ]

    async with sse(site) as (_, address):
        for path, said in [*heads, (address, {})]:
            head = "".join(f"{name}: {value}\r\n" for name, value in {"host": "127.0.0.1", **JSON, **said}.items())
            start = f"POST {path} HTTP/1.1\r\n{head}content-length: 1000\r\n\r\n{{".encode()
            async with site.connect() as wire:
                await wire.send(start)
                assert (await wire.reply()).status == 408, path
            async with site.connect() as wire:
                await wire.send(start)  # and away
    async with opened(site, "GET", "/mcp", headers=of_session(session)):
        pass  # away before it has begun

    await usable(site, session)


async def test_whoever_reads_nothing_of_a_stream_holds_up_nobody(
    site: Site, ended: asyncio.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("legacy.exchanges", "event_stream"):
        monkeypatch.setattr(f"holdfast.server.mcp.{module}.SLOW", 0.3)
    session = await begin(site)
    flooding = legacy("tools/call", {"name": "flood", "_meta": {"progressToken": 1}}, id="flood")

    async with opened(site, "POST", "/mcp", headers=of_session(session), json=flooding), sse(site) as (_, address):
        assert (await site.ask("POST", address, json=flooding)).status == 202
        async with asyncio.timeout(30):
            for _ in range(2):
                await ended.get()
        await usable(site, session)


async def test_what_waits_for_a_stream_comes_whole_and_in_order(site: Site, ended: asyncio.Queue[str]) -> None:
    counting = legacy("tools/call", {"name": "count", "_meta": {"progressToken": 1}})

    async with sse(site) as (wire, address), asyncio.timeout(20):
        assert (await site.ask("POST", address, json=counting)).status == 202
        await ended.get()
        stream = messages(wire)
        heard = [await anext(stream) for _ in range(COUNT + 1)]

    assert [each["params"]["progress"] for each in heard[:-1]] == [*range(COUNT)]
    assert heard[-1]["result"]["content"][0]["text"] == "counted"


async def spoken(wire: Wire, method: str, params: dict[str, Any]) -> Reply:
    """The answer to a modern request whose method or name may be one that no header can say."""
    body = modern(method, params)
    headers = mirror(body)
    if not method.isascii() or not method.isprintable():
        headers["mcp-method"] = "tools/list"
    return await wire.ask("POST", "/mcp", json=body, headers=headers)


def completing(uri: str, name: str, value: Any) -> dict[str, Any]:
    return {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": name, "value": value}}
