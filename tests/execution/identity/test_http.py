"""Identities over HTTP: the published keys, sources that have one, and what their back ends would get."""

from typing import Any

import pytest

from holdfast.engine import Engine
from holdfast.execution.identity.identity_keys import MAX_AGE
from tests.execution.backend import Service
from tests.execution.identity.conftest import SECRET, document
from tests.oauth.authorization_server import SmallServer
from tests.server.conftest import make_key, running

pytestmark = pytest.mark.req("MCP-06")


async def test_the_keys_are_published_to_everybody_and_kept_by_back_ends(engine: Engine) -> None:
    key = await make_key(engine)
    async with running(engine, engine.config) as site:
        first = await site.ask("GET", "/.well-known/jwks.json")
        again = await site.ask("GET", "/.well-known/jwks.json")
        rotated = await site.ask("POST", "/api/identity/keys", key=key, json={})

    assert first.json() == again.json()
    assert first.headers["cache-control"] == f"public, max-age={MAX_AGE}"
    [published] = first.json()["keys"]
    assert {name: published[name] for name in ("kty", "crv", "alg", "use")} == {
        "kty": "EC",
        "crv": "P-256",
        "alg": "ES256",
        "use": "sig",
    }
    assert (rotated.status, "operator" in rotated.json()["detail"]) == (403, True)


async def test_a_source_shows_its_identity_and_tells_what_its_back_end_gets(
    engine: Engine, shop: Service, authority: SmallServer
) -> None:
    key = await make_key(engine)
    await engine.secrets.set("client", SECRET)
    own = {
        "kind": "client_credentials",
        "token_url": authority.token_url,
        "client_id": "us",
        "client_secret": "client",
        "audience": "shop",
    }
    body: dict[str, Any] = {"name": "shop", "document": document(shop.url).decode(), "choice": {"everything": True}}
    async with running(engine, engine.config) as site:
        added = await site.ask("POST", "/api/sources", key=key, json={**body, "identity": own})
        tried = await site.ask("POST", "/api/sources/shop/identity", key=key)
        authority.url, authority.change = authority.url, {"token_type": "DPoP"}
        changed = await site.ask(
            "PUT", "/api/sources/shop", key=key, json={"version": 1, "identity": {**own, "scopes": ["a"]}}
        )
        failed = await site.ask("POST", "/api/sources/shop/identity", key=key)
        removed = await site.ask("PUT", "/api/sources/shop", key=key, json={"version": 2, "identity": None})
        nothing = await site.ask("POST", "/api/sources/shop/identity", key=key)

    assert added.status == 201, added
    assert added.json()["source"]["backend"]["identity"] == own
    assert (tried.json()["kind"], tried.json()["claims"]["aud"]) == ("client_credentials", "shop")
    assert changed.json()["source"]["backend"]["identity"]["scopes"] == ["a"]
    assert (failed.status, "only bearer tokens" in failed.json()["detail"]) == (503, True)
    assert "identity" not in removed.json()["source"]["backend"]
    assert nothing.json() == {"kind": "none"}
    assert shop.asked == []


@pytest.mark.parametrize(
    ("identity", "why"),
    [
        ({"kind": "somebody"}, "Invalid enum value"),
        ({"kind": "user", "client_secret": "shop"}, "a client secret without a client id"),
        ({"kind": "signed", "client_id": "us"}, "takes no client_id"),
        ({"kind": "pass_through"}, "execution.pass_through"),
        ({"kind": "signed", "colour": "red"}, "unknown field"),
    ],
)
async def test_an_identity_that_cannot_be_is_refused_with_the_reason(
    engine: Engine, shop: Service, identity: dict[str, Any], why: str
) -> None:
    key = await make_key(engine)
    body: dict[str, Any] = {"name": "shop", "document": document(shop.url).decode(), "choice": {"everything": True}}
    async with running(engine, engine.config) as site:
        refused = await site.ask("POST", "/api/sources", key=key, json={**body, "identity": identity})

    assert refused.status in (400, 422), refused
    assert why in refused.body.decode()
