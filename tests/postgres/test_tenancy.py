from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.core.config import load_config
from holdfast.core.errors import Broken, Forbidden, HoldfastError
from holdfast.engine import Engine, open_engine
from holdfast.postgres.address import with_login
from holdfast.postgres.database import Database, OwnerConnection, Postgres, open_owner
from holdfast.postgres.embedded import OWNER
from holdfast.postgres.options import Options
from holdfast.postgres.tenancy import ensure_login

both_modes = pytest.mark.parametrize("tenancy", ["connection", "transaction"])
pytestmark = pytest.mark.req("ENG-04", "SAFE-02")

INSERT = "insert into item (tenant_id, id, value) values ($1, $2, $3)"
READ = "select id, value from item where tenant_id = $1 order by id"


@both_modes
async def test_a_tenant_reads_no_row_of_another_even_by_its_id(three: list[Database]) -> None:
    ann, bob, _ = three
    await ann.run(INSERT, 1, "ann's")
    anns = await ann.tenant()

    assert await bob.all("select * from item where tenant_id = $2 and $1::uuid is not null", anns) == []
    assert await bob.value("select count(*) from item where $1::uuid is not null") == 0
    assert await ann.value("select count(*) from item where $1::uuid is not null") == 1


@both_modes
async def test_a_tenant_changes_no_row_of_another(three: list[Database]) -> None:
    ann, bob, _ = three
    await ann.run(INSERT, 1, "ann's")
    anns = await ann.tenant()

    changed = await bob.run("update item set value = null where tenant_id = $2 and $1::uuid is not null", anns)
    removed = await bob.run("delete from item where $1::uuid is not null")

    assert (changed, removed) == (0, 0)
    assert [tuple(row) for row in await ann.all(READ)] == [(1, "ann's")]


@both_modes
async def test_a_tenant_gives_no_row_to_another(three: list[Database]) -> None:
    ann, bob, _ = three
    await bob.run(INSERT, 1, "bob's")
    anns = await ann.tenant()

    for statement in (
        "insert into item (tenant_id, id) select $2, 2 where $1::uuid is not null",
        "update item set tenant_id = $2 where tenant_id = $1",
        "insert into item (tenant_id, id) values ($1, 1) on conflict (tenant_id, id) do update set tenant_id = $2",
    ):
        with pytest.raises(Forbidden, match="row-level security"):
            await bob.run(statement, anns)

    assert await ann.all(READ) == []
    assert len(await bob.all(READ)) == 1


@both_modes
async def test_transactions_of_two_tenants_do_not_see_one_another(three: list[Database]) -> None:
    ann, bob, _ = three
    everything = "select value from item where $1::uuid is not null"

    async with ann.transaction() as anns, bob.transaction() as bobs:
        await anns.run(INSERT, 1, "ann's")
        await bobs.run(INSERT, 1, "bob's")
        seen = [await anns.value(everything), await bobs.value(everything)]

    assert seen == ["ann's", "bob's"]
    assert [await one.value(everything) for one in three] == ["ann's", "bob's", None]


async def test_without_a_tenant_every_statement_is_an_error(owner: OwnerConnection) -> None:
    await owner.script("set role holdfast_app")
    for statement in (
        "select 1 from identity",
        "update identity set name = ''",
        "delete from principal",
        "insert into identity values (gen_random_uuid(), 'user', 'ann', gen_random_uuid())",
    ):
        with pytest.raises(Broken, match="without a tenant"):
            await owner.run(statement)


async def test_the_roles_that_run_statements_can_neither_pass_security_nor_own_anything(owner: OwnerConnection) -> None:
    attributes = "rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication or rolcanlogin"
    ours = "rolname in ('holdfast_app', 'holdfast_system', 'holdfast_tenant')"

    held = await owner.value(f"select count(*) from pg_roles where {ours} and not ({attributes})")
    owned = await owner.value(
        f"select count(*) from pg_shdepend join pg_roles r on r.oid = refobjid where deptype = 'o' and {ours}"
    )
    memberships = await owner.value(
        f"select count(*) from pg_auth_members m join pg_roles r on r.oid = member and {ours}"
    )

    assert (held, owned, memberships) == (3, 0, 0)


@asynccontextmanager
async def altered(owner: OwnerConnection, change: str, back: str) -> AsyncGenerator[None]:
    """Roles belong to the whole server: whatever happens, they are put right again."""
    await owner.script(change)
    try:
        yield
    finally:
        await owner.script(back)


@both_modes
@pytest.mark.parametrize(
    ("change", "back"),
    [
        ("alter role holdfast_app bypassrls", "alter role holdfast_app nobypassrls"),
        ("alter role holdfast_app superuser", "alter role holdfast_app nosuperuser"),
        ("alter role holdfast_system bypassrls", "alter role holdfast_system nobypassrls"),
        ("grant holdfast_owner to holdfast_app", "revoke holdfast_owner from holdfast_app"),
    ],
)
async def test_the_engine_does_not_open_with_a_role_that_security_does_not_hold(
    database_url: str, owner: OwnerConnection, tmp_path: Path, tenancy: str, change: str, back: str
) -> None:
    flags = {"database.url": database_url, "data": tmp_path, "database.tenancy": tenancy}
    config = load_config(flags, environ={}, cwd=tmp_path)

    async with altered(owner, change, back):
        with pytest.raises(Forbidden, match="bypasses row-level security") as refused:
            async with open_engine(config=config):
                pass

    assert "database.owner_url" in refused.value.next


@both_modes
async def test_a_login_that_may_not_become_the_application_is_refused(
    database_url: str, owner: OwnerConnection, tmp_path: Path, tenancy: str
) -> None:
    url = with_login(database_url, "stranger", None)
    flags = {"database.url": url, "database.owner_url": database_url, "data": tmp_path, "database.tenancy": tenancy}
    config = load_config(flags, environ={}, cwd=tmp_path)

    async with altered(owner, "create role stranger login", "drop role stranger"):
        with pytest.raises(HoldfastError, match="permission denied to set role"):
            async with open_engine(config=config):
                pass


@pytest.fixture
async def engine_url(database_url: str, owner: OwnerConnection) -> AsyncIterator[str]:
    """The address of the login that the engine makes for itself where the server knows its callers by account."""
    url = await ensure_login(owner, database_url, by_account=True)
    yield url
    database = await owner.value("select oid::int from pg_database where datname = current_database()")
    await owner.script(f"drop role holdfast_engine_{database}")


async def test_the_engines_own_login_has_no_right_but_to_become_its_two_roles(engine_url: str) -> None:
    async with open_owner(engine_url, Options()) as login:
        for statement in (
            "set role holdfast_owner",
            f"set role {OWNER}",
            f"set session authorization {OWNER}",
            "select 1 from identity",
            "select 1 from tenant",
            "select holdfast.ensure_login('x', 'x', '{}', true)",
            "call holdfast.hold_to_tenant('tenant')",
            "create table public.mine (id int)",
            "create role mine",
            "alter role holdfast_app bypassrls",
        ):
            with pytest.raises(Forbidden):
                await login.script(statement)
            await login.script("reset role")

        await login.script("set role holdfast_app")
        await login.script("set role holdfast_system")

        assert await login.value("select current_user") == "holdfast_system"


@both_modes
async def test_the_engine_works_with_its_own_login(engine: Engine, engine_url: str, items: None) -> None:
    tenant = (await engine.tenants.find("default")).id
    postgres = Postgres(engine_url, engine.place.options, owner_url=engine.place.owner_url)
    try:
        await postgres.tenant(tenant).run(INSERT, 1, None)
        user = await postgres.tenant(tenant).value(
            "select session_user || ' ' || current_user where $1::uuid is not null"
        )
        keys = await postgres.system.value("select count(*) from api_key")
    finally:
        await postgres.close()

    assert user.startswith("holdfast_engine_")
    assert user.endswith(" holdfast_app")
    assert keys == 0
    assert len(await engine.database.all(READ)) == 1


async def test_the_system_role_reaches_listed_tables_only(engine: Engine, items: None) -> None:
    for statement in (
        "select 1 from item",
        "select 1 from identity",
        "delete from tenant",
        "update tenant set name = name",
    ):
        with pytest.raises(Forbidden):
            await engine.postgres.system.run(statement)
