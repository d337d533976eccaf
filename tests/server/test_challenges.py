"""Challenges: what a client that needs a token, or one with more scopes, is told on every surface."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from holdfast import App
from holdfast.core.config import Config
from holdfast.core.issuers import AccessSettings, Issuer
from holdfast.engine import open_engine
from tests.access.issuing import SECRET, shared_token
from tests.server.conftest import make_key, running
from tests.server.mcp_wire import ACCEPT, ask, begin, call, legacy, messages, opened, post, sse
from tests.server.socket_client import JSON, address
from tests.server.wire import Reply, Site

pytestmark = pytest.mark.req("MCP-06")

ISSUER = "https://login.example.com"
METADATA = "http://127.0.0.1/.well-known/oauth-protected-resource"


def token(*scopes: str, **claims: object) -> str:
    """A token of ann with these scopes."""
    named = " ".join(f"holdfast:{scope}" for scope in scopes)
    return shared_token(ISSUER, scope=f"openid {named}", **claims)


def challenge(*scopes: str, resource: str = "/mcp") -> str:
    """The challenge of a caller that lacks scopes."""
    named = " ".join(f"holdfast:{scope}" for scope in scopes)
    error = f'error="insufficient_scope", scope="{named}"'
    return f'Bearer realm="holdfast", {error}, resource_metadata="{METADATA}{resource}"'


def challenge_in(reply: Reply) -> tuple[int, str | None]:
    """The status of an answer and its challenge."""
    return reply.status, reply.headers.get("www-authenticate")


@pytest.fixture
def app() -> App:
    """A program with a tool for every user, one for admins, and one of an agent."""
    app = App()

    @app.tool
    async def greet() -> str:
        """Greet."""
        return "hello"

    @app.tool
    async def dismiss() -> str:
        """Dismiss somebody."""
        return "done"

    app.agent("support", instructions="You help.", tools=[dismiss], memory=False)
    return app


@pytest.fixture
async def site(config: Config, app: App, no_models: None) -> AsyncIterator[Site]:
    """A server that takes tokens of an issuer, which may grant everything."""
    given: dict[str, Any] = {"issuer": ISSUER, "audience": ["holdfast"], "secret": SECRET, "agent_claim": "agent"}
    issuer = Issuer.model_validate({**given, "scopes": ["read", "write", "admin", "act-as"]})
    config = config.model_copy(update={"access": AccessSettings(issuers=(issuer,))})
    async with open_engine(config=config) as engine, AsyncExitStack() as stack:
        own = engine.tenant(await engine.tenants.id_of("default"))
        await stack.enter_async_context(own.serving(app))
        await own.tools.permit("greet", {"users": "execute"})
        yield await stack.enter_async_context(running(engine, config, app=app))


@pytest.mark.parametrize("path", ["/mcp", "/mcp/sse", "/mcp/message?session_id=x", "/rpc", "/api/me"])
async def test_a_caller_without_a_token_is_told_which_scopes_to_ask_for(site: Site, path: str) -> None:
    reply = await site.ask("GET" if path in ("/mcp/sse", "/api/me") else "POST", path, headers={"Accept": ACCEPT})

    resource = next((each for each in ("/mcp", "/rpc") if path.startswith(each)), "")
    assert challenge_in(reply) == (
        401,
        f'Bearer realm="holdfast", scope="holdfast:read holdfast:write", resource_metadata="{METADATA}{resource}"',
    )


async def test_a_socket_is_refused_with_all_scopes_that_it_needs(site: Site) -> None:
    url = address(site, "support", session_id="web")
    replies: list[tuple[int, str | None]] = []
    for key in (None, token("read"), token("act-as")):
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        with pytest.raises(InvalidStatus) as refused:
            await connect(url, subprotocols=JSON, additional_headers=headers).__aenter__()
        reply = refused.value.response
        replies.append((reply.status_code, reply.headers.get("WWW-Authenticate")))

    (missing, first), *lacking = replies
    assert missing == 401
    assert first is not None
    assert 'scope="holdfast:read holdfast:write"' in first
    expected = challenge("read", "write", resource="").replace(METADATA, f"http://127.0.0.1:{site.port}{METADATA[16:]}")
    assert lacking == [(403, expected)] * 2


@pytest.mark.parametrize("name", ["greet", "remember"])
async def test_a_tool_that_more_scopes_would_show_is_answered_with_the_scopes_that_it_needs(
    site: Site, name: str
) -> None:
    reader = token("read")
    session = await begin(site, key=reader)

    modern = await call(site, name, {}, key=reader)
    within = await call(site, "call_tool", {"name": name}, key=reader)
    older = await post(site, session, legacy("tools/call", {"name": name, "arguments": {}}), key=reader)
    rpc = await site.ask("POST", "/rpc", key=reader, json={"jsonrpc": "2.0", "id": 1, "method": name})

    assert [challenge_in(reply) for reply in (modern, within, older)] == [(403, challenge("write"))] * 3
    assert challenge_in(rpc) == (403, challenge("write", resource="/rpc"))
    assert modern.json()["details"] == {"scope": "write"}


async def test_a_token_with_the_scopes_of_the_challenge_calls_the_tool(site: Site) -> None:
    replies = [await call(site, "greet", key=token(*scopes)) for scopes in (["write"], ["admin"], ["read", "write"])]

    assert [reply.json()["result"]["content"][0]["text"] for reply in replies] == ["hello"] * 3


async def test_a_tool_that_the_user_never_sees_looks_missing_with_any_scopes(site: Site) -> None:
    key = await make_key(site.engine, "bob", scopes=["read"])

    hidden = await call(site, "dismiss", key=token("read"))
    absent = await call(site, "dismisz", key=token("read"))
    by_key = await call(site, "greet", key=key)

    said = hidden.json()["error"]["message"].replace("dismiss", "dismisz")
    assert (hidden.status, said) == (absent.status, absent.json()["error"]["message"])
    assert (by_key.status, by_key.headers.get("www-authenticate")) == (200, None)
    assert "there is no tool 'greet'" in by_key.json()["error"]["message"]


async def test_the_token_of_an_agent_is_asked_for_the_scopes_of_the_agents_tools(site: Site) -> None:
    own = await call(site, "dismiss", key=token("read", agent="support"))
    administration = await site.ask("GET", "/api/keys", key=token("read", agent="support"))

    assert challenge_in(own) == (403, challenge("write"))
    assert challenge_in(administration) == (403, None)  # which no token of an agent can have


async def test_what_reads_is_answered_with_the_scope_for_reading(site: Site) -> None:
    nothing = token("act-as")
    session = await begin(site, key=nothing)

    modern = await ask(site, "resources/list", key=nothing)
    older = await post(site, session, legacy("resources/list"), key=nothing)

    assert [challenge_in(reply) for reply in (modern, older)] == [(403, challenge("read"))] * 2


async def test_one_message_of_many_is_refused_in_its_answer(site: Site) -> None:
    reader = token("read")
    session = await begin(site, key=reader, version="2025-03-26")
    batch = [legacy("tools/call", {"name": "greet", "arguments": {}}, id=1), legacy("ping", id=2)]

    older = await post(site, session, batch, key=reader)
    rpc = await site.ask(
        "POST", "/rpc", key=reader, json=[{"jsonrpc": "2.0", "id": id, "method": "greet"} for id in (1, 2)]
    )
    async with sse(site, key=reader) as (stream, url):
        hello = legacy("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {}}, id=1)
        for message in (hello, legacy("tools/call", {"name": "greet", "arguments": {}}, id=2)):
            assert (await site.ask("POST", url, key=reader, json=message)).status == 202
        said = messages(stream)
        streamed = [await anext(said), await anext(said)][1]

    refused = next(each for each in older.json() if each["id"] == 1)
    for answer in (refused, streamed):
        assert answer["error"]["data"] == {"scope": "write", "code": "forbidden"}
    failures = [(each["error"]["code"], each["error"]["data"]["scope"]) for each in rpc.json()]
    assert failures == [(-31403, "write")] * 2


async def test_who_acts_for_another_user_is_told_all_scopes_at_once(site: Site) -> None:
    headers = {"Holdfast-User": "bob", "Content-Type": "application/json"}

    reading = await site.ask("GET", "/api/conversations", key=token("read"), headers=headers)
    writing = await site.ask("POST", "/api/conversations", key=token("read"), headers=headers, body=b"{}")
    administering = await site.ask("GET", "/api/keys", key=token("act-as", "read"), headers=headers)

    assert challenge_in(reading) == (403, challenge("act-as", "read", resource=""))
    assert challenge_in(writing) == (403, challenge("act-as", "write", resource=""))
    assert challenge_in(administering) == (403, None)


async def test_a_failed_sign_in_has_a_challenge(site: Site) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    reply = await site.ask("POST", "/login", headers=headers, body=b"link=hf_wrong")

    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith('Bearer realm="holdfast"')


async def test_a_stream_of_changes_is_refused_before_it_begins(site: Site) -> None:
    async with opened(site, "GET", "/mcp/sse", key=token(exp=1)) as wire:
        reply = await wire.reply_without_body()

    assert reply.status == 401
    assert 'error="invalid_token"' in reply.headers["www-authenticate"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": '127.0.0.1", scope="holdfast:admin'},
        {"Host": "127.0.0.1/x"},
        {"X-Forwarded-Proto": 'https", scope="holdfast:admin'},
        {"X-Forwarded-Host": "evil.example.com"},
        {"Forwarded": "host=evil.example.com;proto=https"},
        {"Authorization": 'Bearer a"b\\c'},
    ],
)
async def test_no_header_of_a_request_adds_to_a_challenge(site: Site, headers: dict[str, str]) -> None:
    reply = await site.ask("POST", "/mcp", headers={"Accept": ACCEPT, **headers})

    given = reply.headers.get("www-authenticate", "")
    assert reply.status == (400 if "Host" in headers else 401)
    assert "admin" not in given
    assert "evil" not in given
    assert ("Host" in headers) or given.endswith(f'resource_metadata="{METADATA}/mcp"')
    assert given.count('"') in (0, 6, 10)
