"""What an attacker tries at the gateway itself: states, sessions, streams and data that are somebody else's."""

import asyncio
import json
import string
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from time import time
from typing import Any

import pytest

from holdfast import App, Run
from holdfast.core.config import Config
from holdfast.core.issuers import AccessSettings, Issuer
from holdfast.engine import open_engine
from tests.access.issuing import SECRET, shared_token
from tests.server.conftest import running
from tests.server.mcp_wire import ask, begin, call, legacy, messages, mirror, modern, of_session, opened, post, sse
from tests.server.wire import Reply, Site, Wire

ISSUER = "https://login.example.com"
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ANSWER = {"name": {"action": "accept", "content": {"name": "Ann"}}}
PAY = "shop.example/market/pay/1.0"
PRIVATE = "the-secret-of-ann"


@pytest.fixture
def app() -> App:
    """A program whose tools ask, and a service that only its agent may call."""
    app = App()

    @app.tool
    async def greet(run: Run, greeting: str = "hello") -> str:
        """Greet somebody."""
        return f"{greeting} {(await run.client.elicit('name', 'Who?', NAME)).content['name']}"

    @app.tool
    async def insult(run: Run, greeting: str = "hello") -> str:
        """Greet somebody else."""
        return f"no {greeting} {(await run.client.elicit('name', 'Who?', NAME)).content['name']}"

    @app.tool
    async def work(run: Run) -> str:
        """Work for as long as somebody waits for it."""
        await run.client.progress(1)
        await asyncio.Event().wait()
        return "never"

    @app.service(PAY)
    async def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    app.agent("support", instructions="You help.", tools=[pay], memory=False)
    return app


@pytest.fixture
async def site(config: Config, app: App, no_models: None) -> AsyncIterator[Site]:
    """A server for the tenants `default` and `acme` that takes tokens of an issuer, too."""
    issuer = Issuer.model_validate({"issuer": ISSUER, "audience": ["holdfast"], "secret": SECRET})
    config = config.model_copy(update={"access": AccessSettings(issuers=(issuer,))})
    async with open_engine(config=config) as engine, AsyncExitStack() as stack:
        await engine.tenants.create("acme")
        for tenant in ("default", "acme"):
            own = engine.tenant(await engine.tenants.id_of(tenant))
            await stack.enter_async_context(own.serving(app))
            for tool in ("greet", "insult", "work"):
                await own.tools.permit(tool, {"users": "execute"})
        yield await stack.enter_async_context(running(engine, config, app=app))


async def key_of(site: Site, user: str, *, tenant: str = "default", agent: str | None = None) -> str:
    """A key of a user who administers nothing."""
    id, scopes = await site.engine.tenants.id_of(tenant), frozenset({"read", "write"})
    return (await site.engine.keys.create(id, user, scopes=scopes, agent=agent)).text


def text_of(reply: Reply) -> str:
    """What a tool gives."""
    return reply.json()["result"]["content"][0]["text"]


@pytest.mark.req("MCP-01", "SAFE-02")
async def test_a_state_is_of_use_for_its_own_request_alone(site: Site) -> None:
    ann, bob, elsewhere = [
        await key_of(site, user, tenant=tenant)
        for user, tenant in (("ann", "default"), ("bob", "default"), ("ann", "acme"))
    ]
    agent = await key_of(site, "ann", agent="support")
    asked = await call(site, "greet", {"greeting": "hi"}, key=ann)
    state = asked.json()["result"]["requestState"]

    async def again(key: str = ann, name: str = "greet", greeting: str = "hi", state: Any = state) -> Reply:
        params = {"name": name, "arguments": {"greeting": greeting}, "inputResponses": ANSWER, "requestState": state}
        return await ask(site, "tools/call", params, key=key)

    changed = state[:40] + ("A" if state[40] != "A" else "B") + state[41:]
    made_up: list[Any] = [changed, state[:-4], state[:20], "", state * 2, "A" * 1000, 7, None, {}]
    refused = [
        await again(bob),
        await again(elsewhere),
        await again(name="insult"),
        await again(greeting="bye"),
        *[await again(state=each) for each in made_up],
    ]
    unseen = await again(agent)

    assert [each.json()["error"]["code"] for each in refused] == [-32602] * len(refused)
    assert all("`requestState` cannot be opened" in each.json()["error"]["message"] for each in refused)
    assert unseen.json()["error"]["code"] == -32602
    assert text_of(await again()) == "hi Ann"
    assert "Ann" not in state


@pytest.mark.req("MCP-08", "SAFE-02")
async def test_a_session_is_found_by_whom_it_was_begun_for_and_by_nobody_else(site: Site) -> None:
    tenant = await site.engine.tenants.id_of("default")
    made = await site.engine.keys.create(tenant, "ann")
    ann = made.text
    thieves = [
        await key_of(site, "bob"),
        await key_of(site, "ann", tenant="acme"),
        await key_of(site, "ann", agent="support"),
        shared_token(ISSUER, sub="bob"),
    ]
    session = await begin(site, key=ann)
    other = {character: chr(ord(character) ^ 1) for character in string.ascii_letters + string.digits + "-_"}
    near = [session[:at] + other[session[at]] + session[at + 1 :] for at in range(len(session))]
    guesses = [*near, session[:-1], session + "A", session.swapcase(), f"{session},{session}", "1", "A" * 43, "%00"]

    async with site.connect() as wire, sse(site, key=ann) as (_, address):
        tries = [(key, session) for key in thieves] + [(ann, guess) for guess in guesses]
        for key, id in tries:
            for method in ("POST", "GET", "DELETE"):
                body = legacy("ping") if method == "POST" else None
                reply = await wire.ask(method, "/mcp", key=key, json=body, headers=of_session(id))
                assert (reply.status, b"there is no such session" in reply.body) == (404, True), (method, id)
        taken = [await wire.ask("POST", address, key=key, json=legacy("ping")) for key in thieves]
        crossed = [
            await wire.ask("POST", f"/mcp/message?session_id={session}", key=ann, json=legacy("ping")),
            await post(wire, address.partition("=")[2], legacy("ping"), key=ann),
        ]
        alive = await post(wire, session, legacy("ping"), key=ann)
        ended = await wire.ask("DELETE", "/mcp", key=ann, headers=of_session(session))
        after = await post(wire, session, legacy("ping"), key=ann)
        second = await begin(wire, key=ann)
        await site.engine.keys.revoke(tenant, made.key.id)
        revoked = await post(wire, second, legacy("ping"), key=ann)

    assert [each.status for each in (*taken, *crossed)] == [404] * 6
    assert (alive.status, ended.status, after.status, revoked.status) == (200, 204, 404, 401)
    assert len(session) == 43  # 256 bits


@pytest.mark.req("MCP-08")
async def test_nobody_reads_answers_or_cancels_what_goes_on_in_another_session(site: Site) -> None:
    ann, bob = await key_of(site, "ann"), await key_of(site, "bob")
    hers, his = await begin(site, key=ann), await begin(site, key=bob)
    calling = legacy("tools/call", {"name": "greet"})

    async with (
        asyncio.timeout(10),
        opened(site, "POST", "/mcp", headers=of_session(hers), json=calling, key=ann) as wire,
        site.connect() as other,
    ):
        await wire.reply_without_body()
        position = (await anext(wire.chunks())).decode().splitlines()[0].removeprefix("id: ")
        stream = messages(wire)
        question = await anext(stream)
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Bob"}}}
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": calling["id"]}}
        tried = [
            await post(other, session, message, key=bob) for session in (his, hers) for message in (answer, cancel)
        ]
        read = await other.ask("GET", "/mcp", key=bob, headers={**of_session(his), "last-event-id": position})
        await post(other, hers, {**answer, "result": ANSWER["name"]}, key=ann)
        told = await anext(stream)

    assert question["method"] == "elicitation/create"
    assert [each.status for each in tried] == [202, 202, 404, 404]
    assert (read.status, b"there is no such stream" in read.body) == (400, True)
    assert told["result"]["content"][0]["text"] == "hello Ann"


@pytest.mark.req("MCP-06", "SAFE-03")
async def test_every_stream_ends_soon_after_the_key_or_token_that_opened_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = await site.engine.tenants.id_of("default")
    made = await site.engine.keys.create(tenant, "ann")
    token, passed = shared_token(ISSUER, exp=int(time()) + 30), 0.0
    monkeypatch.setattr(site.engine.tokens, "_clock", lambda: time() + passed)
    listening = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    working = modern("tools/call", {"name": "work"}, progressToken=1)
    working_too = legacy("tools/call", {"name": "work", "_meta": {"progressToken": 1}})

    async with AsyncExitStack() as stack:
        streams: list[Wire] = []
        for key in (made.text, token):
            session = await begin(site, key=key)
            for method, path, headers, body in (
                ("POST", "/mcp", mirror(listening), listening),
                ("POST", "/mcp", mirror(working), working),
                ("POST", "/mcp", of_session(session), working_too),
                ("GET", "/mcp", of_session(session), None),
                ("GET", "/mcp/sse", {}, None),
            ):
                sent = {**headers, "connection": "close"}  # then nothing follows on it
                wire = await stack.enter_async_context(opened(site, method, path, headers=sent, json=body, key=key))
                assert (await wire.reply_without_body()).status == 200
                await anext(wire.chunks())
                streams.append(wire)

        await site.engine.keys.revoke(tenant, made.key.id)
        passed = 100.0

        async with asyncio.timeout(12):  # before any sign of life is due: nothing happens on any of them
            await asyncio.gather(*(wire.rest() for wire in streams))


@pytest.mark.req("SAFE-02")
async def test_what_is_anns_is_reached_by_bob_in_no_way(site: Site) -> None:
    ann, bob, elsewhere = [
        await key_of(site, user, tenant=tenant)
        for user, tenant in (("ann", "default"), ("bob", "default"), ("ann", "acme"))
    ]
    await call(site, "remember", {"content": f"{PRIVATE} is tea"}, key=ann)
    await call(site, "edit_notes", {"agent": "support", "operation": "append", "content": PRIVATE}, key=ann)
    engine = site.engine.tenant("default")
    await engine.agents.session("support", user="ann", session_id=PRIVATE)
    conversation = {"ref": {"type": "ref/resource", "uri": "holdfast://conversations/{session_id}"}}
    typed = {"name": "session_id", "value": PRIVATE[:4]}
    ways: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "recall", "arguments": {"query": "tea"}}),
        ("tools/call", {"name": "read_notes", "arguments": {"agent": "support"}}),
        ("tools/call", {"name": "list_conversations"}),
        ("resources/read", {"uri": "holdfast://notes/support"}),
        ("completion/complete", {**conversation, "argument": typed}),
    ]
    named: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "read_conversation", "arguments": {"session_id": PRIVATE}}),
        ("resources/read", {"uri": f"holdfast://conversations/{PRIVATE}"}),
    ]

    for method, params in ways:
        own = await ask(site, method, params, key=ann)
        assert PRIVATE.encode() in own.body, (method, params, own)
        for key in (bob, elsewhere):
            session = await begin(site, key=key)
            for reply in (
                await ask(site, method, params, key=key),
                await post(site, session, legacy(method, params), key=key),
            ):
                assert PRIVATE.encode() not in reply.body, (method, params, reply)
    for method, params in named:
        theirs = await ask(site, method, params, key=bob)
        none = await ask(site, method, json.loads(json.dumps(params).replace(PRIVATE, "there-is-none-such")), key=bob)
        assert theirs.body.replace(PRIVATE.encode(), b"there-is-none-such") == none.body, (method, params)
    own_session = {"agent": "support", "message": "hi", "session_id": PRIVATE}
    await call(site, "ask_agent", own_session, key=bob)
    for key in (ann, bob):
        said = text_of(await call(site, "read_conversation", {"session_id": PRIVATE}, key=key))
        assert ('"hi"' in said) == (key == bob)


@pytest.mark.req("RPC-01", "MCP-07")
async def test_the_old_envelope_reaches_nothing_that_its_caller_does_not_see(site: Site) -> None:
    user, agent = await key_of(site, "bob"), await key_of(site, "ann", agent="support")
    host, service, action, version = PAY.split("/")
    envelope = {"host": host, "service": service, "action": action, "version": version, "data": {"amount": 1}}
    spellings = [
        {**envelope, "action": "PAY"},
        {**envelope, "host": "shop.example/market", "service": "pay", "action": "1.0", "version": ""},
        {**envelope, "host": "shop.example/market/pay/1.0"},
        {**envelope, "version": "1.0/"},
        {**envelope, "service": "marke\u0442"},
        {**envelope, "action": "pay\u0000"},
    ]

    by_agent = await site.ask("POST", "/rpc", key=agent, json=envelope)
    denied = await site.ask("POST", "/rpc", key=user, json=envelope)
    missing = await site.ask("POST", "/rpc", key=user, json={**envelope, "action": "pai"})
    others = [await site.ask("POST", "/rpc", key=agent, json=each) for each in spellings]
    listed = [await site.ask("GET", "/api/services", key=key) for key in (user, agent)]
    listed_rpc = await site.ask("POST", "/rpc", key=user, json={"jsonrpc": "2.0", "id": 1, "method": "rpc.discover"})

    assert (by_agent.status, by_agent.json()) == (200, "paid")
    assert denied.status == missing.status == 404
    assert denied.body.replace(b"/pay/", b"/pai/") == missing.body
    assert {each.status for each in others} <= {400, 404}
    assert [PAY.encode() in each.body for each in listed] == [False, True]
    assert PAY.encode() not in listed_rpc.body
