from pathlib import Path
from urllib.parse import urlsplit

import pytest

import holdfast
from holdfast.core.config import Config, load_config
from holdfast.core.errors import Forbidden, NotFound
from holdfast.engine import Engine, open_engine
from holdfast.postgres.address import with_login
from holdfast.postgres.database import open_owner
from holdfast.postgres.options import Options
from tests.remote import RemoteServer


@pytest.mark.req("ENG-01", "ENG-02")
async def test_an_engine_opens_on_nothing_and_a_second_one_shares_its_server(fast_folder: Path) -> None:
    data = fast_folder / "from nothing"

    async with holdfast.open_engine(data=data) as first, holdfast.open_engine(data=data) as second:
        await first.tenants.create("acme")
        found = [tenant.name for tenant in await second.tenants.list()]

    assert found == ["acme", "default"]
    assert (data / "postgres" / "PG_VERSION").exists()


@pytest.mark.req("ENG-04")
async def test_the_engine_of_one_tenant_shows_nothing_of_another(engine: Engine) -> None:
    await engine.tenants.create("acme")
    acme = engine.tenant("acme")

    id = await acme.identities.id("user", "ann")

    assert await acme.identities.name("user", id) == "ann"
    with pytest.raises(NotFound):
        await engine.identities.name("user", id)


async def test_a_tenant_that_does_not_exist_is_an_error_at_its_first_use(engine: Engine) -> None:
    nobody = engine.tenant("nobody")

    with pytest.raises(NotFound, match="tenant 'nobody' does not exist"):
        await nobody.identities.id("user", "ann")


async def test_of_the_engines_of_tenants_those_that_were_used_last_are_kept(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.REMEMBERED", 2)
    used, unused = engine.tenant("used"), engine.tenant("unused")
    engine.tenant("used")

    engine.tenant("another")

    assert engine.tenant("used") is used
    assert engine.tenant("unused") is not unused


@pytest.mark.req("TALK-08")
async def test_an_engine_that_serves_or_is_watched_is_kept(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.engine.REMEMBERED", 2)
    for name in ("serving", "watched"):
        await engine.tenants.create(name)
    serving, watched = engine.tenant("serving"), engine.tenant("watched")
    talk = await watched.conversations.create(user="ann")

    async with serving.serving(holdfast.App()), watched.agents.watch(talk.id, None):
        others = [engine.tenant(f"other-{number}") for number in range(3)]
        kept = engine.tenant("serving") is serving and engine.tenant("watched") is watched
    for number in range(3):
        engine.tenant(f"other-{number}")

    assert kept
    assert engine.tenant("other-0") is not others[0]
    assert engine.tenant("serving") is not serving


@pytest.mark.req("ENG-10")
async def test_on_a_foreign_server_the_engine_has_a_login_that_can_do_nothing_by_itself(
    remote_url: str, tmp_path: Path
) -> None:
    async with open_engine(remote_url, data=tmp_path) as engine:
        session, current = await acting(engine)
        owner_can = await engine.postgres.system.value("select pg_has_role(session_user, 'holdfast_owner', 'member')")

    assert session.startswith("holdfast_engine_")
    assert current == "holdfast_system"
    assert owner_can is False


@pytest.mark.req("ENG-10")
async def test_the_engines_login_follows_the_owners_new_password(
    remote: RemoteServer, remote_url: str, tmp_path: Path
) -> None:
    async with open_engine(remote_url, data=tmp_path):
        pass
    owner = urlsplit(remote_url).username or ""
    await set_password(remote_url, owner, "changed")
    try:
        async with open_engine(with_login(remote_url, owner, "changed"), data=tmp_path) as engine:
            session, _ = await acting(engine)
    finally:
        await set_password(with_login(remote_url, owner, "changed"), owner, remote.password)

    assert session.startswith("holdfast_engine_")


@pytest.mark.req("ENG-04", "ENG-10")
async def test_a_login_of_the_operators_own_runs_the_statements_where_an_owner_is_named_too(
    remote_url: str, tmp_path: Path
) -> None:
    async with open_engine(remote_url, data=tmp_path) as engine, engine.postgres.owner() as owner:
        await owner.script("create role shop login password 'shop'")
        await owner.script("grant holdfast_app, holdfast_system to shop with inherit false, set true")
    flags = {"database.url": with_login(remote_url, "shop", "shop"), "database.owner_url": remote_url, "data": tmp_path}

    async with open_engine(config=load_config(flags, environ={})) as engine:
        session, current = await acting(engine)

    assert (session, current) == ("shop", "holdfast_system")


@pytest.mark.req("ENG-04")
async def test_a_login_that_security_does_not_hold_is_refused(
    config: Config, database_url: str, tmp_path: Path
) -> None:
    async with open_owner(database_url, Options()) as owner:
        await owner.script("alter role holdfast_system bypassrls")
    try:
        with pytest.raises(Forbidden, match="bypasses row-level security"):
            async with open_engine(config=config):
                pass
    finally:
        async with open_owner(database_url, Options()) as owner:
            await owner.script("alter role holdfast_system nobypassrls")


@pytest.mark.req("SAFE-03")
async def test_keys_of_another_secret_are_reported(engine: Engine, database_url: str, tmp_path: Path) -> None:
    made = await engine.keys.create((await engine.tenants.find("default")).id, "ann")

    async with open_engine(database_url, data=tmp_path / "elsewhere") as elsewhere:
        states = {part.name: part.state for part in await elsewhere.parts()}
        with pytest.raises(holdfast.Unauthenticated):
            await elsewhere.keys.authenticate(made.text)

    assert (states["database"], states["keys"]) == ("ok", "reduced")


async def test_one_tenant_has_one_set_of_services(engine: Engine) -> None:
    await engine.tenants.create("acme")

    assert engine.tenant("acme").identities is engine.tenant("acme").identities


def test_the_public_names_are_there_and_others_are_not() -> None:
    assert holdfast.open_engine is open_engine
    assert issubclass(holdfast.Conflict, holdfast.HoldfastError)
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        _ = holdfast.nothing_of_ours  # pyright: ignore[reportAttributeAccessIssue]


async def acting(engine: Engine) -> tuple[str, str]:
    """Who is logged in, and who it acts as."""
    row = await engine.postgres.system.one("select session_user::text as session, current_user::text as current")
    assert row is not None
    return row["session"], row["current"]


async def set_password(url: str, role: str, password: str) -> None:
    async with open_owner(url, Options()) as owner:
        await owner.script(f"alter role {role} password '{password}'")
