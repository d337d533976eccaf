"""`holdfast db url --tenant T`: an address for other people's programs, held to one tenant whatever they set."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from holdfast.core.errors import Forbidden, Unavailable
from holdfast.core.ids import TenantId
from holdfast.engine import Engine
from holdfast.postgres.database import Database, Owner, open_owner
from holdfast.postgres.migrate import LOCK, Schema, Step, migrate
from holdfast.postgres.options import Options
from holdfast.postgres.tenancy import ensure_tenant_login

pytestmark = pytest.mark.req("ENG-04", "SAFE-02")

INSERT = "insert into item (tenant_id, id, value) values ($1, $2, $3)"
FORGERIES = (
    "set holdfast.tenant = '{other}'",
    "set local holdfast.tenant = '{other}'",
    "select set_config('holdfast.tenant', '{other}', false)",
    "reset holdfast.tenant",
    "reset all",
    "discard all",
)
ESCAPES = (
    "set role holdfast_app",
    "set role holdfast_system",
    "set role holdfast_owner",
    "set role holdfast_tenant",
    "set role postgres",
    "set session authorization postgres",
    "set session authorization hf_{other_hex}",
    "alter role hf_{own_hex} bypassrls",
    "grant holdfast_app to hf_{own_hex}",
)
WRITES = (
    "insert into item values ('{own}', 9)",
    "insert into item values ('{other}', 9)",
    "update item set value = null",
    "delete from item",
    "truncate item",
    "drop table item",
    "create table public.mine (id int)",
)
READS = (
    "select 1 from api_key",
    "select 1 from tenant",
    "select 1 from holdfast.migration",
    "select rolpassword from pg_authid",
    "select holdfast.ensure_login('hf_{own_hex}', 'known', '{{holdfast_app}}', true)",
    "call holdfast.hold_to_tenant('item')",
    "call holdfast.open_to_system('item', 'select')",
)


class Login:
    """A tenant's own login and what it could try to reach."""

    def __init__(self, connection: Owner, own: TenantId, other: TenantId) -> None:
        self.connection = connection
        self.names: dict[str, Any] = {"own": own, "own_hex": own.hex, "other": other, "other_hex": other.hex}

    async def values(self) -> list[Any]:
        return [row["value"] for row in await self.connection.all("select value from item")]


@pytest.fixture
async def url(engine: Engine, three: list[Database]) -> AsyncIterator[str]:
    """The address of ann's login; ann and bob have an item each."""
    ann, bob, _ = three
    await ann.run(INSERT, 1, "ann's")
    await bob.run(INSERT, 1, "bob's")
    tenants = [await bob.tenant(), await ann.tenant()]
    async with engine.postgres.owner() as owner:
        urls = [await ensure_tenant_login(owner, engine.place.owner_url, tenant, b"secret") for tenant in tenants]
        yield urls[-1]
        for tenant in tenants:
            await owner.script(f"drop role hf_{tenant.hex}")


@pytest.fixture
async def login(url: str, three: list[Database]) -> AsyncIterator[Login]:
    """A connection to that address."""
    async with open_owner(url, Options()) as connection:
        yield Login(connection, await three[0].tenant(), await three[1].tenant())


async def test_the_address_works_with_any_driver_and_shows_the_tenants_rows_alone(url: str) -> None:
    connect = cast(Callable[[str], Awaitable[Any]], asyncpg.connect)
    connection = await connect(url)
    try:
        found = await connection.fetch("select tenant_id::text, value from item")
        asked = await connection.fetchval("select current_setting('holdfast.tenant')")
    finally:
        await connection.close()

    assert [tuple(row) for row in found] == [(asked, '"ann\'s"')]


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_whatever_it_sets_it_sees_its_own_tenant(login: Login, forgery: str) -> None:
    await login.connection.script(forgery.format(**login.names))

    assert await login.values() == ["ann's"]


async def test_with_row_security_off_it_sees_nothing_at_all(login: Login) -> None:
    await login.connection.script("set row_security = off")

    with pytest.raises(Forbidden):
        await login.values()


@pytest.mark.parametrize("attempt", [*ESCAPES, *WRITES, *READS])
async def test_it_becomes_nobody_else_writes_nothing_and_reads_nothing_of_the_engine(
    login: Login, attempt: str
) -> None:
    with pytest.raises(Forbidden):
        await login.connection.script(attempt.format(**login.names))

    assert await login.values() == ["ann's"]


async def test_a_wrong_password_is_refused(url: str) -> None:
    password = url.partition("://")[2].partition("@")[0].partition(":")[2]
    for wrong in ("guess", ""):
        with pytest.raises(Unavailable):
            async with open_owner(url.replace(password, wrong), Options()):
                pass


async def test_a_login_is_made_once_and_renewed_with_the_secret(
    engine: Engine, url: str, three: list[Database]
) -> None:
    tenant = await three[0].tenant()
    async with engine.postgres.owner() as owner:
        again = await ensure_tenant_login(owner, engine.place.owner_url, tenant, b"secret")
        changed = await ensure_tenant_login(owner, engine.place.owner_url, tenant, b"another")

    assert again == url
    assert changed != url
    async with open_owner(changed, Options()) as login:
        assert await login.value("select count(*) from item") == 1
    with pytest.raises(Unavailable, match="refused the login"):
        async with open_owner(url, Options()):
            pass


async def test_a_lock_that_it_takes_hinders_nobody(login: Login, engine: Engine, database_url: str) -> None:
    await login.connection.script(f"select pg_advisory_lock({LOCK}), pg_advisory_lock({LOCK + 1})")
    schema = Schema.packaged()
    changed = replace(schema, functions=(*schema.functions, Step("x/one_more", "select 1")))

    async with asyncio.timeout(10), engine.postgres.owner() as owner:
        applied = await migrate(owner, changed)
        address = await ensure_tenant_login(owner, database_url, login.names["other"], engine.secret)

    assert [step.name for step in applied.functions] == ["x/one_more"]
    assert address.startswith("postgresql://hf_")
