import asyncio
from time import monotonic
from typing import Any

import pytest

from holdfast.access.keys import Keys
from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site


async def until_status(site: Site, status: int, **request: Any) -> Reply:
    """The first answer with this status, which whoever asks a second from now has, however long it takes."""
    began = monotonic()
    async with site.connect() as wire:
        while True:
            asked = monotonic()
            reply = await wire.ask("GET", "/api/me", **request)
            if reply.status == status:
                return reply
            assert asked - began < 1
            await asyncio.sleep(0.02)


@pytest.mark.req("SAFE-03")
async def test_on_this_machine_the_user_is_local_and_owns_the_tenant_default(site: Site) -> None:
    reply = await site.ask("GET", "/api/me")

    assert reply.json() == {"tenant": "default", "user": "local", "scopes": ["admin", "read", "write"], "local": True}


@pytest.mark.req("SAFE-03")
async def test_the_first_key_ends_local_access(site: Site) -> None:
    before = await site.ask("GET", "/api/me")
    made = await site.ask("POST", "/api/keys", json={"principal": "ann"})

    reply = await until_status(site, 401)

    assert before.status == 200
    assert reply.code == "unauthenticated"
    assert (await site.ask("GET", "/api/me", key=made.json()["text"])).json()["user"] == "ann"


@pytest.mark.req("SAFE-03")
async def test_a_revoked_first_key_does_not_bring_local_access_back(engine: Engine, site: Site) -> None:
    made = await engine.keys.create(await engine.tenants.id_of("default"), "ann")
    await engine.keys.revoke(made.key.tenant, made.key.id)

    reply = await site.ask("GET", "/api/me")

    assert reply.status == 401


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("settings", [{"require_key": True}, {"host": "0.0.0.0"}])
async def test_without_local_access_a_key_is_needed(site: Site, settings: dict[str, Any]) -> None:
    reply = await site.ask("GET", "/api/me")

    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert reply.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("settings", [{"allowed_hosts": ("holdfast.example",)}])
@pytest.mark.parametrize(
    "headers",
    [
        {"Forwarded": "for=127.0.0.1"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Forwarded-Host": "localhost"},
        {"Host": "holdfast.example"},
    ],
)
async def test_a_call_through_a_proxy_or_by_another_name_needs_a_key(
    site: Site, headers: dict[str, str], settings: dict[str, Any]
) -> None:
    reply = await site.ask("GET", "/api/me", headers=headers)

    assert reply.status == 401


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "Bearer hf_wrong")],
        [("Authorization", "Bearer ")],
        [("Authorization", "Bearer")],
        [("Authorization", "")],
        [("Authorization", "Basic bG9jYWw6")],
        [("Authorization", "hf_wrong")],
        [("Authorization", "Bearer \udc80")],
        [("Authorization", "Bearer a"), ("Authorization", "Bearer b")],
    ],
)
async def test_a_wrong_key_is_never_local_access(site: Site, headers: list[tuple[str, str]]) -> None:
    reply = await site.ask("GET", "/api/me", headers=headers)

    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert reply.headers["www-authenticate"].startswith("Bearer")


async def test_a_cookie_of_another_server_does_not_end_local_access(site: Site) -> None:
    reply = await site.ask("GET", "/api/me", headers={"Cookie": "holdfast_session=hf_other"})

    assert reply.json()["user"] == "local"


@pytest.mark.req("SAFE-03")
async def test_the_token_of_the_server_file_may_do_everything(site: Site, key: str) -> None:
    reply = await site.ask("GET", "/api/me", key=site.file.token)

    assert reply.json() == {
        "tenant": "default",
        "user": "local",
        "scopes": ["act-as", "admin", "operator", "read", "write"],
        "local": False,
    }


@pytest.mark.req("SAFE-03")
async def test_a_key_that_may_act_as_others_names_the_user(engine: Engine, site: Site) -> None:
    key = await make_key(engine, "shop", scopes=["read", "act-as"])

    reply = await site.ask("GET", "/api/me", key=key, headers={"Holdfast-User": "zoë"})

    assert reply.json()["user"] == "zoë"


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("header", ["Holdfast-User", "Holdfast-Tenant"])
async def test_a_key_without_the_scope_speaks_for_nobody_else(site: Site, key: str, header: str) -> None:
    existing = await site.ask("GET", "/api/me", key=key, headers={header: "default"})
    missing = await site.ask("GET", "/api/me", key=key, headers={header: "nobody-has-heard-of-it"})

    assert (existing.status, existing.code) == (403, "forbidden")
    assert existing.json()["detail"] == missing.json()["detail"]


@pytest.mark.parametrize("names", [[""], ["a", "b"], ["a" * 256], ["\udcff"]])
async def test_a_bad_name_of_a_user_is_refused(engine: Engine, site: Site, names: list[str]) -> None:
    key = await make_key(engine, scopes=["act-as"])

    reply = await site.ask("GET", "/api/me", key=key, headers=[("Holdfast-User", name) for name in names])

    assert (reply.status, reply.code) == (400, "invalid_input")


@pytest.mark.req("SAFE-03")
async def test_an_operator_names_the_tenant(engine: Engine, site: Site) -> None:
    await engine.tenants.create("acme")
    key = await make_key(engine, scopes=["operator"])

    there = await site.ask("GET", "/api/me", key=key, headers={"Holdfast-Tenant": "acme"})
    nowhere = await site.ask("GET", "/api/me", key=key, headers={"Holdfast-Tenant": "nowhere"})

    assert there.json()["tenant"] == "acme"
    assert (nowhere.status, nowhere.code) == (404, "not_found")


@pytest.mark.req("SAFE-03")
async def test_a_revoked_key_is_refused_within_a_second_even_if_another_process_revoked_it(
    engine: Engine, config: Config, site: Site
) -> None:
    made = await engine.keys.create(await engine.tenants.id_of("default"), "ann")
    assert (await site.ask("GET", "/api/me", key=made.text)).status == 200
    elsewhere = Keys(engine.postgres, engine.secret)

    await elsewhere.revoke(made.key.tenant, made.key.id)

    assert (await until_status(site, 401, key=made.text)).code == "unauthenticated"


async def test_a_key_is_recognised_by_every_engine_with_the_same_secret(config: Config, site: Site) -> None:
    async with open_engine(config=config) as other:
        key = await make_key(other)

    reply = await site.ask("GET", "/api/me", key=key)

    assert reply.json()["user"] == "ann"
