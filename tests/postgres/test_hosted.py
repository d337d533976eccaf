"""A server that someone else runs: over TCP, by password, without superuser."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from holdfast.core.config import Config, load_config
from holdfast.core.errors import Forbidden, Unavailable
from holdfast.engine import Engine, open_engine
from holdfast.postgres.address import with_login
from holdfast.postgres.database import OwnerConnection, open_owner
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.postgres.migrate import migrate
from holdfast.postgres.options import Options
from holdfast.postgres.tenancy import ensure_login
from tests.remote import OWNER, RemoteServer

pytestmark = pytest.mark.req("ENG-10")

ROLES = ("holdfast_owner", "holdfast_app", "holdfast_system", "holdfast_tenant")
WHO = "select session_user || ' ' || current_user where $1::uuid is not null"


def settings(url: str, tmp_path: Path, **flags: object) -> Config:
    return load_config({"database.url": url, "data": tmp_path / "data", **flags}, environ={}, cwd=tmp_path)


async def assert_tenants_are_apart(engine: Engine) -> None:
    for name in ("ann", "bob"):
        await engine.tenants.create(name)
        await engine.tenant(name).identities.id("user", f"user of {name}")
    for name in ("ann", "bob"):
        rows = await engine.tenant(name).database.all("select name from identity where $1::uuid is not null")
        assert [row["name"] for row in rows] == [f"user of {name}"]


@pytest.mark.parametrize("tenancy", ["connection", "transaction"])
async def test_an_owner_who_may_make_roles_is_enough(remote_url: str, tmp_path: Path, tenancy: str) -> None:
    config = settings(remote_url, tmp_path, **{"database.tenancy": tenancy})

    async with open_engine(config=config) as engine:
        await assert_tenants_are_apart(engine)

        who = await engine.database.value(WHO)
        async with engine.postgres.owner() as owner:
            attributes = await owner.one("select rolsuper, rolbypassrls from pg_roles where rolname = current_user")

    assert who.startswith("holdfast_engine_")
    assert who.endswith(" holdfast_app")
    assert attributes is not None
    assert tuple(attributes) == (False, False)


async def test_the_engines_login_follows_when_the_owners_password_changes(
    remote: RemoteServer, remote_url: str, tmp_path: Path
) -> None:
    async with open_engine(config=settings(remote_url, tmp_path)) as engine:
        before = await engine.database.value(WHO)
    new = "p@ss/w:rd %41?"
    async with open_owner(remote_url, Options()) as owner:
        await owner.script(f"alter role {OWNER} password '{new}'")
    renamed = remote_url.replace(f":{remote.password}@", f":{quote(new, safe='')}@")
    try:
        async with open_engine(config=settings(renamed, tmp_path)) as engine:
            after = await engine.database.value(WHO)
    finally:
        async with open_owner(renamed, Options()) as owner:
            await owner.script(f"alter role {OWNER} password '{remote.password}'")

    assert after == before


async def test_a_login_does_not_depend_on_how_the_password_is_spelt_in_the_address(remote_url: str) -> None:
    password = str(urlsplit(remote_url).password)
    spelt = remote_url.replace(f":{password}@", ":" + "".join(f"%{ord(letter):02x}" for letter in password) + "@")
    async with open_owner(remote_url, Options()) as owner:
        await migrate(owner)

        urls = [await ensure_login(owner, url, by_account=False) for url in (remote_url, spelt)]

    assert urls[0] == urls[1]


async def test_a_login_of_the_engine_has_a_password_of_its_own(remote_url: str) -> None:
    async with open_owner(remote_url, Options()) as owner:
        await migrate(owner)
        url = await ensure_login(owner, remote_url, by_account=False)

    parts, owners = urlsplit(url), urlsplit(remote_url)
    assert parts.username != owners.username
    assert parts.password != owners.password
    assert parts.hostname == owners.hostname
    async with open_owner(url, Options()) as login:
        assert await login.value("select session_user::text") == parts.username
    with pytest.raises(Unavailable, match="rejected the login"):
        async with open_owner(with_login(url, str(parts.username), "guess"), Options()):
            pass


@pytest.mark.req("ENG-03")
async def test_engines_that_start_at_once_make_one_schema_and_one_login(remote_url: str, tmp_path: Path) -> None:
    async def start(number: int) -> str:
        async with open_engine(config=settings(remote_url, tmp_path / str(number))) as engine:
            return str(await engine.database.value(WHO))

    async with asyncio.timeout(60):
        seen = await asyncio.gather(*(start(number) for number in range(6)))

    assert len(set(seen)) == 1
    assert seen[0].startswith("holdfast_engine_")


@asynccontextmanager
async def bare_server(folder: Path) -> AsyncGenerator[tuple[OwnerConnection, str]]:
    """A server that has never seen holdfast: its administrator, and a database whose owner may make no roles."""
    with EmbeddedServer(folder) as server:
        async with open_owner(server.url, Options()) as administrator:
            await administrator.script("create role modest login password 'modest'")
            await administrator.script("create database hosted owner modest")
        there = server.url.replace("/holdfast?", "/hosted?")
        async with open_owner(there, Options()) as administrator:
            await administrator.script("create extension vector")
            yield administrator, with_login(there, "modest", "modest")


async def test_an_owner_who_may_make_no_roles_is_told_what_to_run_and_that_is_enough(
    fast_folder: Path, tmp_path: Path
) -> None:
    async with bare_server(fast_folder / "bare") as (administrator, url):
        with pytest.raises(Forbidden, match="roles that isolate tenants") as refused:
            async with open_engine(config=settings(url, tmp_path)):
                pass
        async with open_owner(url, Options()) as owner:
            untouched = await owner.value("select to_regnamespace('holdfast') is null")

        for role in ROLES:
            await administrator.script(f"create role {role}")
        await administrator.script("grant holdfast_owner, holdfast_app, holdfast_system to modest")
        async with open_engine(config=settings(url, tmp_path)) as engine:
            await assert_tenants_are_apart(engine)
            who = await engine.database.value(WHO)

    assert untouched
    assert "createrole" in refused.value.next
    assert all(role in refused.value.next for role in ROLES)
    assert who == "modest holdfast_app"


async def test_two_databases_of_one_new_server_are_migrated_at_once(fast_folder: Path) -> None:
    with EmbeddedServer(fast_folder / "two") as server:
        names = [f"new_{number}" for number in range(4)]
        async with open_owner(server.url, Options()) as administrator:
            for name in names:
                await administrator.script(f"create database {name}")

        async def migrated(name: str) -> int:
            async with open_owner(server.url.replace("/holdfast?", f"/{name}?"), Options()) as owner:
                return len((await migrate(owner)).migrations)

        async with asyncio.timeout(60):
            counts = await asyncio.gather(*map(migrated, names))

    assert min(counts) > 0
