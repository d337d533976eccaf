"""Connections over HTTP: a user begins one, agrees elsewhere, and the browser that comes back completes it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlencode

import httpx2
import mcp_types as types
import pytest
from aiohttp import web
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.execution.consent.user_tokens import TokenCache
from holdfast.mcp.protocol import CAPABILITIES
from holdfast.skills.request import BackendIdentity
from holdfast.skills.run import Run
from holdfast.skills.sources.source import Choice
from tests.execution.backend import Service, with_calls_to_this_machine
from tests.oauth.authorization_server import SmallServer, small_server
from tests.oauth.sign_in import parameters_of
from tests.server.conftest import make_key, running
from tests.server.mcp_wire import ask, call
from tests.server.wire import Reply, Site

pytestmark = pytest.mark.req("MCP-06", "MCP-07")

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TOOL = "get_orders"


@dataclass(frozen=True, slots=True)
class Shop:
    """A server with the source `shop`, its back end, and the authorization server at which users agree."""

    site: Site
    back_end: Service
    server: SmallServer
    keys: Mapping[str, str]

    @property
    def engine(self) -> Engine:
        return self.site.engine

    async def begin(self, user: str = "ann", *, headers: Mapping[str, str] = {}) -> dict[str, str]:
        """The parameters of the address at which a user agrees."""
        key = None if headers else self.keys[user]
        reply = await self.site.ask("POST", "/api/connections/shop", key=key, headers=headers)
        assert reply.status == 200, reply
        return {**parameters_of(reply.json()["url"])}

    async def come_back(self, state: str, *, headers: Mapping[str, str] = {}, **answer: str) -> Reply:
        """What the browser gets that sends the form of the page."""
        given = {"state": state, **({"code": "the-c0de", "iss": self.server.url} | answer)}
        body = urlencode({name: value for name, value in given.items() if value}).encode()
        return await self.site.ask("POST", "/oauth/callback", headers={**FORM, **headers}, body=body)

    async def connect(self, user: str = "ann") -> Reply:
        """Connect a user, whose token has the name of the user in it."""
        self.server.claims["sub"] = user
        return await self.come_back((await self.begin(user))["state"])

    async def connection(self, user: str = "ann") -> dict[str, Any]:
        """The connection of a user."""
        reply = await self.site.ask("GET", "/api/connections", key=self.keys[user])
        (found,) = reply.json()["connections"]
        return found

    async def call(self, user: str = "ann") -> Any:
        """The result of a call of the tool of the back end."""
        return (await call(self.site, TOOL, {}, key=self.keys[user])).json()["result"]

    async def age(self, *, seconds: float) -> None:
        """Make all tokens older than they are."""
        passed = f"interval '{seconds} seconds'"
        await self.engine.database.run(
            f"update source_connection set expires_at = expires_at - {passed}, updated_at = updated_at - {passed} "
            "where host_id = $1"
        )
        self._cache.tokens.clear()

    async def settled(self) -> None:
        """Wait until no token is being refreshed."""
        async with asyncio.timeout(20):
            await asyncio.gather(*self._cache.refreshes)
        self._cache.tokens.clear()

    @property
    def _cache(self) -> TokenCache:
        return self.engine._shared.execution.consent._cache  # pyright: ignore[reportPrivateUsage]

    async def session(self, user: str) -> dict[str, str]:
        """The cookie of a browser in which a user is signed in."""
        tenant = await self.engine.tenants.id_of("default")
        link = await self.engine.keys.create_link(tenant, user)
        reply = await self.site.ask("POST", "/login", headers=FORM, body=urlencode({"link": link}).encode())
        return {"Cookie": reply.headers["set-cookie"].partition(";")[0]}


def document(back_end: Service) -> bytes:
    """The document of the shop."""
    security: dict[str, Any] = {"oauth": {"type": "oauth2", "flows": {}}}
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": back_end.url}],
        "components": {"securitySchemes": security},
        "paths": {"/orders": {"get": {"summary": "Orders"}}},
    }
    return json.dumps(found).encode()


@pytest.fixture
async def shop(config: Config, no_models: None) -> AsyncIterator[Shop]:
    """A shop with the users ann and bob."""
    config = with_calls_to_this_machine(config)
    async with AsyncExitStack() as stack:
        back_end = await stack.enter_async_context(Service().serving())
        server = await stack.enter_async_context(small_server())
        server.metadata = {
            "authorization_endpoint": f"{server.url}/authorize",
            "revocation_endpoint": f"{server.url}/token",
            "authorization_response_iss_parameter_supported": True,
        }
        engine = await stack.enter_async_context(open_engine(config=config))
        identity = BackendIdentity("user", issuer=server.url, client_id="holdfast", scopes=("orders",))
        await engine.sources.add(
            "shop",
            document=document(back_end),
            choice=Choice(everything=True),
            base_url=back_end.url,
            identity=identity,
        )
        await engine.tools.permit(TOOL, {"users": "execute"})
        keys = {user: await make_key(engine, user, scopes=["read", "write"]) for user in ("ann", "bob")}
        site = await stack.enter_async_context(running(engine, config))
        yield Shop(site, back_end, server, keys)


async def test_a_user_connects_once_and_calls_go_with_the_users_token(shop: Shop) -> None:
    before = await shop.connection()
    asked = await shop.begin()
    page = await shop.site.ask("GET", f"/oauth/callback?{urlencode({'state': asked['state'], 'code': 'the-c0de'})}")
    done = await shop.come_back(asked["state"])
    result = await shop.call()

    assert (before["state"], before["host"]) == ("not_connected", f"127.0.0.1:{shop.back_end.port}")
    assert (asked["response_type"], asked["code_challenge_method"], asked["scope"]) == ("code", "S256", "orders")
    assert asked["redirect_uri"].endswith("/oauth/callback")
    assert (page.status, b"<strong>ann</strong>" in page.body, b"shop" in page.body) == (200, True, True)
    assert (done.status, b"shop is connected" in done.body) == (200, True)
    form = shop.server.asked[0]
    assert (form["grant_type"], form["code"], form["client_id"]) == ("authorization_code", "the-c0de", "holdfast")
    token = shop.back_end.asked[-1].headers["Authorization"].removeprefix("Bearer ")
    assert token.count(".") == 2
    assert result["isError"] is False
    assert token not in json.dumps(result)
    assert (await shop.connection())["state"] == "connected"


async def test_two_users_never_share_a_token(shop: Shop) -> None:
    await shop.connect("ann")
    refused = await shop.call("bob")
    await shop.connect("bob")
    for user in ("ann", "bob", "ann"):
        await shop.call(user)

    first, second, third = [asked.headers["Authorization"] for asked in shop.back_end.asked]
    assert refused["isError"] is True
    assert "/connections?source=shop" in refused["content"][0]["text"]
    assert first == third
    assert first != second


@pytest.mark.parametrize("change", ["again", "altered", "made up", "expired"])
async def test_a_state_is_good_once_for_a_while_and_for_what_it_was_made(shop: Shop, change: str) -> None:
    state = (await shop.begin())["state"]
    match change:
        case "again":
            await shop.come_back(state)
        case "altered":
            state = state[:60] + ("A" if state[60] != "A" else "B") + state[61:]
        case "expired":
            await shop.engine.database.run("update consent_request set expires_at = now() where host_id = $1")
        case _:
            state = "x" * 130
    asked = len(shop.server.asked)

    page = await shop.site.ask("GET", f"/oauth/callback?state={state}")
    reply = await shop.come_back(state)

    assert (page.status, reply.status) == (404, 404)
    assert len(shop.server.asked) == asked


async def test_an_answer_of_another_authorization_server_is_refused_before_the_code_is_sent(shop: Shop) -> None:
    replies = [await shop.come_back((await shop.begin())["state"], iss=iss) for iss in ("https://evil.example.com", "")]
    declined = await shop.come_back((await shop.begin())["state"], code="", error="access_denied")
    forged = await shop.come_back((await shop.begin())["state"], code="", error="<script>", iss="https://evil.example")

    assert [reply.status for reply in replies] == [403, 403]
    assert (declined.status, b"access_denied" in declined.body) == (200, True)
    assert (forged.status, b"script" in forged.body) == (403, False)
    assert shop.server.asked == []


async def test_a_connection_that_a_browser_began_is_completed_by_that_browser_alone(shop: Shop) -> None:
    ann, elsewhere, bob = [await shop.session(user) for user in ("ann", "ann", "bob")]

    refused = [
        await shop.come_back((await shop.begin(headers=ann))["state"], headers=headers)
        for headers in ({}, elsewhere, bob)
    ]
    done = await shop.come_back((await shop.begin(headers=ann))["state"], headers=ann)

    assert [reply.status for reply in refused] == [403, 403, 403]
    assert (done.status, done.headers["location"]) == (303, "/connections?source=shop")
    assert len(shop.server.asked) == 1


async def test_a_browser_of_another_user_does_not_complete_what_a_key_began(shop: Shop) -> None:
    bob, ann = [await shop.session(user) for user in ("bob", "ann")]

    refused = await shop.come_back((await shop.begin("ann"))["state"], headers=bob)
    done = await shop.come_back((await shop.begin("ann"))["state"], headers=ann)

    assert (refused.status, done.status) == (403, 303)
    assert (await shop.connection("bob"))["state"] == "not_connected"


async def test_an_agent_neither_connects_nor_disconnects(shop: Shop) -> None:
    tenant = await shop.engine.tenants.id_of("default")
    agent = (await shop.engine.keys.create(tenant, "ann", agent="support")).text

    replies = [await shop.site.ask(method, "/api/connections/shop", key=agent) for method in ("POST", "DELETE")]

    assert [reply.status for reply in replies] == [403, 403]


async def test_a_token_is_refreshed_shortly_before_it_expires_and_no_call_waits_for_that(shop: Shop) -> None:
    shop.server.change = {"refresh_token": "r3fresh-1", "expires_in": 300}
    await shop.connect()
    await shop.age(seconds=280)
    shop.server.change = {"refresh_token": "r3fresh-2", "expires_in": 300}
    shop.server.began, shop.server.waits = asyncio.Event(), asyncio.Event()

    async with asyncio.timeout(20):
        during = await shop.call()
        await shop.server.began.wait()
    shop.server.waits.set()
    await shop.settled()
    await shop.call()
    await shop.age(seconds=300)
    await shop.call()

    first, second, third = [asked.headers["Authorization"] for asked in shop.back_end.asked]
    assert during["isError"] is False
    assert len({first, second, third}) == 3
    assert [form.get("refresh_token") for form in shop.server.asked] == [None, "r3fresh-1", "r3fresh-2"]


async def test_a_token_that_is_valid_for_less_than_a_minute_is_not_refreshed_with_each_call(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.consent.user_tokens.FRESH", 0.0)
    shop.server.change = {"refresh_token": "r3fresh-1", "expires_in": 25}
    await shop.connect()

    for _ in range(3):
        await shop.call()

    assert [form["grant_type"] for form in shop.server.asked] == ["authorization_code"]


async def test_a_connection_that_is_not_refreshed_any_more_asks_for_consent_again(shop: Shop) -> None:
    shop.server.change = {"refresh_token": "r3fresh-1"}
    await shop.connect()
    await shop.age(seconds=300)
    refusal = {"error": "invalid_grant", "error_description": "the token r3fresh-1 was revoked"}
    shop.server.instead = web.json_response(refusal, status=400)

    refused = await shop.call()
    again = await shop.call()

    connection = await shop.connection()
    assert (refused["isError"], again["isError"]) == (True, True)
    assert "/connections?source=shop" in refused["content"][0]["text"]
    assert (connection["state"], "does not refresh" in connection["reason"]) == ("expired", True)
    assert len(shop.server.asked) == 2
    assert "r3fresh" not in json.dumps([refused, connection])


async def test_a_token_that_the_back_end_refuses_asks_for_consent_again(shop: Shop) -> None:
    await shop.connect()
    shop.back_end.will_answer("/orders", status=401)

    refused = await shop.call()

    assert "/connections?source=shop" in refused["content"][0]["text"]
    assert (await shop.connection())["state"] == "expired"
    shop.back_end.answers.clear()
    await shop.connect()
    assert (await shop.call())["isError"] is False


async def test_whoever_disconnects_has_the_tokens_revoked_and_deleted(shop: Shop) -> None:
    shop.server.change = {"refresh_token": "r3fresh-1"}
    await shop.connect()

    removed = await shop.site.ask("DELETE", "/api/connections/shop", key=shop.keys["ann"])
    again = await shop.site.ask("DELETE", "/api/connections/shop", key=shop.keys["ann"])
    refused = await shop.call()

    assert removed.json() == {"source": "shop", "revoked": True}
    assert shop.server.asked[-1] == {"token": "r3fresh-1", "token_type_hint": "refresh_token", "client_id": "holdfast"}
    assert again.status == 404
    assert refused["isError"] is True


@pytest.mark.req("SAFE-07")
async def test_whoever_connects_and_disconnects_has_entries_in_the_audit(shop: Shop) -> None:
    await shop.come_back("n0thing", code="the-c0de")
    refused = await shop.begin()
    await shop.come_back(refused["state"], code="", error="access_denied")
    await shop.connect()
    await shop.site.ask("DELETE", "/api/connections/shop", key=shop.keys["ann"])

    removed, done, begun, declined, _ = await shop.engine.audit.list()

    assert [(each.action, each.target, each.outcome, each.user) for each in (begun, done, removed)] == [
        ("begin_connection", "shop", "done", "ann"),
        ("complete_connection", "shop", "done", "ann"),
        ("remove_connection", "shop", "done", "ann"),
    ]
    assert (declined.action, declined.outcome) == ("complete_connection", "refused")


async def test_connections_end_with_their_source(shop: Shop) -> None:
    await shop.connect()

    await shop.engine.sources.remove("shop")

    for table in ("source_connection", "consent_request"):
        assert await shop.engine.database.value(f"select count(*) from {table} where host_id = $1") == 0


async def test_a_token_goes_to_no_other_address_than_the_one_that_the_user_agreed_to(shop: Shop) -> None:
    await shop.connect()
    async with Service().serving() as other:
        version = (await shop.engine.sources.get("shop")).source.version
        await shop.engine.sources.change("shop", base_url=other.url, accept_address=True, version=version)
        refused = await shop.call()

    assert other.asked == []
    assert "the consent was for" in refused["content"][0]["text"]


async def test_tokens_codes_and_states_are_in_no_row_in_clear(shop: Shop) -> None:
    shop.server.change = {"refresh_token": "r3fresh-1"}
    begun = (await shop.begin())["state"]
    await shop.connect()
    await shop.call()
    async with shop.engine.postgres.owner() as owner:
        tables = await owner.all(
            "select oid::regclass::text as name from pg_class where relkind in ('r', 'p') and oid > 16383"
        )
        rows = [row[0] for table in tables for row in await owner.all(f"select t::text from {table['name']} t")]

    text = "\n".join(rows)
    token = shop.back_end.asked[-1].headers["Authorization"].removeprefix("Bearer ")
    assert TOOL in text
    for secret in (token, "r3fresh-1", "the-c0de", begun, shop.server.asked[0]["code_verifier"]):
        assert secret not in text
        assert secret.encode().hex() not in text


ODD: list[tuple[dict[str, Any], int, list[str]]] = [
    ({"scope": "orders a\0b \ud800"}, 200, ["orders"]),
    ({"scope": " ".join(f"s{number}" for number in range(1000))}, 200, [f"s{number}" for number in range(100)]),
    ({"refresh_token": "\ud800"}, 503, []),
    ({"refresh_token": "r" * 20_000}, 503, []),
]


@pytest.mark.parametrize(("change", "status", "scopes"), ODD)
async def test_an_odd_answer_of_an_authorization_server_is_cut_or_refused(
    shop: Shop, change: dict[str, Any], status: int, scopes: list[str]
) -> None:
    shop.server.change = change

    reply = await shop.connect()

    assert (reply.status, (await shop.connection())["scopes"]) == (status, scopes)
    assert (await shop.call())["isError"] is (status != 200)


async def test_a_user_of_the_same_name_in_another_tenant_gets_no_token(shop: Shop) -> None:
    await shop.connect()
    await shop.call()
    await shop.engine.tenants.create("acme")
    acme = shop.engine.tenant("acme")
    identity = BackendIdentity("user", issuer=shop.server.url, client_id="holdfast", scopes=("orders",))
    await acme.sources.add(
        "shop",
        document=document(shop.back_end),
        choice=Choice(everything=True),
        base_url=shop.back_end.url,
        identity=identity,
    )

    execution = await acme.executions.call(TOOL, user="ann")

    assert "you have not connected with shop" in str(execution.error)
    assert len(shop.back_end.asked) == 1


async def test_the_audit_says_who_connected_and_disconnected_and_whom_it_refused(shop: Shop) -> None:
    bob = await shop.session("bob")
    await shop.come_back((await shop.begin())["state"], headers=bob)
    await shop.connect()
    await shop.site.ask("DELETE", "/api/connections/shop", key=shop.keys["ann"])

    entries = [each for each in await shop.engine.audit.list(target="shop") if "connection" in each.action]

    assert [(each.action, each.outcome, each.user, each.actor) for each in reversed(entries)] == [
        ("begin_connection", "done", "ann", None),
        ("complete_connection", "refused", "ann", "bob"),
        ("begin_connection", "done", "ann", None),
        ("complete_connection", "done", "ann", None),
        ("remove_connection", "done", "ann", None),
    ]


async def test_calls_at_the_same_time_on_two_nodes_refresh_a_token_once(
    shop: Shop, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.consent.user_tokens.PAUSE", 0.01)
    shop.server.change = {"refresh_token": "r3fresh-1"}
    await shop.connect()
    await shop.engine.database.run("update source_connection set expires_at = now() where host_id = $1")
    shop.server.waits = asyncio.Event()
    shop.server.began.clear()
    async with open_engine(config=with_calls_to_this_machine(config)) as other:
        tools = [await engine.tools.get(TOOL) for engine in (shop.engine, other)]
        run = Run("ann", None, None, None, None, "call", "key")
        calls = [
            asyncio.create_task(engine.executor.run(tool.tool, {}, run, timeout=20, max_output_bytes=10_000))
            for engine, tool in zip((shop.engine, other), tools, strict=True)
            for _ in range(50)
        ]
        async with asyncio.timeout(20):
            await shop.server.began.wait()
            shop.server.waits.set()
            outcomes = await asyncio.gather(*calls)

    assert {outcome.status for outcome in outcomes} == {"done"}
    assert [form["grant_type"] for form in shop.server.asked] == ["authorization_code", "refresh_token"]
    assert len({asked.headers["Authorization"] for asked in shop.back_end.asked}) == 1


async def test_an_engine_that_closes_keeps_the_tokens_that_are_being_refreshed(
    shop: Shop, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.server.change = {"refresh_token": "r3fresh-1"}
    await shop.connect()
    await shop.age(seconds=300)
    shop.server.change = {"refresh_token": "r3fresh-2"}
    shop.server.began, shop.server.waits = asyncio.Event(), asyncio.Event()
    close = TokenCache.close

    async def answer_then_close(cache: TokenCache) -> None:
        assert shop.server.waits is not None
        shop.server.waits.set()
        await close(cache)

    monkeypatch.setattr(TokenCache, "close", answer_then_close)
    run = Run("ann", None, None, None, None, "call", "key")
    async with open_engine(config=with_calls_to_this_machine(config)) as other:
        tool = (await other.tools.get(TOOL)).tool
        call = asyncio.create_task(other.executor.run(tool, {}, run, timeout=20, max_output_bytes=10_000))
        async with asyncio.timeout(20):
            await shop.server.began.wait()
    call.cancel()
    await asyncio.wait([call])

    result = await shop.call()

    assert result["isError"] is False
    assert [form.get("refresh_token") for form in shop.server.asked] == [None, "r3fresh-1"]


async def test_a_backend_that_acts_for_a_user_disconnects_that_user(shop: Shop) -> None:
    await shop.connect()
    backend = await make_key(shop.engine, "root", scopes=["act-as", "write"])

    removed = await shop.site.ask("DELETE", "/api/connections/shop", key=backend, headers={"Holdfast-User": "ann"})

    assert removed.status == 200, removed
    assert (await shop.connection())["state"] == "not_connected"


@pytest.mark.parametrize("settings", [{"public_url": "https://agents.example.com"}])
async def test_a_client_that_opens_addresses_is_asked_to_connect_and_the_call_goes_on(
    shop: Shop, settings: dict[str, Any]
) -> None:
    params: dict[str, Any] = {"name": TOOL, "arguments": {}}
    able: dict[str, Any] = {CAPABILITIES: {"elicitation": {"url": {}}}}

    asked = (await ask(shop.site, "tools/call", params, key=shop.keys["ann"], **able)).json()["result"]
    ((name, question),) = asked["inputRequests"].items()
    params |= {"requestState": asked["requestState"], "inputResponses": {name: {"action": "accept"}}}
    too_early = (await ask(shop.site, "tools/call", params, key=shop.keys["ann"], **able)).json()["result"]
    await shop.connect()
    done = (await ask(shop.site, "tools/call", params, key=shop.keys["ann"], **able)).json()["result"]

    assert asked["resultType"] == "input_required"
    assert question["params"]["url"] == "https://agents.example.com/connections?source=shop"
    assert (too_early["isError"], done["isError"]) == (True, False)


@pytest.mark.parametrize("settings", [{"public_url": "https://agents.example.com"}])
async def test_an_authorization_server_that_reads_our_document_needs_no_registration(
    shop: Shop, settings: dict[str, Any]
) -> None:
    shop.server.metadata["client_id_metadata_document_supported"] = True
    await without_client(shop)

    asked = await shop.begin()
    published = (await shop.site.ask("GET", "/oauth/client.json")).json()

    assert asked["client_id"] == published["client_id"] == "https://agents.example.com/oauth/client.json"
    assert published["redirect_uris"] == [asked["redirect_uri"]]
    assert published["token_endpoint_auth_method"] == "none"


async def test_where_nothing_else_is_left_this_installation_registers_once(shop: Shop) -> None:
    registered: list[Any] = []

    async def register(request: web.Request) -> web.Response:
        registered.append(await request.json())
        return web.json_response({"client_id": "made-up", "client_secret": "s3cret of ours"}, status=201)

    shop.back_end.will_answer("/register", register)
    shop.server.metadata["registration_endpoint"] = f"{shop.back_end.url}/register"
    shop.server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
    await without_client(shop)

    first, second = await shop.begin(), await shop.begin("bob")
    await shop.come_back(first["state"])

    assert [first["client_id"], second["client_id"]] == ["made-up", "made-up"]
    assert [each["redirect_uris"] for each in registered] == [[first["redirect_uri"]]]
    assert shop.server.headers[-1]["Authorization"].startswith("Basic ")
    rows = await shop.engine.database.all("select r::text as row from oauth_registration r where host_id = $1")
    assert "s3cret" not in rows[0]["row"]


async def test_a_registered_client_that_the_server_has_forgotten_is_registered_anew(shop: Shop) -> None:
    numbers = count(1)

    async def register(_: web.Request) -> web.Response:
        return web.json_response({"client_id": f"made-up-{next(numbers)}"}, status=201)

    shop.back_end.will_answer("/register", register)
    shop.server.metadata["registration_endpoint"] = f"{shop.back_end.url}/register"
    await without_client(shop)
    shop.server.change = {"refresh_token": "r3fresh-1"}
    await shop.connect()
    await shop.age(seconds=300)
    shop.server.instead = web.json_response({"error": "invalid_client"}, status=401)

    refused = await shop.call()

    assert "/connections?source=shop" in refused["content"][0]["text"]
    assert "does not know this installation" in (await shop.connection())["reason"]
    assert (await shop.begin())["client_id"] == "made-up-2"


async def test_an_unknown_client_is_told_what_to_register(shop: Shop) -> None:
    await without_client(shop)

    reply = await shop.site.ask("POST", "/api/connections/shop", key=shop.keys["ann"])

    assert (reply.status, reply.code) == (503, "unavailable")
    assert "/oauth/callback" in reply.json()["next"]


async def test_no_token_is_written_to_the_log(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    shop.server.change = {"refresh_token": "r3fresh-1"}
    await shop.connect()
    await shop.call()
    shop.server.instead = web.json_response({"error": "invalid_request", "error_description": "r3fresh-1"}, status=400)
    await shop.site.ask("DELETE", "/api/connections/shop", key=shop.keys["ann"])

    token = shop.back_end.asked[-1].headers["Authorization"].removeprefix("Bearer ")
    written = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("holdfast"))
    assert "were not revoked" in written
    assert not any(secret in written for secret in (token, "r3fresh-1", shop.server.asked[0]["code_verifier"]))


async def without_client(shop: Shop) -> None:
    """Have the source name no client."""
    version = (await shop.engine.sources.get("shop")).source.version
    identity = BackendIdentity("user", issuer=shop.server.url)
    await shop.engine.sources.change("shop", identity=identity, version=version)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("settings", [{"public_url": "https://agents.example.com"}])
async def test_the_official_client_opens_the_address_and_its_call_goes_on(
    shop: Shop, settings: dict[str, Any], mode: Any
) -> None:
    opened: list[str] = []

    async def asked(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestURLParams)
        opened.append(params.url)
        await shop.connect()
        return types.ElicitResult(action="accept")

    url, headers = f"http://127.0.0.1:{shop.site.port}/mcp", {"Authorization": f"Bearer {shop.keys['ann']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=asked) as client,
    ):
        result = await client.call_tool(TOOL, {})

    assert result.is_error is False
    assert opened == ["https://agents.example.com/connections?source=shop"]
