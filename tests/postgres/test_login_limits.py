"""What a tenant's own login may take, what others learn from it, and how it ends."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from holdfast.core.config import load_config
from holdfast.core.errors import HoldfastError, NotFound, Unavailable
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import Database, OwnerConnection, open_owner
from holdfast.postgres.logins import LoginLimits, LoginWatch, tenant_logins
from holdfast.postgres.options import Options
from tests.logins import tenant_logins as service

pytestmark = pytest.mark.req("SAFE-02", "SAFE-03")

SETTINGS = ("statement_timeout", "idle_in_transaction_session_timeout", "work_mem", "temp_file_limit")
UNLIMITED = Options(statement_timeout=None)


@pytest.fixture
async def url(engine: Engine, three: list[Database]) -> AsyncIterator[str]:
    """The address of ann's login, with narrow limits."""
    tenant = await three[0].tenant()
    async with engine.postgres.owner() as owner:
        logins = service(engine, owner, connections=2, statement=3, idle_transaction=4)
        yield await logins.ensure(tenant)
        if any(login.tenant_id == tenant for login in await logins.ls()):
            await logins.remove(tenant)


async def pid_of(session: OwnerConnection) -> int:
    """What the server knows a session by."""
    return int(await session.value("select pg_backend_pid()"))


async def gone(engine: Engine, pid: int) -> None:
    """Wait until a session has ended; to ask it would keep it busy."""
    async with asyncio.timeout(60), engine.postgres.owner() as owner:
        while await owner.value("select exists (select from pg_stat_activity where pid = $1)", pid):
            pass


async def test_a_session_begins_with_limits(url: str) -> None:
    async with open_owner(url, UNLIMITED) as login:
        found = [await login.value("select current_setting($1)", name) for name in SETTINGS]

    assert found == ["3s", "4s", "16MB", "1GB"]


async def test_connections_are_limited(url: str) -> None:
    async with open_owner(url, UNLIMITED), open_owner(url, UNLIMITED):
        with pytest.raises(HoldfastError, match="connection"):
            async with open_owner(url, UNLIMITED):
                pass


async def test_temporary_files_stay_limited(url: str) -> None:
    async with open_owner(url, UNLIMITED) as login:
        for attempt in ("set temp_file_limit = -1", "select set_config('temp_file_limit', '-1', false)"):
            with pytest.raises(HoldfastError):
                await login.script(attempt)
        await login.script("discard all")
        assert await login.value("select current_setting('temp_file_limit')") == "1GB"


async def test_names_of_roles_tell_nothing_of_other_tenants(url: str, three: list[Database]) -> None:
    ids = [await database.tenant() for database in three]
    async with open_owner(url, UNLIMITED) as login:
        roles = [row["rolname"] for row in await login.all("select rolname from pg_roles")]
        settings = await login.all(
            "select coalesce(array_to_string(setconfig, ' '), '') as said from pg_db_role_setting"
        )

    told = " ".join([*roles, *(row["said"] for row in settings)])
    assert str(urlsplit(url).username) in roles
    assert not [id for id in ids if id.hex in told or str(id) in told]


async def test_the_watch_ends_what_is_over_its_time_whatever_the_session_sets(engine: Engine, url: str) -> None:
    limits = LoginLimits(connections=3, statement=0.2, idle_transaction=0.2)
    watch = LoginWatch(engine.postgres.owner, limits)
    async with open_owner(url, UNLIMITED) as idle, open_owner(url, UNLIMITED) as busy:
        for login in (idle, busy):
            await login.script("set statement_timeout = 0; set idle_in_transaction_session_timeout = 0")
        ended = await pid_of(idle)
        await idle.script("begin")
        running = asyncio.create_task(busy.value("select pg_sleep(600)"))
        async with watch, asyncio.timeout(60):
            await gone(engine, ended)
            with pytest.raises(HoldfastError):
                await running

    async with open_owner(url, UNLIMITED) as login:  # and its role has the limits of the settings
        assert await login.value("select current_setting('statement_timeout')") == "200ms"


async def test_the_watch_ends_a_session_that_the_engine_waits_for_and_leaves_others(engine: Engine, url: str) -> None:
    tenant = engine.tenant("ann")
    await tenant.conversations.create(session_id="s")
    insert = """insert into chat_message_history (session_id, message)
        values ('s', '{"type": "human", "data": {"content": "hi"}}')"""
    watch = LoginWatch(engine.postgres.owner, LoginLimits(), blocking=timedelta(seconds=0.2))
    async with open_owner(url, UNLIMITED) as blocking, open_owner(url, UNLIMITED) as reading:
        await reading.script(
            "set idle_in_transaction_session_timeout = 0; begin; select count(*) from chat_message_history"
        )
        ended = await pid_of(blocking)
        await blocking.script(f"begin; {insert}")
        talk = await tenant.conversations.find(session_id="s")
        assert talk is not None
        appending = asyncio.create_task(tenant.conversations.append(talk.id, "hello", context="text:user:ann"))
        async with watch, asyncio.timeout(60):
            await appending
            await gone(engine, ended)
        assert await reading.value("select 1") == 1


async def test_rotation_ends_the_login_before_and_its_sessions(engine: Engine, url: str, three: list[Database]) -> None:
    tenant = await three[0].tenant()
    async with engine.postgres.owner() as owner, open_owner(url, UNLIMITED) as before:
        await before.script("select lo_create(0); create temp table kept (id int)")  # what a role owns hinders nothing

        ended = await pid_of(before)

        rotated = await service(engine, owner).rotate(tenant)

        await gone(engine, ended)
        with pytest.raises(Unavailable):
            async with open_owner(url, UNLIMITED):
                pass
        async with open_owner(rotated, UNLIMITED) as after:
            assert await after.value("select count(*) from item") == 0
        logins = await tenant_logins(owner)
        roles = await owner.value("select count(*) from pg_roles where rolname = $1", urlsplit(url).username)

    assert [login.login for login in logins if login.tenant == "ann"] == [urlsplit(rotated).username]
    assert roles == 0


async def test_a_removed_login_is_gone_and_is_made_anew(engine: Engine, url: str, three: list[Database]) -> None:
    tenant = await three[0].tenant()
    async with engine.postgres.owner() as owner:
        logins = service(engine, owner)
        await logins.remove(tenant)
        with pytest.raises(NotFound):
            await logins.remove(tenant)
        with pytest.raises(Unavailable):
            async with open_owner(url, UNLIMITED):
                pass

        again = await logins.ensure(tenant)

        assert again != url


async def test_a_login_of_the_former_kind_goes_on_working_until_it_is_rotated(
    engine: Engine, three: list[Database]
) -> None:
    tenant = await three[0].tenant()
    name = f"hf_{tenant.hex}"
    async with engine.postgres.owner() as owner:
        await owner.run("insert into holdfast.tenant_login (login, tenant_id) values ($1, $2)", name, tenant)
        logins = service(engine, owner)
        former = await logins.ensure(tenant)
        (listed,) = await logins.ls()
        rotated = await logins.rotate(tenant)
        (after,) = await logins.ls()
        await logins.remove(tenant)

    assert (urlsplit(former).username, listed.shows_tenant, after.shows_tenant) == (name, True, False)
    assert tenant.hex not in rotated.partition("?")[0]


async def test_the_engine_has_connections_that_logins_cannot_take(engine: Engine) -> None:
    async with engine.postgres.owner() as owner:
        reserved = await owner.value("select current_setting('reserved_connections')::int")
    may = "select pg_has_role(session_user, 'pg_use_reserved_connections', 'usage')"

    assert reserved >= 20
    assert await engine.postgres.system.value(may)


@pytest.mark.req("ENG-10")
async def test_an_owner_without_superuser_has_logins_too(remote_url: str, tmp_path: Path) -> None:
    config = load_config({"database.url": remote_url, "data": tmp_path / "data"}, environ={}, cwd=tmp_path)
    insert = """insert into chat_message_history (session_id, message)
        values ('s', '{"type": "human", "data": {"content": "hi"}}')"""
    async with open_engine(config=config) as engine:
        tenant = await engine.database.tenant()
        async with engine.postgres.owner() as owner:
            logins = service(engine, owner)
            address = await logins.ensure(tenant)
            async with open_owner(address, UNLIMITED) as login:
                await login.script(insert)
                ended = await pid_of(login)
                await login.script("begin; select count(*) from chat_message_history")
                watch = LoginWatch(engine.postgres.owner, LoginLimits(idle_transaction=0.1))
                async with watch, asyncio.timeout(60):
                    await gone(engine, ended)
            (listed,) = await logins.ls()
            rotated = await logins.rotate(tenant)
            async with open_owner(rotated, UNLIMITED) as login:
                seen = await login.value("select count(*) from chat_message_history")
            await logins.remove(tenant)

    assert (seen, listed.temp_files_limited) == (1, False)
