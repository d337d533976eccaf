from datetime import timedelta

import pytest

from holdfast.engine import Engine
from tests.clock import Clock
from tests.server.conftest import make_key
from tests.server.wire import Site


@pytest.mark.req("SAFE-03")
async def test_a_key_is_shown_once(site: Site, key: str) -> None:
    made = await site.ask(
        "POST",
        "/api/keys",
        key=key,
        json={"principal": "bob", "scopes": ["read"], "label": "laptop", "lifetime_seconds": 60},
    )
    listed = await site.ask("GET", "/api/keys", key=key)

    assert made.status == 201
    shown = made.json()["key"]
    assert (shown["kind"], shown["principal"]) == ("key", "bob")
    assert (shown["scopes"], shown["label"]) == (["read"], "laptop")
    assert shown["expires_at"] > shown["created_at"]
    assert listed.json()["keys"][0] == shown
    assert made.json()["text"].encode() not in listed.body


@pytest.mark.req("SAFE-03")
async def test_a_key_ends_when_it_expires(engine: Engine, site: Site, clock: Clock) -> None:
    made = await engine.keys.create(await engine.tenants.id_of("default"), "ann", lifetime=timedelta(hours=1))
    await clock.advance(timedelta(hours=2))

    reply = await site.ask("GET", "/api/me", key=made.text)

    assert reply.status == 401


@pytest.mark.req("SAFE-03")
async def test_a_revoked_key_opens_nothing_more(site: Site, key: str) -> None:
    made = (await site.ask("POST", "/api/keys", key=key, json={"principal": "bob"})).json()

    revoked = await site.ask("DELETE", f"/api/keys/{made['key']['id']}", key=key)

    assert revoked.json()["revoked_at"]
    assert (await site.ask("GET", "/api/me", key=made["text"])).status == 401


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/keys"), ("POST", "/api/keys"), ("POST", "/api/keys/link"), ("GET", "/api/tenants")],
)
async def test_a_key_without_the_scope_is_refused(engine: Engine, site: Site, method: str, path: str) -> None:
    key = await make_key(engine, scopes=["read", "write", "act-as"])

    reply = await site.ask(method, path, key=key)

    assert (reply.status, reply.code) == (403, "forbidden")


@pytest.mark.req("SAFE-03")
async def test_the_owner_of_a_tenant_cannot_make_an_operator(site: Site, key: str) -> None:
    refused = await site.ask("POST", "/api/keys", key=key, json={"principal": "ann", "scopes": ["operator"]})
    made = await site.ask("POST", "/api/keys", key=site.file.token, json={"principal": "ann", "scopes": ["operator"]})

    assert (refused.status, refused.code) == (403, "forbidden")
    assert made.status == 201


@pytest.mark.req("SAFE-03")
async def test_a_link_gives_the_scopes_that_it_was_made_with_and_never_more_than_its_maker_has(
    site: Site, key: str
) -> None:
    wanted = {"principal": "bob", "scopes": ["read"]}

    made = await site.ask("POST", "/api/keys/link", key=key, json=wanted)
    refused = await site.ask("POST", "/api/keys/link", key=key, json={**wanted, "scopes": ["operator"]})

    link = made.json()["path"].partition("link=")[2]
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    signed_in = await site.ask("POST", "/login", body=f"link={link}".encode(), headers=form)
    session = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
    me = (await site.ask("GET", "/api/me", headers=session)).json()
    assert (me["user"], me["scopes"]) == ("bob", ["read"])
    assert (refused.status, refused.code) == (403, "forbidden")


@pytest.mark.req("SAFE-03")
async def test_keys_of_another_tenant_are_neither_seen_nor_revoked(engine: Engine, site: Site, key: str) -> None:
    acme = await engine.tenants.create("acme")
    theirs = await engine.keys.create(acme.id, "eve")

    listed = await site.ask("GET", "/api/keys", key=key)
    revoked = await site.ask("DELETE", f"/api/keys/{theirs.key.id}", key=key)

    assert [listed_key["principal"] for listed_key in listed.json()["keys"]] == ["ann"]
    assert (revoked.status, revoked.code) == (404, "not_found")
    assert (await site.ask("GET", "/api/me", key=theirs.text)).json()["tenant"] == "acme"


async def test_a_tenant_is_made_once(site: Site) -> None:
    made = await site.ask("POST", "/api/tenants", key=site.file.token, json={"name": "acme"})
    again = await site.ask("POST", "/api/tenants", key=site.file.token, json={"name": "acme"})
    listed = await site.ask("GET", "/api/tenants", key=site.file.token)

    assert made.status == 201
    assert (again.status, again.code) == (409, "already_exists")
    assert [tenant["name"] for tenant in listed.json()["tenants"]] == ["acme", "default"]


@pytest.mark.req("MCP-07")
async def test_a_key_is_made_for_an_agent(site: Site, key: str) -> None:
    made = await site.ask("POST", "/api/keys", key=key, json={"principal": "bob", "agent": "support"})
    refused = await site.ask(
        "POST", "/api/keys", key=key, json={"principal": "bob", "agent": "support", "scopes": ["read", "admin"]}
    )
    listed = await site.ask("GET", "/api/keys", key=key)

    assert (made.status, made.json()["key"]["agent"], made.json()["key"]["scopes"]) == (
        201,
        "support",
        ["read", "write"],
    )
    assert (refused.status, refused.code) == (400, "invalid_input")
    assert [each["agent"] for each in listed.json()["keys"]] == ["support", None]
    assert (await site.ask("GET", "/api/keys", key=made.json()["text"])).status == 403
