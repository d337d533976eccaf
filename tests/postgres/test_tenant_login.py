"""`holdfast db url --tenant T`: an address for other people's programs, held to one tenant whatever they set."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from holdfast.core.errors import Forbidden, Unavailable
from holdfast.core.ids import TenantId
from holdfast.engine import Engine
from holdfast.postgres.database import Database, OwnerConnection, open_owner
from holdfast.postgres.migrate import LOCK, Schema, SqlFile, migrate
from holdfast.postgres.options import Options
from tests.logins import tenant_logins

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
    "set session authorization {other_login}",
    "alter role {own_login} bypassrls",
    "grant holdfast_app to {own_login}",
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
    "select holdfast.ensure_login('{own_login}', 'known', '{{holdfast_app}}')",
    "call holdfast.hold_to_tenant('item')",
    "call holdfast.open_to_system('item', 'select')",
    "select 1 from holdfast.tenant_login",
    "select holdfast.renew_tenant_login('{other_login}', 'known')",
    "select holdfast.drop_tenant_login('{other_login}')",
)


class Login:
    """A tenant's own login and what it could try to reach."""

    def __init__(self, connection: OwnerConnection, own: TenantId, other: TenantId, logins: Sequence[str]) -> None:
        self.connection = connection
        own_login, other_login = logins
        self.names: dict[str, Any] = {"own": own, "own_login": own_login, "other": other, "other_login": other_login}

    async def values(self) -> list[Any]:
        return [row["value"] for row in await self.connection.all("select value from item")]


@pytest.fixture
async def urls(engine: Engine, three: list[Database]) -> AsyncIterator[list[str]]:
    """The addresses of ann's login and of bob's; they have an item each."""
    ann, bob, _ = three
    await ann.run(INSERT, 1, "ann's")
    await bob.run(INSERT, 1, "bob's")
    tenants = [await ann.tenant(), await bob.tenant()]
    async with engine.postgres.owner() as owner:
        logins = tenant_logins(engine, owner)
        yield [await logins.ensure(tenant) for tenant in tenants]
        for tenant in tenants:
            await logins.remove(tenant)


@pytest.fixture
def url(urls: list[str]) -> str:
    """The address of ann's login."""
    return urls[0]


@pytest.fixture
async def login(urls: list[str], three: list[Database]) -> AsyncIterator[Login]:
    """A connection to that address."""
    names = [str(urlsplit(url).username) for url in urls]
    async with open_owner(urls[0], Options()) as connection:
        yield Login(connection, await three[0].tenant(), await three[1].tenant(), names)


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
        again = await tenant_logins(engine, owner).ensure(tenant)
        changed = await tenant_logins(engine, owner, secret=b"another").ensure(tenant)

    assert again == url
    assert changed != url
    async with open_owner(changed, Options()) as login:
        assert await login.value("select count(*) from item") == 1
    with pytest.raises(Unavailable, match="rejected the login"):
        async with open_owner(url, Options()):
            pass


async def test_a_lock_that_it_takes_hinders_nobody(login: Login, engine: Engine) -> None:
    await login.connection.script(f"select pg_advisory_lock({LOCK}), pg_advisory_lock({LOCK + 1})")
    schema = Schema.packaged()
    changed = replace(schema, functions=(*schema.functions, SqlFile("x/one_more", "select 1")))

    async with asyncio.timeout(10), engine.postgres.owner() as owner:
        applied = await migrate(owner, changed)
        address = await tenant_logins(engine, owner).ensure(login.names["other"])

    assert [step.name for step in applied.functions] == ["x/one_more"]
    assert address.startswith("postgresql://hf_")
