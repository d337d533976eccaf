"""Processes are killed without warning while others write: nothing that was acknowledged is lost."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from holdfast.engine import open_engine
from holdfast.postgres.account import open_for_child, server_account
from holdfast.postgres.binaries import find_binaries
from holdfast.postgres.embedded import DATABASE, OWNER, EmbeddedServer
from holdfast.postgres.folder import DataFolder
from tests.acceptance.folders import first_number
from tests.processes import Process, Processes, servers_on, wait_until_gone

PROGRAM = str(Path(__file__).parent / "programs" / "writer.py")
ENGINES = (("ann", "bob"), ("cid", "dot"))  # two engine processes, two writers in each
WIDTH = len(b"00000000\n")
PATIENCE = 60.0  # seconds after a kill in which every writer must get on
SIGNS_OF_DAMAGE = ("PANIC", "invalid page", "checksum", "corrupted item", "could not read block", "missing chunk")

TABLE = """
create table public.written (
  tenant_id uuid not null, writer text, number int, content text not null,
  primary key (tenant_id, writer, number)
);
call holdfast.hold_to_tenant('public.written');
"""
ROWS = """
select writer, array_agg(number order by number) as numbers,
  bool_and(content = repeat(format('%s wrote %s; ', writer, number), 10)) as intact
from written where tenant_id = $1 group by writer
"""


@dataclass
class Scene:
    """Two engines with two writers each on one data folder, and what each writer was promised."""

    data: Path
    ledgers: Path
    processes: Processes
    engines: dict[tuple[str, ...], Process] = field(default_factory=dict[tuple[str, ...], Process])

    def start_engines(self) -> None:
        """Start the engines that do not run."""
        for names in ENGINES:
            if names not in self.engines:
                self.engines[names] = self.processes.start(PROGRAM, str(self.data), str(self.ledgers), *names)

    def kill_engine(self, dice: random.Random) -> None:
        """Kill one of the engines; it is started again later."""
        self.engines.pop(dice.choice(ENGINES)).kill()

    def kill_holder(self, _dice: random.Random) -> None:
        """Kill the process that owns the server."""
        kill(DataFolder(self.data).holder_lock)

    def kill_server(self, _dice: random.Random) -> None:
        """Kill PostgreSQL's first process."""
        kill(self.data / "postgres" / "postmaster.pid")

    def kill_backend(self, dice: random.Random) -> None:
        """Kill any of PostgreSQL's other processes."""
        with suppress(psutil.NoSuchProcess, FileNotFoundError, ValueError):
            server = psutil.Process(first_number(self.data / "postgres" / "postmaster.pid"))
            children = server.children()
            if children:
                dice.choice(children).kill()

    def kill_everything(self, dice: random.Random) -> None:
        """Kill all of them at once, as if the machine had failed."""
        pids = [*servers_on(self.data), *(engine.pid for engine in self.engines.values())]
        dice.shuffle(pids)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for engine in self.engines.values():
            engine.wait()
        self.engines.clear()

    def acknowledged(self) -> dict[str, int]:
        """How many rows each writer was promised."""
        names = (name for names in ENGINES for name in names)
        return {name: self._size(name) // WIDTH for name in names}

    def last_words(self) -> str:
        """The end of the server's log."""
        return DataFolder(self.data).log.read_text()[-4000:]

    def _size(self, name: str) -> int:
        ledger = self.ledgers / name
        return ledger.stat().st_size if ledger.exists() else 0

    def wait_until_all_get_on(self) -> None:
        """Wait until each writer has been promised another row."""
        before, deadline = self.acknowledged(), time.monotonic() + PATIENCE
        while stuck := [name for name, count in self.acknowledged().items() if count <= before[name]]:
            for names, engine in self.engines.items():
                assert psutil.pid_exists(engine.pid), engine.stderr
                assert "Traceback" not in engine.stderr, f"{names}: {engine.stderr}"
            assert time.monotonic() < deadline, f"{stuck} wrote nothing for {PATIENCE} s\n{self.last_words()}"
            time.sleep(0.02)


@pytest.mark.acceptance
@pytest.mark.req("ENG-02", "SAFE-01")
@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.soak(minutes=3))])
async def test_no_acknowledged_row_is_lost_whatever_is_killed(kills: int, tmp_path: Path, processes: Processes) -> None:
    seed = int(os.environ.get("HOLDFAST_TEST_SEED", random.randrange(2**32)))
    sys.stdout.write(f"HOLDFAST_TEST_SEED={seed} repeats the order of the kills\n")
    dice = random.Random(seed)
    scene = Scene(tmp_path / "data", tmp_path, processes)
    async with open_engine(data=scene.data) as engine, engine.postgres.owner() as owner:
        await owner.script(TABLE)

    scene.start_engines()
    scene.wait_until_all_get_on()
    for deed in deeds(scene, kills, dice):
        await asyncio.sleep(dice.uniform(0, 0.4))
        sys.stdout.write(f"{deed.__name__}\n")
        deed(dice)
        scene.start_engines()
        if dice.random() < 0.7:  # the other times the next blow falls while they are still getting up
            scene.wait_until_all_get_on()
    scene.wait_until_all_get_on()
    left = servers_on(scene.data)
    for process in scene.engines.values():
        process.send(signal.SIGTERM)
        assert process.wait() == 0, process.stderr
    wait_until_gone(*left, *servers_on(scene.data))

    folder = DataFolder(scene.data)
    check_pages(folder)
    said_before = folder.log.stat().st_size
    async with open_engine(data=scene.data) as engine:
        rows = {row["writer"]: row for row in await engine.database.all(ROWS)}
        check_structures(scene.data)
    for name, promised in scene.acknowledged().items():
        numbers = rows[name]["numbers"]
        assert numbers[:promised] == list(range(1, promised + 1))
        assert len(numbers) <= promised + 1, "one row at most was under way when the writer ended"
        assert rows[name]["intact"]
    wait_until_gone(*servers_on(scene.data))
    last_start = folder.log.read_text()[said_before:]
    assert "database system was shut down at" in last_start
    assert not [sign for sign in SIGNS_OF_DAMAGE if sign in folder.log.read_text()]


def deeds(scene: Scene, count: int, dice: random.Random) -> Sequence[Callable[[random.Random], None]]:
    """Each way to kill equally often, in a random order."""
    kinds = [
        scene.kill_engine,
        scene.kill_holder,
        scene.kill_server,
        scene.kill_backend,
        scene.kill_everything,
    ]
    chosen = [kinds[number % len(kinds)] for number in range(count)]
    dice.shuffle(chosen)
    return chosen


def kill(pid_file: Path) -> None:
    """Kill the process that a file names, if there is one at this moment."""
    with suppress(FileNotFoundError, ValueError, ProcessLookupError):
        os.kill(first_number(pid_file), signal.SIGKILL)


def check_pages(folder: DataFolder) -> None:
    """Every page on disk has the checksum it should have; the server must be down."""
    with open_for_child(folder.cluster) as (cluster, descriptors):
        run("pg_checksums", "--check", "-D", cluster, pass_fds=descriptors, folder=folder)


def check_structures(data: Path) -> None:
    """Tables and indexes agree with one another; the server must be up."""
    folder = EmbeddedServer(data).folder
    run("pg_amcheck", "--install-missing", "--heapallindexed", "-U", OWNER, "-h", str(folder.sockets), DATABASE)


def run(program: str, *arguments: str, pass_fds: Sequence[int] = (), folder: DataFolder | None = None) -> None:
    """Run one of PostgreSQL's programs, as the server's account where it must read the files."""
    identity = server_account(folder.cluster).identity() if folder else {}
    command = [find_binaries().path(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", pass_fds=pass_fds, **identity)
    assert done.returncode == 0, done.stdout + done.stderr
