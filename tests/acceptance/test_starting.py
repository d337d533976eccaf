"""Many start, some die while they do: there is one server, and it goes with the last who uses it."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from holdfast.core.config import load_config
from holdfast.core.errors import DatabaseAway, TimedOut, Unavailable
from holdfast.engine import open_engine
from holdfast.postgres.account import open_for_child, server_account
from holdfast.postgres.binaries import find_binaries
from holdfast.postgres.embedded import EmbeddedServer, is_responding
from holdfast.postgres.folder import DataFolder
from holdfast.postgres.migrate import Schema
from tests.acceptance.folders import fill, first_number, remembers
from tests.processes import Processes, servers_on, wait_until_gone

GUEST = str(Path(__file__).parent / "programs" / "guest.py")

pytestmark = [pytest.mark.acceptance, pytest.mark.req("ENG-01", "ENG-02")]


@pytest.mark.req("ENG-03")
async def test_four_that_start_at_once_share_one_server_and_migrate_once(empty: Path, processes: Processes) -> None:
    guests = [processes.start(GUEST, str(empty)) for _ in range(4)]
    for guest in guests:
        guest.wait_for("open")

    async with open_engine(data=empty) as engine, engine.postgres.owner() as owner:
        migrated = [row["name"] for row in await owner.all("select name from holdfast.migration order by name")]
    running = servers_on(empty)
    for guest in guests:
        guest.send(signal.SIGTERM)
    ended = [guest.wait() for guest in guests]
    wait_until_gone(*running)

    assert migrated == [step.name for step in Schema.packaged().migrations]
    assert sum("applied" in guest.stderr for guest in guests) == 1
    assert DataFolder(empty).log.read_text().count("starting PostgreSQL") == 1
    assert ended == [0, 0, 0, 0]


@pytest.mark.parametrize("farewell", [signal.SIGTERM, signal.SIGKILL], ids=["who leaves", "who is killed"])
def test_a_second_process_attaches_and_outlives_the_first(
    used: Path, processes: Processes, farewell: signal.Signals
) -> None:
    first = processes.start(GUEST, str(used))
    first.wait_for("open")
    server = first_number(used / "postgres" / "postmaster.pid")
    second = processes.start(GUEST, str(used))
    second.wait_for("open")

    first.send(farewell)
    first.wait()
    second.send(signal.SIGUSR1)
    second.wait_for("answered")

    assert first_number(used / "postgres" / "postmaster.pid") == server
    second.send(signal.SIGTERM)
    assert second.wait() == 0
    wait_until_gone(*servers_on(used))
    assert not servers_on(used)


@pytest.mark.parametrize("victims", ["starter", "starter and holder"])
@pytest.mark.parametrize("moment", range(5))
def test_a_first_start_that_is_killed_leaves_a_folder_that_starts(
    empty: Path, processes: Processes, victims: str, moment: int
) -> None:
    delay = random.uniform(0.25 * moment, 0.25 * (moment + 1))
    sys.stdout.write(f"killed after {delay:.3f} s\n")
    starter = processes.start(GUEST, str(empty))
    time.sleep(delay)
    killed = [starter.pid, *(servers_on(empty) if victims != "starter" else ())]
    for pid in killed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    starter.wait()

    fill(empty)

    assert remembers(empty)
    assert not list(empty.glob("postgres.new*"))


def test_a_holder_that_is_told_to_stop_stops_the_server_and_the_next_statement_brings_it_back(
    used: Path, processes: Processes
) -> None:
    guest = processes.start(GUEST, str(used))
    guest.wait_for("open")
    running = servers_on(used)

    os.kill(first_number(DataFolder(used).holder_lock), signal.SIGTERM)
    wait_until_gone(*running)
    guest.send(signal.SIGUSR1)
    guest.wait_for("answered")

    log = DataFolder(used).log.read_text()
    assert log.count("database system was shut down at") == log.count("starting PostgreSQL"), "it was no crash"


def test_a_server_that_was_killed_is_started_again_by_its_holder(used: Path, processes: Processes) -> None:
    guest = processes.start(GUEST, str(used))
    guest.wait_for("open")
    holder = first_number(DataFolder(used).holder_lock)

    os.kill(first_number(used / "postgres" / "postmaster.pid"), signal.SIGKILL)
    guest.send(signal.SIGUSR1)
    guest.wait_for("answered")

    assert first_number(DataFolder(used).holder_lock) == holder
    assert psutil.pid_exists(holder)


async def test_the_embedded_server_stops_a_statement_that_takes_too_long(used: Path) -> None:
    config = load_config({"data": used, "database.statement_timeout": 0.3}, environ={})

    async with open_engine(config=config) as engine:
        with pytest.raises(TimedOut):
            await engine.database.value("select pg_sleep(30) where $1::uuid is not null")

        assert await engine.database.value("select 1 where $1::uuid is not null") == 1


def test_a_server_that_someone_else_started_on_the_folder_is_named_and_left_alone(used: Path) -> None:
    folder = DataFolder(used)
    account = server_account(folder.cluster)
    with open_for_child(folder.cluster, used / "run") as (cluster, elsewhere, descriptors):
        options = [f"unix_socket_directories={elsewhere}", "listen_addresses=", "port=5999"]
        started = subprocess.Popen(
            [find_binaries().path("postgres"), "-D", cluster, *(part for option in options for part in ("-c", option))],
            stderr=subprocess.PIPE,
            cwd="/",
            pass_fds=descriptors,
            **account.identity(),
        )
    try:
        wait_for_pid_file(folder, started.pid)

        with pytest.raises(Unavailable) as refusal:
            EmbeddedServer(used).hold()

        assert f"another PostgreSQL server (pid {started.pid}) uses" in str(refusal.value)
        assert f"kill -INT {started.pid}" in refusal.value.next
        assert started.poll() is None
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=30)
    assert remembers(used)


def wait_for_pid_file(folder: DataFolder, pid: int) -> None:
    """Wait until the server on a folder is ready and is this one."""
    pid_file = folder.cluster / "postmaster.pid"
    deadline = time.monotonic() + 30
    while not (pid_file.exists() and pid_file.read_text().startswith(f"{pid}\n") and "ready" in pid_file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not is_responding(folder.sockets)


async def test_a_child_of_a_killed_server_that_never_ends_by_itself_does_not_hinder_the_next(used: Path) -> None:
    async with open_engine(data=used) as engine:
        # As one that waits for a lock of another that was killed: it notices nothing any more.
        stuck = psutil.Process(await engine.postgres.system.value("select pg_backend_pid()"))
        stuck.suspend()
        os.kill(first_number(used / "postgres" / "postmaster.pid"), signal.SIGKILL)

        with suppress(DatabaseAway):  # what is sent to the stuck one has no answer
            await engine.database.now()
        await engine.database.now()

        wait_until_gone(stuck.pid)
