import asyncio
import hashlib
import stat
from pathlib import Path

import pytest

from holdfast.core.config import Config
from holdfast.core.errors import AlreadyExists, InvalidInput, NotFound
from holdfast.engine import Engine, open_engine
from holdfast.postgres.address import for_program
from holdfast.postgres.backup import backup, restore
from holdfast.postgres.database import OwnerConnection, open_owner
from holdfast.postgres.options import Options
from holdfast.postgres.sql import statements

sql = statements("holdfast.postgres.backup")


@pytest.mark.req("SAFE-05")
async def test_a_restored_backup_holds_every_row(
    config: Config, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    async with open_engine(config=config) as engine:  # and no longer: it writes by itself, too
        await fill(engine)
    file = tmp_path / "all.backup"
    told: list[str] = []

    await backup(database_url, file, told.append)
    restored = await restore(empty_database_url, Options(), file, told.append)

    before = await fingerprints(database_url)
    assert before == await fingerprints(empty_database_url)
    assert restored.tables == len(before)
    assert restored.rows > 100
    assert "public.identity" in told


@pytest.mark.req("SAFE-05")
async def test_a_backup_under_write_load_is_one_moment(engine: Engine, empty_database_url: str, tmp_path: Path) -> None:
    written = 0

    async def write() -> None:
        nonlocal written
        while True:
            async with engine.transaction() as tx:  # always both rows or neither
                for kind in ("user", "agent"):
                    statement = "insert into identity (tenant_id, kind, name, id) values ($1, $2, $3, holdfast.uuid7())"
                    await tx.run(statement, kind, f"name {written}")
            written += 1

    writer = asyncio.create_task(write())
    file = tmp_path / "busy.backup"

    await backup(engine.place.owner_url, file, lambda _: None)
    during = written
    writer.cancel()
    await restore(empty_database_url, Options(), file, lambda _: None)

    async with open_owner(empty_database_url, Options()) as owner:
        users = await owner.value("select count(*) from identity where kind = 'user'")
        agents = await owner.value("select count(*) from identity where kind = 'agent'")
    assert during > 0
    assert users == agents


@pytest.mark.req("SAFE-05", "ENG-10")
async def test_backup_and_restore_work_on_a_server_without_superuser(
    config: Config, database_url: str, remote_url: str, tmp_path: Path
) -> None:
    async with open_engine(config=config) as engine:  # and no longer: it writes by itself, too
        await fill(engine)
    there, back = tmp_path / "there.backup", tmp_path / "back.backup"

    await backup(database_url, there, lambda _: None)
    await restore(remote_url, Options(), there, lambda _: None)
    await backup(remote_url, back, lambda _: None)

    assert await fingerprints(remote_url) == await fingerprints(database_url)
    assert back.stat().st_size > 0
    async with open_engine(remote_url, data=tmp_path / "data", tenant="acme") as remote:
        names = await remote.database.all("select name from principal where tenant_id = $1")
        assert [row["name"] for row in names] == ["ann"]


@pytest.mark.req("SAFE-05")
async def test_a_backup_overwrites_no_file_and_a_restore_no_database(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "one.backup"
    await backup(engine.place.owner_url, file, lambda _: None)
    written = file.read_bytes()

    with pytest.raises(AlreadyExists):
        await backup(engine.place.owner_url, file, lambda _: None)
    with pytest.raises(AlreadyExists, match="not empty"):
        await restore(engine.place.owner_url, Options(), file, lambda _: None)

    assert file.read_bytes() == written


@pytest.mark.req("SAFE-05")
async def test_what_is_not_a_backup_is_refused_and_changes_nothing(empty_database_url: str, tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_bytes(b"PGDMP but not really")

    with pytest.raises(InvalidInput, match="not a backup"):
        await restore(empty_database_url, Options(), junk, lambda _: None)
    with pytest.raises(NotFound):
        await restore(empty_database_url, Options(), tmp_path / "missing", lambda _: None)

    async with open_owner(empty_database_url, Options()) as owner:
        assert not await owner.value(sql("has_tables"))


@pytest.mark.req("SAFE-05")
async def test_half_a_backup_is_refused_and_changes_nothing(
    engine: Engine, empty_database_url: str, tmp_path: Path
) -> None:
    await fill(engine)
    whole, half = tmp_path / "whole", tmp_path / "half"
    await backup(engine.place.owner_url, whole, lambda _: None)
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])

    with pytest.raises(Exception, match=r"failed|not a backup"):
        await restore(empty_database_url, Options(), half, lambda _: None)

    async with open_owner(empty_database_url, Options()) as owner:
        assert not await owner.value(sql("has_tables"))


@pytest.mark.req("SAFE-05")
async def test_a_backup_is_its_owners_alone_and_leaves_no_draft(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()

    await backup(engine.place.owner_url, folder / "one", lambda _: None)

    assert [path.name for path in folder.iterdir()] == ["one"]
    assert stat.S_IMODE((folder / "one").stat().st_mode) == 0o600


def test_a_password_among_the_parameters_is_kept_from_the_command_line() -> None:
    address, environment = for_program("postgresql:///shop?host=/run&user=ann&password=a%20b")

    assert address == "postgresql://ann@/shop?host=/run"
    assert environment["PGPASSWORD"] == "a b"


async def fill(engine: Engine) -> None:
    """Rows in every table, with text that is hard to carry."""
    acme = await engine.tenants.create("acme")
    await engine.keys.create(acme.id, "ann")
    for number in range(100):
        await engine.tenant("acme").identities.id("user", f"üser\0{number}\n\\N\t'\"")


async def fingerprints(url: str) -> dict[str, str]:
    """Of every table a hash over all its rows; when a step was applied is no part of the data."""
    async with open_owner(url, Options()) as owner:
        return {row["name"]: await fingerprint(owner, row["name"]) for row in await owner.all(sql("tables"))}


async def fingerprint(owner: OwnerConnection, table: str) -> str:
    rows = await owner.all(f"select t::text as row from {table} t order by 1")
    return hashlib.sha256("\n".join(row["row"] for row in rows).encode()).hexdigest()
