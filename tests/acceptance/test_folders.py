"""Data folders of every kind: each works, or is refused with what to do about it, and none is damaged."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.core.errors import DataFolderUnusable
from holdfast.postgres.account import server_account
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.postgres.folder import SOCKET_NAME, DataFolder
from tests.acceptance.accounts import Ordinary
from tests.acceptance.folders import fingerprint, first_number, modes_above, remembers
from tests.processes import Processes, servers_on, wait_until_gone

GUEST = str(Path(__file__).parent / "programs" / "guest.py")

pytestmark = [pytest.mark.acceptance, pytest.mark.req("ENG-02")]

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can arrange this")


@contextmanager
def process_of(folder: DataFolder, *, ended: bool = False) -> Generator[int]:
    """A process of the server's own account that is no server; `ended`: only its zombie."""
    command = ["sleep", "0" if ended else "60"]
    process = subprocess.Popen(command, **server_account(folder.cluster).identity())
    try:
        if ended:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "content",
    ["", "\n", "no number\n", "0\n", "-1\n", "1\n", "999999999999\n", "\x00\x00\x00\x00", f"{os.getpid()}\n"],
    ids=["empty", "blank", "garbage", "zero", "negative", "pid 1", "huge", "zeros after a power cut", "our own pid"],
)
def test_a_stale_pid_file_is_no_hindrance(used: Path, content: str) -> None:
    (used / "postgres" / "postmaster.pid").write_text(content)

    assert remembers(used)


@pytest.mark.parametrize("ended", [False, True], ids=["a live process", "a zombie"])
def test_a_pid_file_that_names_another_process_is_no_hindrance(used: Path, ended: bool) -> None:
    with process_of(DataFolder(used), ended=ended) as pid:
        (used / "postgres" / "postmaster.pid").write_text(f"{pid}\n{used / 'postgres'}\n1790000000\n5432\n")

        assert remembers(used)


def test_a_copy_made_while_the_server_ran_starts_beside_it(used: Path, prepared: Path) -> None:
    with EmbeddedServer(prepared) as original:
        lock_file = original.folder.cluster / "postmaster.pid"
        subprocess.run(["cp", "-a", lock_file, used / "postgres"], check=True)
        server = first_number(original.folder.cluster / "postmaster.pid")

        assert remembers(used)
        assert server in servers_on(prepared)
    wait_until_gone(*servers_on(prepared))


def test_stale_sockets_and_lock_files_are_no_hindrance(used: Path) -> None:
    folder = DataFolder(used)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(folder.sockets / SOCKET_NAME))
    (folder.sockets / f"{SOCKET_NAME}.lock").write_text("1\n")
    for lock in (folder.users_lock, folder.start_lock, folder.holder_lock):
        lock.write_text("1\n")

    assert remembers(used)


def test_data_of_another_major_version_are_refused_with_the_way_out(used: Path) -> None:
    (used / "postgres" / "PG_VERSION").write_text("15\n")
    before = fingerprint(used)

    with pytest.raises(DataFolderUnusable, match="PostgreSQL 15 wrote the data") as refusal:
        EmbeddedServer(used).hold()

    assert "holdfast db backup" in refusal.value.next
    assert fingerprint(used) == before


@pytest.mark.parametrize("below", ["", "data", "far/below"], ids=["itself", "its parent", "its grandparent"])
def test_a_file_in_the_way_is_refused_and_left_alone(empty: Path, below: str) -> None:
    empty.write_text("mine")

    with pytest.raises(DataFolderUnusable, match="is a file"):
        EmbeddedServer(empty / below).hold()

    assert empty.read_text() == "mine"


@pytest.mark.parametrize(
    "name",
    ["with spaces and 'quotes' \"of both kinds\"", "a,b;c&d=e?f#g%20h", "$HOME `x` \\back", "Ünïcödé 数据", "-D"],
    ids=["spaces and quotes", "commas and signs", "shell", "letters", "an option"],
)
def test_any_name_will_do(used: Path, name: str) -> None:
    data = used.rename(used.with_name(name))

    try:
        assert remembers(data)
    finally:
        wait_until_gone(*servers_on(data))
        data.rename(used)


def test_a_path_too_long_for_a_socket_gets_a_private_folder_elsewhere(used: Path) -> None:
    long = used.parent / ("deep" * 25) / ("deeper" * 20)
    long.parent.mkdir()
    data = used.rename(long)

    with EmbeddedServer(data) as server:
        sockets = server.folder.sockets.stat()
        assert remembers(data)
    wait_until_gone(*servers_on(data))

    assert not server.folder.sockets.is_relative_to(data)
    assert not server.folder.sockets.exists()
    assert sockets.st_mode & 0o077 == 0
    assert sockets.st_uid in (os.geteuid(), server_account(data / "postgres").uid)


def test_everyone_finds_the_server_of_a_long_path_by_whatever_name(used: Path, processes: Processes) -> None:
    long = used.parent / ("deep" * 25) / ("deeper" * 20)
    long.parent.mkdir()
    used.rename(long)
    used.symlink_to(long)
    first = processes.start(GUEST, str(long))
    first.wait_for("open")
    server = first_number(long / "postgres" / "postmaster.pid")

    second = processes.start(GUEST, str(used), environment={"TMPDIR": str(used.parent)})
    second.wait_for("open")

    assert first_number(long / "postgres" / "postmaster.pid") == server
    processes.end_all()
    wait_until_gone(*servers_on(long))


def test_no_folder_above_the_data_is_changed(used: Path) -> None:
    used.parent.chmod(0o700)
    before = modes_above(used)

    assert remembers(used)

    assert modes_above(used) == before


def test_an_ordinary_account_runs_it_all_as_itself(place: Path, ordinary: Ordinary) -> None:
    done = ordinary.run("-c", ONCE, str(place / "data"))

    assert done.stdout == "True\n", done.stderr
    wait_until_gone(*servers_on(place / "data"))  # until then files come and go
    assert {path.stat().st_uid for path in place.rglob("*")} == {ordinary.uid}


@as_root
def test_root_uses_the_folder_of_an_ordinary_account_as_that_account(place: Path, ordinary: Ordinary) -> None:
    assert ordinary.run("-c", ONCE, str(place / "data")).returncode == 0
    wait_until_gone(*servers_on(place / "data"))

    assert remembers(place / "data")

    assert {path.stat().st_uid for path in (place / "data" / "postgres").rglob("*")} == {ordinary.uid}
    assert ordinary.run("-c", ONCE, str(place / "data")).stdout == "True\n"


def test_a_folder_that_cannot_be_written_is_refused(place: Path, ordinary: Ordinary) -> None:
    data = place / "data"
    data.mkdir(mode=0o500)
    ordinary.own(data)

    done = ordinary.run(GUEST, str(data))

    assert done.returncode == 6
    assert "is not writable" in done.stderr
    assert "--data" in done.stderr
    assert not list(data.iterdir())


def test_a_folder_that_cannot_be_made_is_refused(place: Path, ordinary: Ordinary) -> None:
    place.chmod(0o500)

    done = ordinary.run(GUEST, str(place / "data"))

    assert done.returncode == 6
    assert "cannot be created (Permission denied)" in done.stderr


@as_root
def test_a_folder_of_someone_else_is_refused(place: Path, ordinary: Ordinary) -> None:
    data = place / "data"
    data.mkdir(mode=0o777)
    data.chmod(0o777)

    done = ordinary.run(GUEST, str(data))

    assert done.returncode == 6
    assert "it belongs to root, not to you" in done.stderr
    assert not list(data.iterdir())


@as_root
@pytest.mark.parametrize(("owner", "says"), [(0, "belongs to root"), (54_321, "user 54321, who has no account")])
def test_root_is_told_whose_data_cannot_be_served(used: Path, owner: int, says: str) -> None:
    for path in [used / "postgres", *(used / "postgres").rglob("*")]:
        os.chown(path, owner, -1)
    before = fingerprint(used / "postgres")

    with pytest.raises(DataFolderUnusable, match=says) as refusal:
        EmbeddedServer(used).hold()

    assert "chown -R" in refusal.value.next
    assert fingerprint(used / "postgres") == before


@as_root
def test_a_read_only_file_system_is_refused(used: Path) -> None:
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'
    command = ["unshare", "--mount", "sh", "-c", f'{mount} || exit 99; exec "$2" "$3" "$1"', "sh"]
    before = fingerprint(used)

    done = subprocess.run([*command, str(used), sys.executable, GUEST], capture_output=True, text=True)

    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"this machine does not let us mount: {done.stderr}")
    assert done.returncode == 6, done.stderr
    assert "is not writable" in done.stderr
    assert fingerprint(used) == before


def test_a_folder_that_is_deleted_under_the_server_leaves_no_process(empty: Path, processes: Processes) -> None:
    guest = processes.start(GUEST, str(empty))
    guest.wait_for("open")
    running = servers_on(empty)

    shutil.rmtree(empty)
    guest.send(signal.SIGTERM)

    guest.wait()
    wait_until_gone(*running)


ONCE = """
import sys
from pathlib import Path
from tests.acceptance.folders import fill, remembers
fill(Path(sys.argv[1]))
print(remembers(Path(sys.argv[1])))
"""
