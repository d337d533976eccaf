"""The official MCP client signs in at a real authorization server, calls tools, and asks for more scopes by itself."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import TextContent
from pydantic import AnyUrl

from holdfast import App
from holdfast.core.config import Config
from holdfast.core.issuers import AccessSettings, Issuer
from holdfast.engine import open_engine
from tests.oauth.keycloak import Keycloak, Realm, audience_mapper, public_client
from tests.oauth.sign_in import parameters_of, sign_in
from tests.server.conftest import running
from tests.server.wire import Site

pytestmark = pytest.mark.req("MCP-06")

BACK = "http://127.0.0.1:9/callback"  # nobody listens there: the test reads the redirect


class Person(OAuthClientProvider):
    """A client of the SDK, and the person who signs in when it asks for that. `asked` are the scopes of each time."""

    def __init__(self, url: str, realm: Realm, user: str) -> None:
        self.asked: list[str] = []
        self._user = user
        self._answer: dict[str, str] = {}
        client = OAuthClientInformationFull(
            client_id="mcp-client", redirect_uris=[AnyUrl(BACK)], token_endpoint_auth_method="none", issuer=realm.issuer
        )
        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(BACK)], grant_types=["authorization_code"])
        super().__init__(url, metadata, Storage(client), self._redirect, self._callback)

    async def _redirect(self, url: str) -> None:
        asked = parameters_of(url)
        self.asked.append(asked["scope"])
        assert asked["resource"] == self.context.server_url
        self._answer = {**parameters_of(await sign_in(url, self._user))}

    async def _callback(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**{name: self._answer[name] for name in ("code", "state", "iss")})


class Storage:
    """What a client knows from the beginning, and its tokens."""

    def __init__(self, client: OAuthClientInformationFull) -> None:
        self._client = client
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


@pytest.fixture
def realm(keycloak: Keycloak) -> Any:
    """A realm that knows our scopes, of which clients get only those that they ask for."""
    in_token = {"include.in.token.scope": "true"}
    names = ["holdfast:read", "holdfast:write"]
    client = public_client(
        "mcp-client",
        BACK,
        protocolMappers=[audience_mapper("holdfast")],
        defaultClientScopes=["basic", "profile"],
        optionalClientScopes=names,
    )
    scopes = [{"name": name, "attributes": in_token} for name in names]
    with keycloak.realm(clients=[client], users=["ann"], scopes=scopes) as realm:
        yield realm


@pytest.fixture
async def site(config: Config, realm: Realm, no_models: None) -> AsyncIterator[Site]:
    """A server that takes tokens of the realm, and offers a tool that reads and one that writes."""
    app = App()

    @app.tool(access="read")
    async def look() -> str:
        """Look."""
        return "seen"

    @app.tool
    async def change() -> str:
        """Change something."""
        return "changed"

    issuer = Issuer(issuer=realm.issuer, audience=("holdfast",), user_claim="preferred_username")
    access = AccessSettings(issuers=(issuer,), scopes_supported=("holdfast:read",))
    async with open_engine(config=config.model_copy(update={"access": access})) as engine, AsyncExitStack() as stack:
        own = engine.tenant(await engine.tenants.id_of("default"))
        await stack.enter_async_context(own.serving(app))
        for tool in ("look", "change"):
            await own.tools.permit(tool, {"users": "execute"})
        yield await stack.enter_async_context(running(engine, engine.config, app=app))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_signs_in_calls_and_steps_up(site: Site, realm: Realm, mode: Any) -> None:
    url = f"http://127.0.0.1:{site.port}/mcp"
    person = Person(url, realm, "ann")
    async with (
        httpx2.AsyncClient(auth=person, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
        looked = await client.call_tool("look", {})
        before = [*person.asked]

        changed = await client.call_tool("change", {})
        again = await client.call_tool("change", {})

    assert {"look", "change"} & names == {"look"}
    blocks = [block for result in (looked, changed, again) for block in result.content]
    assert [block.text for block in blocks if isinstance(block, TextContent)] == ["seen", "changed", "changed"]
    assert before == ["holdfast:read"]
    assert [len(person.asked), person.asked[1].split()[-1]] == [2, "holdfast:write"]
