"""Whole rounds of consent with a real authorization server: a REST back end, and an MCP server that needs tokens."""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from pydantic import AnyHttpUrl

from holdfast.core.config import Config
from holdfast.engine import open_engine
from holdfast.skills.request import BackendIdentity
from holdfast.skills.sources.source import Choice
from tests.execution.backend import Service, with_calls_to_this_machine
from tests.oauth.keycloak import Keycloak, Realm, audience_mapper, public_client
from tests.oauth.sign_in import parameters_of, sign_in
from tests.server.conftest import make_key, running
from tests.server.mcp_wire import call
from tests.server.test_connections import FORM, document
from tests.server.wire import Reply, Site

pytestmark = pytest.mark.req("MCP-06", "MCP-07")

USERS = ("ann", "bob")


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a token."""
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


class Verifier:
    """Takes the tokens of a realm that are for this server."""

    def __init__(self, realm: Realm, url: str) -> None:
        self._realm = realm
        self._url = url

    async def verify_token(self, token: str) -> AccessToken | None:
        claims = claims_of(token)
        audience = claims.get("aud", [])
        if claims["iss"] != self._realm.issuer or self._url not in (
            [audience] if isinstance(audience, str) else audience
        ):
            return None
        return AccessToken(token=token, client_id=claims["azp"], scopes=[], subject=claims["preferred_username"])


@asynccontextmanager
async def mcp_server(realm: Realm, listening: socket.socket) -> AsyncGenerator[str]:
    """An MCP server of the official SDK that answers only to tokens of the realm."""
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(realm.issuer), resource_server_url=AnyHttpUrl(url), validate_token_resource=False
    )
    server = MCPServer("notes", auth=settings, token_verifier=Verifier(realm, url))

    @server.tool()
    def whoami() -> str:
        """Say who calls."""
        token = get_access_token()
        return token.subject or "nobody" if token is not None else "nobody"

    serving = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning", lifespan="on"))
    task = asyncio.create_task(serving.serve(sockets=[listening]))
    try:
        yield url
    finally:
        serving.should_exit = True
        await task


@dataclass(frozen=True, slots=True)
class Stage:
    """A server with the sources `shop` and `notes`, and the realm at which users agree."""

    site: Site
    realm: Realm
    back_end: Service
    keys: dict[str, str]

    async def connect(self, source: str, user: str) -> Reply:
        """Connect a user: sign in at the realm, and send the form of the page that the browser comes back to."""
        begun = await self.site.ask("POST", f"/api/connections/{source}", key=self.keys[user])
        assert begun.status == 200, begun
        back = parameters_of(await sign_in(begun.json()["url"], user))
        page = await self.site.ask("GET", f"/oauth/callback?{urlencode(back)}")
        assert page.status == 200, page
        answer = urlencode({name: back[name] for name in ("state", "code", "iss")}).encode()
        return await self.site.ask("POST", "/oauth/callback", headers=FORM, body=answer)

    async def call(self, tool: str, user: str) -> dict[str, Any]:
        """The result of a tool."""
        return (await call(self.site, tool, {}, key=self.keys[user])).json()["result"]

    def sessions(self, user: str) -> int:
        """How many sessions a user has at the realm."""
        (found,) = self.realm.administer("GET", f"/users?username={user}")
        return len(self.realm.administer("GET", f"/users/{found['id']}/sessions"))


@pytest.fixture
async def stage(config: Config, keycloak: Keycloak, no_models: None) -> AsyncIterator[Stage]:
    """The stage; nobody is connected."""
    config = with_calls_to_this_machine(config)
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    client = public_client(
        "holdfast", "*", protocolMappers=[audience_mapper(url)], defaultClientScopes=["basic", "profile"]
    )
    async with AsyncExitStack() as stack:
        realm = stack.enter_context(keycloak.realm(clients=[client], users=USERS))
        await stack.enter_async_context(mcp_server(realm, listening))
        back_end = await stack.enter_async_context(Service().serving())
        engine = await stack.enter_async_context(open_engine(config=config))
        await engine.sources.add(
            "shop",
            document=document(back_end),
            choice=Choice(everything=True),
            base_url=back_end.url,
            identity=BackendIdentity("user", issuer=realm.issuer, client_id="holdfast", scopes=("openid",)),
        )
        identity = BackendIdentity("user", client_id="holdfast")
        await engine.sources.add("notes", kind="mcp", url=url, identity=identity, by="root")
        await engine.tools.permit("get_orders", {"users": "execute"})
        keys = {user: await make_key(engine, user, scopes=["read", "write"]) for user in USERS}
        yield Stage(await stack.enter_async_context(running(engine, config)), realm, back_end, keys)


async def test_a_rest_back_end_gets_the_token_of_the_user_which_is_refreshed_and_revoked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.consent.user_tokens.FRESH", 0.0)
    done = [await stage.connect("shop", user) for user in USERS]
    for user in USERS:
        assert (await stage.call("get_orders", user))["isError"] is False
    await stage.site.engine.database.run("update source_connection set expires_at = now() where host_id = $1")
    await stage.call("get_orders", "ann")
    before = stage.sessions("ann")
    removed = await stage.site.ask("DELETE", "/api/connections/shop", key=stage.keys["ann"])
    refused = await stage.call("get_orders", "ann")

    tokens = [asked.headers["Authorization"].removeprefix("Bearer ") for asked in stage.back_end.asked]
    assert [reply.status for reply in done] == [200, 200]
    assert [claims_of(token)["preferred_username"] for token in tokens] == ["ann", "bob", "ann"]
    assert len(set(tokens)) == 3
    assert removed.json() == {"source": "shop", "revoked": True}
    assert (before, stage.sessions("ann"), stage.sessions("bob")) == (1, 0, 1)
    assert refused["isError"] is True


async def test_an_mcp_server_says_by_itself_where_its_users_agree(stage: Stage) -> None:
    engine = stage.site.engine
    at_first = await engine.sources.get("notes")
    done = await stage.connect("notes", "ann")
    await engine.sources.reload("notes", by="ann")
    await engine.tools.permit("notes_whoami", {"users": "execute"})

    of_ann = await stage.call("notes_whoami", "ann")
    of_bob = await stage.call("notes_whoami", "bob")
    await stage.connect("notes", "bob")
    later = [await stage.call("notes_whoami", user) for user in ("bob", "ann")]

    assert (at_first.source.tools, done.status) == (0, 200)
    assert of_ann["content"][0]["text"] == "ann"
    assert (of_bob["isError"], "/connections?source=notes" in of_bob["content"][0]["text"]) == (True, True)
    assert [result["content"][0]["text"] for result in later] == ["bob", "ann"]


async def test_an_mcp_server_whose_users_sessions_have_ended_asks_for_consent_again(stage: Stage) -> None:
    engine = stage.site.engine
    await stage.connect("shop", "ann")
    stage.realm.end_sessions()
    await engine.database.run("update source_connection set expires_at = now() where host_id = $1")

    refused = await stage.call("get_orders", "ann")
    (listed,) = [each for each in await engine.connections.list("ann") if each.source == "shop"]
    await stage.connect("shop", "ann")

    assert "/connections?source=shop" in refused["content"][0]["text"]
    assert listed.state == "expired"
    assert (await stage.call("get_orders", "ann"))["isError"] is False
