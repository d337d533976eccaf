"""`/mcp` for clients before 2026-07-28, byte by byte: sessions on any node, streams that are taken up again."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from holdfast import App, Run
from holdfast.core.config import Config
from holdfast.core.errors import DatabaseAway
from holdfast.engine import open_engine
from holdfast.gateway.mcp.legacy.sessions import key_of
from holdfast.gateway.mcp.legacy.stored_streams import StoredStreams, Stream
from holdfast.mcp.protocol import LEGACY
from tests.clock import Clock
from tests.logins import tenant_login
from tests.server.conftest import make_key, running, serving
from tests.server.old_client import (
    NEWEST,
    OldClient,
    calling,
    hello,
    note,
    parsed,
    request,
    rest,
    soon,
    text_of,
)
from tests.server.signs import Signs
from tests.server.wire import PATIENCE, Site

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CANCELLED = -32800
UPDATED = "notifications/resources/updated"


@pytest.fixture
def app(signs: Signs) -> App:
    """A program whose tools are quick, slow, talkative, or ask."""
    app = App()

    @app.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @app.tool
    async def steps(run: Run) -> str:
        """Tell how it goes."""
        await run.client.progress(1, total=2)
        await run.client.log("debug", "small things")
        await run.client.log("warning", "careful")
        return "done"

    @app.tool
    async def work(run: Run) -> str:
        """Tell something, and work until told to go on."""
        try:
            await run.client.progress(1)
            signs.began.set()
            await signs.go_on.wait()
            await run.client.progress(2)
            return "worked"
        finally:
            signs.ended.set()

    @app.tool
    async def flood(run: Run) -> str:
        """Tell more than anybody reads."""
        try:
            for number in range(200):
                await run.client.progress(number, message="x" * 100_000)
            return "told"
        finally:
            signs.ended.set()

    @app.tool
    async def away(run: Run) -> str:
        """Have the client come back."""
        await run.client.detach()
        await signs.go_on.wait()
        return "back"

    @app.tool
    async def greet(run: Run) -> str:
        """Greet somebody."""
        signs.runs += 1
        reply = await run.client.elicit("name", "Who?", NAME)
        return f"hello {reply.content.get('name')}" if reply.action == "accept" else reply.action

    return app


@pytest.fixture
def config(config: Config) -> Config:
    """With a port of its own for each server."""
    return config.model_copy(update={"server": config.server.model_copy(update={"port": 0})})


@pytest.fixture
async def site(config: Config, app: App, no_models: None) -> AsyncIterator[Site]:
    """A server that serves the program to the tenant `default`."""
    async with serving(config, app) as site:
        yield site


@pytest.fixture
async def other(config: Config, site: Site) -> AsyncIterator[Site]:
    """Another node on the same database, which runs none of the tools."""
    async with open_engine(config=config) as engine, running(engine, config) as site:
        yield site


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are held to take their time sooner."""
    monkeypatch.setattr("holdfast.server.mcp.legacy.running_requests.QUICK", 0.05)
    monkeypatch.setattr("holdfast.server.mcp.legacy.running_requests.BEAT", 0.6)


@pytest.fixture
async def client(site: Site) -> OldClient:
    """A client with a session."""
    return await OldClient(site.port).begin()


async def until(event: asyncio.Event) -> None:
    """Wait until it is set, which it is soon."""
    async with asyncio.timeout(PATIENCE):
        await event.wait()


@pytest.mark.req("MCP-01")
async def test_each_version_begins_a_session_in_its_own_form(site: Site) -> None:
    for version in (*LEGACY, "1900-01-01"):
        client = OldClient(site.port, version=version)
        reply = await client.post(hello(version))
        told = reply.json()["result"]

        assert told["protocolVersion"] == (version if version in LEGACY else NEWEST)
        assert told["serverInfo"]["name"] == "holdfast"
        assert told["capabilities"]["tools"] == {"listChanged": True}
        assert len(reply.headers["mcp-session-id"]) == 43
    streamed = await OldClient(site.port).post(hello(), accept="text/event-stream")
    assert parsed(streamed)[0].message["result"]["protocolVersion"] == NEWEST
    assert len(streamed.headers["mcp-session-id"]) == 43
    wrong = await OldClient(site.port).post(request("initialize", {"protocolVersion": 7}))
    assert (wrong.status, wrong.json()["error"]["code"]) == (400, -32602)


@pytest.mark.req("MCP-01")
async def test_what_belongs_to_no_session_or_is_no_message_is_refused(client: OldClient) -> None:
    stranger, guessed = OldClient(client.port), OldClient(client.port, session="x" * 43)
    ping = request("ping")
    array = await client.post([ping])

    assert (await stranger.post(ping)).status == 400
    assert (await guessed.post(ping)).status == 404
    assert [(await guessed.ask(method)).status for method in ("GET", "DELETE")] == [404, 404]
    assert [(await client.ask(method, mcp_protocol_version="1900-01-01")).status for method in ("GET", "DELETE")] == [
        400,
        400,
    ]
    assert (await client.post(ping, accept="image/png")).status == 406
    assert (await client.ask("GET", accept="application/json")).status == 406
    assert (await client.ask("GET", last_event_id="0" * 32 + ".1")).status == 400
    assert (array.status, array.json()["error"]["code"]) == (400, -32600)
    bad: list[Any] = [{}, {"jsonrpc": "1.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": None, "method": "x"}]
    bad += [{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, {"jsonrpc": "2.0", "id": 1}, "hi", 7]
    for message in bad:
        reply = await client.post(message)
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32600), message
    unknown = await client.post(request("no/such"))
    assert (unknown.status, unknown.json()["error"]["code"]) == (200, -32601)
    said: dict[str, Any] = {"jsonrpc": "2.0", "id": "nobody asked", "result": {}}
    taken = [await client.post(each) for each in (note("notifications/initialized"), note("notifications/x"), said)]
    assert [(each.status, each.body) for each in taken] == [(202, b"")] * 3


@pytest.mark.req("MCP-01")
async def test_one_version_takes_several_messages_at_once(site: Site) -> None:
    client = await OldClient(site.port, version="2025-03-26").begin()
    batch = [request("ping", id=1), note("notifications/x"), calling("echo", id="b", text="hi"), request("ping", id=1)]

    answers = (await client.post(batch)).json()
    streamed = parsed(await client.post([calling("steps", id=1, token="t"), request("ping", id=2)]))
    silent = await client.post([note("notifications/x")])
    refused = [await client.post(each) for each in ([], [hello()], [request("ping", id=n) for n in range(101)])]

    assert sorted(str(each["id"]) for each in answers) == ["1", "1", "b"]
    assert [each["error"]["code"] for each in answers if "error" in each] == [-32600]
    assert {each.message["id"] for each in streamed if "id" in each.message} == {1, 2}
    assert streamed[-1].message.get("id") is not None
    assert silent.status == 202
    assert [each.status for each in refused] == [400, 400, 400]


@pytest.mark.req("MCP-01")
async def test_an_answer_is_one_object_until_there_is_something_to_tell(client: OldClient) -> None:
    quick = await client.post(calling("echo", text="hi \ud83d"))
    told = await client.post(calling("steps", token="t"))
    unasked = await client.post(calling("steps", id="s"))
    narrow = await client.post(calling("steps", token="t"), accept="application/json")
    stream, logs = parsed(told), parsed(unasked)

    assert quick.headers["content-type"] == "application/json"
    assert (quick.json()["id"], text_of(quick.json())) == (7, "hi \ud83d")
    assert told.headers["content-type"] == "text/event-stream"
    assert stream[0].data == ""
    assert b"retry: " in told.body
    assert [each.message.get("method") for each in stream[1:]] == [
        "notifications/progress",
        "notifications/message",
        None,
    ]
    assert stream[1].message["params"] == {"progressToken": "t", "progress": 1, "total": 2}
    assert stream[2].message["params"] == {"level": "warning", "data": "careful"}
    assert text_of(stream[3].message) == "done"
    assert len({each.id for each in stream}) == 4
    assert [each.message.get("method") for each in logs[1:]] == ["notifications/message", None]
    assert text_of(narrow.json()) == "done"


@pytest.mark.req("MCP-01", "MCP-08")
async def test_the_level_of_logs_is_the_sessions_on_every_node(site: Site, other: Site, client: OldClient) -> None:
    before = parsed(await client.post(calling("steps")))
    set_there = await client.at(other.port).post(request("logging/setLevel", {"level": "error"}))
    async with asyncio.timeout(PATIENCE):
        while (reply := await client.post(calling("steps"))).headers["content-type"] != "application/json":
            pass
    await client.post(request("logging/setLevel", {"level": "debug"}))
    all = parsed(await client.post(calling("steps")))
    wrong = await client.post(request("logging/setLevel", {"level": "loud"}))

    assert set_there.json()["result"] == {}
    assert len(before) == 3
    assert text_of(reply.json()) == "done"
    assert len(all) == 4
    assert wrong.json()["error"]["code"] == -32602


@pytest.mark.req("MCP-01", "MCP-08")
async def test_a_session_is_its_users_on_any_node_until_it_ends(site: Site, other: Site, signs: Signs) -> None:
    await site.engine.tenants.create("acme")
    ann, again, bob = [await make_key(site.engine, user) for user in ("ann", "ann", "bob")]
    eve = await make_key(site.engine, "ann", tenant="acme")
    client = await OldClient(site.port, ann).begin()
    ping = request("ping")

    async def tried(key: str, port: int) -> int:
        return (await OldClient(port, key, NEWEST, client.session).post(ping)).status

    tries = [(key, port) for key in (ann, again, bob, eve) for port in (site.port, other.port)]
    assert [await tried(key, port) for key, port in tries] == [200, 200, 200, 200, 404, 404, 404, 404]
    assert [(await OldClient(site.port, bob, NEWEST, client.session).ask(m)).status for m in ("GET", "DELETE")] == [
        404,
        404,
    ]
    async with client.streaming(calling("work", token=1)) as stream:
        await until(signs.began)
        assert (await client.at(other.port).ask("DELETE")).status == 204
        await until(signs.ended)  # what runs for it ends with it, wherever that is
        await rest(stream)
    assert [await tried(ann, port) for port in (other.port, site.port)] == [404, 404]


@pytest.mark.req("MCP-01", "MCP-08")
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_client_cancels_its_request_wherever_it_says_so(
    other: Site, client: OldClient, signs: Signs, elsewhere: bool
) -> None:
    teller = client.at(other.port) if elsewhere else client
    async with client.streaming(calling("work", id="w", token=1)) as stream:
        await until(signs.began)
        assert (await teller.post(note("notifications/cancelled", {"requestId": "w"}))).status == 202
        events = await rest(stream)

    assert (events[-1].message["id"], events[-1].message["error"]["code"]) == ("w", CANCELLED)


@pytest.mark.req("SAFE-02", "MCP-08")
async def test_a_tenants_login_neither_cancels_calls_of_others_nor_learns_of_them(
    site: Site, other: Site, client: OldClient, signs: Signs
) -> None:
    channels = ["holdfast_mcp", "holdfast_gateway", *(f"holdfast_mcp_{number}" for number in range(64))]
    tenant, key = await site.engine.database.tenant(), key_of(client.session or "")
    forged = [f"{tenant} {key} {what}" for what in ("cancelled w", 'cancelled "w"', "ended ", "taken w")]
    async with tenant_login(site.engine, "eve") as login:
        spy = await psycopg.AsyncConnection.connect(login.url, autocommit=True)
        async with spy, client.streaming(calling("work", id="w", token=1)) as stream, asyncio.timeout(4 * PATIENCE):
            for channel in channels:
                await spy.execute(SQL("listen {}").format(Identifier(channel)))
            await until(signs.began)
            for payload in ("", *forged):
                await spy.execute("select pg_notify(channel, %s) from unnest(%s::text[]) channel", [payload, channels])
            for number in range(20):  # 10,000 of them
                await spy.execute(
                    "select pg_notify(channel, %s || n) from unnest(%s::text[]) channel, generate_series(1, 8) n",
                    [str(number), channels],
                )
            assert (await client.at(other.port).post(request("ping"))).status == 200
            assert not signs.ended.is_set()
            async with await psycopg.AsyncConnection.connect(login.url, autocommit=True) as second:
                for channel in channels:
                    await second.execute(SQL("listen {}").format(Identifier(channel)))
                await client.at(other.port).post(note("notifications/cancelled", {"requestId": "w"}))
                events = await rest(stream)
                told = [notify.payload async for notify in second.notifies(timeout=0.2)]

    assert events[-1].message["error"]["code"] == CANCELLED  # by its own client, at last
    assert told
    assert set(told) == {""}


@pytest.mark.req("MCP-01")
async def test_a_cancellation_that_meets_the_answer_does_not_take_it_away(
    client: OldClient, signs: Signs, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, kept, end = asyncio.Event(), asyncio.Event(), StoredStreams.end

    async def slowly(streams: StoredStreams, stream: Stream, message: bytes) -> None:
        keeping.set()
        await kept.wait()
        await end(streams, stream, message)

    monkeypatch.setattr(StoredStreams, "end", slowly)
    signs.go_on.set()
    async with client.streaming(calling("work", id="w", token=1)) as stream:
        await until(keeping)
        for _ in range(2):
            await client.post(note("notifications/cancelled", {"requestId": "w"}))
        kept.set()
        events = await rest(stream)

    assert text_of(events[-1].message) == "worked"


@pytest.mark.req("MCP-01")
async def test_what_cannot_be_kept_is_told_all_the_same(
    client: OldClient, signs: Signs, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise DatabaseAway("the database is away")

    signs.go_on.set()
    for name in ("leave", "end"):
        monkeypatch.setattr(StoredStreams, name, away)
    events = parsed(await client.post(calling("work", token=1)))
    monkeypatch.setattr(StoredStreams, "open", away)
    unopened = await client.post(calling("work", token=1))

    assert [each.message.get("method") for each in events[1:]] == ["notifications/progress"] * 2 + [None]
    assert text_of(events[-1].message) == "worked"
    assert text_of(unopened.json()) == "worked"


@pytest.mark.req("MCP-01", "SAFE-03")
async def test_a_call_ends_with_the_key_that_made_it_and_is_not_run_anew(
    site: Site, signs: Signs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.gateway.mcp.legacy.client.MOMENT", 0)
    monkeypatch.setattr("holdfast.server.authentication.RECHECK_SECONDS", 0)
    tenant = await site.engine.tenants.id_of("default")
    made, other = await site.engine.keys.create(tenant, "ann"), await make_key(site.engine, "ann")
    client = await OldClient(site.port, made.text).begin()
    still = OldClient(site.port, other, NEWEST, client.session)

    async with (
        client.streaming(calling("work", id="w", token=1)) as working,
        client.streaming(calling("greet")) as asks,
    ):
        await until(signs.began)
        await soon(asks)
        question = (await soon(asks)).message
        await site.engine.keys.revoke(tenant, made.key.id)
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ann"}}}
        assert (await still.post(answer)).status == 202
        ends = [(await rest(stream))[-1].message for stream in (working, asks)]

    assert signs.ended.is_set()
    assert signs.runs == 1
    assert all("error" in end for end in ends)
    assert ends[0]["error"]["message"] == "the access that it was made by has ended"


@pytest.mark.req("MCP-01", "MCP-08")
async def test_a_stream_that_breaks_is_taken_up_again_on_another_node(
    other: Site, client: OldClient, signs: Signs
) -> None:
    async with client.streaming(calling("work", id="w", token=1)) as stream:
        primed, first = await soon(stream), await soon(stream)
    there = client.at(other.port)

    async with there.streaming(last_event_id=primed.id) as replayed, there.streaming(last_event_id=first.id) as taken:
        again = await soon(replayed)
        assert await rest(replayed) == []  # somebody else has it now
        signs.go_on.set()
        followed = await rest(taken)
    afterwards = await there.ask("GET", last_event_id=first.id)

    assert again == first
    assert followed[0].message["params"] == {"progressToken": 1, "progress": 2}
    assert (followed[-1].message["id"], text_of(followed[-1].message)) == ("w", "worked")
    assert parsed(afterwards) == followed
    assert (await client.at(other.port).ask("GET", last_event_id=f"{first.id[:-1]}99")).status == 200


@pytest.mark.req("MCP-01")
async def test_a_tool_lets_its_client_go_and_come_back_if_it_can(site: Site, client: OldClient, signs: Signs) -> None:
    older = await OldClient(site.port, version="2025-06-18").begin()
    async with client.streaming(calling("away")) as stream:
        (primed,) = await rest(stream)
    signs.go_on.set()

    async with client.streaming(last_event_id=primed.id) as stream:
        (answer,) = await rest(stream)
    kept = await older.post(calling("away"))

    assert primed.data == ""
    assert text_of(answer.message) == "back"
    assert text_of(kept.json()) == "back"


@pytest.mark.req("MCP-08")
async def test_of_a_request_whose_node_is_gone_the_client_is_told_that_nothing_follows(
    site: Site, other: Site, client: OldClient, signs: Signs
) -> None:
    async with client.streaming(calling("away", id="a")) as stream:
        (primed,) = await rest(stream)

    clock = Clock(other.engine)
    await clock.advance(timedelta(seconds=30))
    async with client.at(other.port).streaming(last_event_id=primed.id) as stream:
        (told,) = await rest(stream)
    signs.go_on.set()

    assert told.message["id"] == "a"
    assert "may have taken effect" in told.message["error"]["message"]


@pytest.mark.req("MCP-01")
async def test_a_client_that_never_reads_keeps_no_tool_waiting_and_little_of_what_it_is_told(
    client: OldClient, signs: Signs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.mcp.legacy.exchanges.SLOW", 0.2)
    async with client.streaming(calling("flood", token=1)) as stream:
        primed = await soon(stream)
        await until(signs.ended)

    kept = parsed(await client.ask("GET", last_event_id=primed.id))

    assert text_of(kept[-1].message) == "told"
    assert len(kept) == 41  # four million bytes, and the answer


@pytest.mark.req("MCP-08")
async def test_what_a_slow_reader_is_being_told_is_not_taken_for_given_up(
    site: Site, client: OldClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.mcp.legacy.exchanges.SLOW", 60)
    state = "select leased_until > holdfast.now() as alive from mcp_stream"
    async with client.streaming(calling("flood", token=1)) as stream, site.engine.postgres.owner() as owner:
        await soon(stream)  # and no more: whoever tells it something waits
        await Clock(site.engine).advance(timedelta(seconds=30))

        async with asyncio.timeout(PATIENCE):
            while not await owner.value(state):
                pass


@pytest.mark.req("MCP-01", "MCP-08")
async def test_a_question_is_never_lost_however_much_was_told_before(
    other: Site, client: OldClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.gateway.mcp.legacy.stored_streams.MOST", 0)
    async with client.streaming(calling("greet")) as stream:
        primed, asked = await soon(stream), await soon(stream)
    async with client.at(other.port).streaming(last_event_id=primed.id) as stream:
        again = await soon(stream)
    deaf = await client.post(calling("greet", id="deaf"), accept="application/json")

    assert again == asked
    assert "the client cannot be asked" in text_of(deaf.json())


@pytest.mark.req("MCP-01", "MCP-08")
async def test_a_question_is_answered_through_any_node(
    site: Site, other: Site, client: OldClient, signs: Signs
) -> None:
    async with client.streaming(calling("greet")) as stream:
        await soon(stream)
        question = (await soon(stream)).message
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ann"}}}
        stranger = await OldClient(other.port).begin()
        for teller in (stranger, client.at(other.port)):
            assert (await teller.post(answer)).status == 202
        events = await rest(stream)
    mute = await OldClient(site.port).begin({})
    refused = await mute.post(calling("greet"))

    assert question["method"] == "elicitation/create"
    assert question["params"]["requestedSchema"] == NAME
    assert text_of(events[-1].message) == "hello Ann"
    assert signs.runs == 2  # the other one was not asked
    assert refused.json()["result"]["isError"]
    assert "has not declared the capability elicitation" in text_of(refused.json())


@pytest.mark.req("MCP-01")
async def test_who_thinks_for_long_has_the_time_and_the_tool_is_run_anew(
    client: OldClient, signs: Signs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.gateway.mcp.legacy.client.MOMENT", 0)
    async with client.streaming(calling("greet")) as stream:
        await soon(stream)
        question = (await soon(stream)).message
        await client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        events = await rest(stream)

    assert [text_of(each.message) for each in events] == ["decline"]
    assert signs.runs == 2


@pytest.mark.req("MCP-01")
async def test_an_answer_that_is_none_fails_the_call_with_the_reason(client: OldClient) -> None:
    wrong = {"result": {"action": "accept", "content": {"name": 7}}}, {"error": {"code": -1, "message": "not now"}}
    told: list[str] = []

    for answer in wrong:
        async with client.streaming(calling("greet")) as stream:
            await soon(stream)
            question = (await soon(stream)).message
            await client.post({"jsonrpc": "2.0", "id": question["id"], **answer})
            told.append(text_of((await rest(stream))[-1].message))

    assert "does not match the request" in told[0]
    assert "not now" in told[1]


@pytest.mark.req("MCP-01", "MCP-08")
async def test_who_listens_is_told_what_changes_and_one_stream_at_a_time(
    site: Site, other: Site, client: OldClient
) -> None:
    uri = "holdfast://notes/support"
    own, there = site.engine.tenant("default"), client.at(other.port)
    assert (await there.post(request("resources/subscribe", {"uri": uri}))).json()["result"] == {}

    async with client.streaming() as first, there.streaming() as second:
        primed = await soon(first)
        assert await rest(first) == []  # the newer one has it
        await soon(second)
        await own.tools.put("newcomer", description="New.", parameters={}, kind="function", reference="shop:new")
        while (changed := (await soon(second)).message)["method"] == UPDATED:  # it may have, before it was listened to
            pass
        own.updated(uri)
        updated = (await soon(second)).message
        assert (await client.ask("DELETE")).status == 204
        assert await rest(second) == []

    assert primed.data == ""
    assert changed == note("notifications/tools/list_changed")
    assert updated == note(UPDATED, {"uri": uri})


@pytest.mark.req("MCP-01")
async def test_who_comes_back_to_listen_is_told_what_it_may_have_missed(client: OldClient) -> None:
    await client.post(request("resources/subscribe", {"uri": "a:b"}))
    await client.post(request("resources/subscribe", {"uri": "c:d"}))
    await client.post(request("resources/unsubscribe", {"uri": "c:d"}))
    async with client.streaming() as stream:
        primed = await soon(stream)

    async with client.streaming(last_event_id=primed.id) as stream:
        events = [await soon(stream) for _ in range(5)]

    assert [each.message["method"] for each in events[1:]] == [
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        UPDATED,
    ]
    assert events[4].message["params"] == {"uri": "a:b"}
