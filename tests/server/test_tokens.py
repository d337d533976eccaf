"""Tokens of other issuers on the wire: the HTTP API, streams and sockets."""

from time import time
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from holdfast.core.config import Config
from holdfast.core.issuers import AccessSettings, Issuer
from holdfast.engine import Engine, open_engine
from tests.access.issuing import SECRET, ec, issuer_server, shared_token
from tests.server.conftest import make_key, running
from tests.server.socket_client import client
from tests.server.wire import Site

pytestmark = pytest.mark.req("MCP-06", "SAFE-03")

PLATFORM = "https://project.example/auth/v1"
METADATA = "/.well-known/oauth-protected-resource"
SCOPES = "holdfast:read holdfast:write"


@pytest.fixture
def config(config: Config) -> Config:
    """The settings, with a platform whose tokens are taken."""
    given: dict[str, Any] = {"issuer": PLATFORM, "audience": "holdfast", "secret": SECRET, "agent_claim": "agent"}
    return config.model_copy(update={"access": AccessSettings(issuers=(Issuer(**given),))})


def token(**claims: object) -> str:
    return shared_token(PLATFORM, **claims)


@pytest.mark.req("ENG-10")
async def test_the_holder_of_a_token_is_its_user(site: Site) -> None:
    reply = await site.ask("GET", "/api/me", key=token(sub="7b1e4c0e"))

    assert reply.json() == {"tenant": "default", "user": "7b1e4c0e", "scopes": ["read", "write"], "local": False}


async def test_keys_and_the_token_of_the_server_file_are_taken_as_before(engine: Engine, site: Site) -> None:
    key = await make_key(engine)

    by_key = await site.ask("GET", "/api/me", key=key)
    by_file = await site.ask("GET", "/api/me", key=site.file.token)

    assert (by_key.json()["user"], by_file.json()["user"]) == ("ann", "local")


async def test_where_tokens_are_taken_nobody_is_local_without_one(site: Site) -> None:
    reply = await site.ask("GET", "/api/me")

    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert reply.headers["www-authenticate"] == (
        f'Bearer realm="holdfast", scope="{SCOPES}", resource_metadata="http://127.0.0.1{METADATA}"'
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"aud": "somebody else"}, "its audience is another server"),
        ({"exp": 1}, "it has expired"),
        ({"iss": 'https://"evil"'}, "its issuer 'https://'evil'' is unknown"),
        ("a.b.c", "it is not a signed JWT"),
        ("hf_wrong", "it is unknown, expired or revoked"),
    ],
)
async def test_a_wrong_token_is_told_why_and_where_to_get_a_right_one(
    site: Site, given: str | dict[str, Any], why: str
) -> None:
    reply = await site.ask("GET", "/api/me", key=given if isinstance(given, str) else token(**given))

    challenge = reply.headers["www-authenticate"]
    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert challenge.startswith(f'Bearer realm="holdfast", error="invalid_token", error_description="{why}')
    assert challenge.endswith(f'scope="{SCOPES}", resource_metadata="http://127.0.0.1{METADATA}"')
    assert challenge.count('"') == 10


async def test_a_token_without_a_scope_is_told_which_it_needs(site: Site) -> None:
    reply = await site.ask("GET", "/api/conversations", key=token(scope="holdfast:act-as"))

    assert (reply.status, reply.code) == (403, "forbidden")
    assert reply.headers["www-authenticate"] == (
        'Bearer realm="holdfast", error="insufficient_scope", scope="holdfast:read", '
        f'resource_metadata="http://127.0.0.1{METADATA}"'
    )


@pytest.mark.parametrize("scope", ["holdfast:read", "holdfast:admin"])
async def test_a_client_does_not_ask_again_for_a_scope_that_its_issuer_may_not_grant(site: Site, scope: str) -> None:
    reply = await site.ask("GET", "/api/keys", key=token(scope=scope))

    assert (reply.status, reply.code) == (403, "forbidden")
    assert "www-authenticate" not in reply.headers


@pytest.mark.parametrize("header", ["Holdfast-User", "Holdfast-Tenant"])
async def test_the_holder_of_a_token_speaks_for_nobody_else(site: Site, header: str) -> None:
    reply = await site.ask("GET", "/api/me", key=token(), headers={header: "default"})

    assert (reply.status, reply.code) == (403, "forbidden")


async def test_a_socket_is_opened_by_a_token_and_ends_with_it(desk: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.server.authentication.RECHECK_SECONDS", 0)
    passed = 0.0
    monkeypatch.setattr(desk.engine.tokens, "_clock", lambda: time() + passed)
    async with client(desk, key=token(exp=int(time()) + 30), session_id="web-1") as ann:
        await ann.send("ping")
        before = await ann.next()

        passed = 100.0
        await ann.send("ping")

        with pytest.raises(ConnectionClosed) as closed:
            await ann.next()
        assert before["kind"] == "pong"
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, "it has expired" in closed.value.rcvd.reason) == (1008, True)


@pytest.mark.req("ENG-10")
async def test_an_issuer_in_the_settings_is_reached_though_its_address_is_private(config: Config) -> None:
    async with issuer_server("/auth/v1") as platform:
        platform.keys = [ec("project")]
        platform.metadata["/auth/v1/.well-known/openid-configuration"] = {
            "issuer": platform.url,
            "jwks_uri": platform.jwks_url,
        }
        gone = f"{platform.url}/gone"
        issuers = tuple(Issuer(issuer=name, audience=("authenticated",)) for name in (platform.url, gone))
        config = config.model_copy(update={"access": AccessSettings(issuers=issuers)})
        async with open_engine(config=config) as engine, running(engine, config) as site:
            here = await site.ask("GET", "/api/me", key=platform.token(None, "ES256", aud="authenticated"))
            away = await site.ask("GET", "/api/me", key=platform.token(None, "ES256", aud="authenticated", iss=gone))
            parts = {part.name: part for part in await engine.parts()}

    assert (here.status, here.json()["user"]) == (200, "ann")
    assert (away.status, away.code) == (503, "unavailable")
    assert (parts["issuers"].state, "the server returned 404" in parts["issuers"].detail) == ("reduced", True)
    assert b"404" not in away.body
