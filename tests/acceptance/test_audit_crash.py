"""Processes are killed at random while calls run: every answered call has its entry in the audit, and it verifies."""

import asyncio
import os
import random
import re
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest

from holdfast.core.config import load_config
from holdfast.core.errors import HoldfastError
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import open_owner
from holdfast.postgres.options import Options
from tests.acceptance.test_call_crash import META, PROGRAMS
from tests.processes import Process, Processes

pytestmark = [pytest.mark.acceptance, pytest.mark.req("MCP-07", "SAFE-07", "SAFE-01")]

CLIENTS = 16
AWAY = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "mirror",
}
# A backend that serves an engine; a server that loses one so recovers as after a crash, and all others are gone, too.
BACKENDS = """
select pid from pg_stat_activity
where datname = current_database() and application_name = 'holdfast' and backend_type = 'client backend'
  and pid <> pg_backend_pid()
"""

StartNode = Callable[[int], tuple[Process, int]]
StartWorker = Callable[[], Process]


@pytest.fixture
def start_node(processes: Processes, database_url: str, tmp_path: Path) -> StartNode:
    """Starts `holdfast up gate:app` on the test's database, and waits until it answers; its port."""

    def start(number: int) -> tuple[Process, int]:
        environment = {
            "HOLDFAST_DATABASE_URL": database_url,
            "HOLDFAST_DATA": str(tmp_path / f"node-{number}"),
            "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
            "PYTHONPATH": str(PROGRAMS),
        }
        return started(processes, environment)

    return start


@pytest.fixture
def start_worker(processes: Processes, database_url: str, tmp_path: Path) -> StartWorker:
    """Starts `holdfast worker gate:app` on the test's database, and waits until it works: it seals, too."""

    def start() -> Process:
        environment = {
            "HOLDFAST_DATABASE_URL": database_url,
            "HOLDFAST_DATA": str(tmp_path / "worker"),
            "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
            "PYTHONPATH": str(PROGRAMS),
        }
        process = processes.holdfast("worker", "gate:app", environment=environment)
        process.wait_for("Ctrl-C stops it.")
        return process

    return start


def started(processes: Processes, environment: Mapping[str, str]) -> tuple[Process, int]:
    """A server that answers, and its port."""
    process = processes.holdfast("up", "gate:app", "--port", "0", "--json", environment=environment)
    process.wait_for('"url"')
    found = re.search(r'"url":\s*"http://127\.0\.0\.1:(\d+)"', process.stdout)
    assert found
    return process, int(found[1])


class Nodes:
    """Servers on one database. One is killed at a time, and started again."""

    def __init__(self, start: StartNode, count: int = 2) -> None:
        self._start = start
        self._count = count
        self._running: list[tuple[Process, int]] = []

    async def begin(self) -> None:
        """Start them."""
        self._running = [await asyncio.to_thread(self._start, number) for number in range(self._count)]

    @property
    def port(self) -> int:
        """The port of one of them."""
        return random.choice(self._running)[1]

    async def kill_one(self) -> None:
        """Kill one of them without a chance to say goodbye, and start it again."""
        number = random.randrange(len(self._running))
        await asyncio.to_thread(self._running[number][0].kill)
        self._running[number] = await asyncio.to_thread(self._start, number)


class Calls:
    """Clients that call a tool until so many calls were answered. They keep the ids of the answered requests."""

    def __init__(self, nodes: Nodes, wanted: int) -> None:
        self._nodes = nodes
        self._wanted = wanted
        self.answered: set[str] = set()
        self.failed = 0

    def has(self, share: float) -> bool:
        """Whether this share of the calls was answered."""
        return len(self.answered) >= share * self._wanted

    async def run(self) -> None:
        """Call until enough calls were answered."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)) as session:
            await asyncio.gather(*(self._client(session) for _ in range(CLIENTS)))

    async def _client(self, session: aiohttp.ClientSession) -> None:
        while not self.has(1):
            id = uuid4().hex
            params = {"name": "mirror", "arguments": {"text": id}, "_meta": META}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            try:
                url = f"http://127.0.0.1:{self._nodes.port}/mcp"
                async with session.post(url, json=body, headers={**HEADERS, "X-Request-Id": id}) as answer:
                    found = await answer.json()
            except AWAY:
                self.failed += 1
                await asyncio.sleep(0.02)
                continue
            if answer.status == 200 and not found.get("result", {"isError": True}).get("isError"):
                self.answered.add(id)
            else:
                self.failed += 1


def postmaster_of(data: Path) -> int:
    """The process of a data folder's PostgreSQL."""
    return int((data / "postgres" / "postmaster.pid").read_text().split()[0])


async def kill_backend(database_url: str) -> None:
    """Kill a process of PostgreSQL that serves one of the nodes, and wait until PostgreSQL has recovered."""
    async with open_owner(database_url, Options()) as owner:
        pids = [row["pid"] for row in await owner.all(BACKENDS)]
        os.kill(random.choice(pids), signal.SIGKILL)
        with suppress(HoldfastError):
            while True:  # until this connection is closed, the server has not noticed
                await owner.now()
    while True:
        try:
            async with open_owner(database_url, Options()) as owner:
                await owner.now()
            return
        except HoldfastError:  # it is recovering
            await asyncio.sleep(0.05)


@asynccontextmanager
async def opened(database_url: str, folder: Path) -> AsyncGenerator[Engine]:
    """An engine on the database, when it is there again."""
    flags = {"database.url": database_url, "data": folder, "memory.embedding.fetch": False}
    async with open_engine(config=load_config(flags, environ={}, cwd=folder)) as engine:
        yield engine


async def compare(engine: Engine, calling: Calls) -> None:
    """Every answered call has its entry, and the chain verifies."""
    found = await engine.audit.verify()
    async with engine.postgres.owner() as owner:
        rows = await owner.all("select entry ->> 'request_id' as id from audit where outcome = 'done'")
    assert calling.answered - {row["id"] for row in rows} == set()
    assert found.fault is None
    assert found.progress.verified >= len(calling.answered)


async def survives(
    start_node: StartNode, start_worker: StartWorker, database_url: str, folder: Path, *, calls: int, kills: int
) -> None:
    """Kill nodes, processes of PostgreSQL and workers in turn while so many calls run. Compare what was answered."""
    nodes = Nodes(start_node)
    await nodes.begin()
    worker = await asyncio.to_thread(start_worker)
    calling = Calls(nodes, calls)

    async def kill() -> None:
        nonlocal worker
        for number in range(kills):
            while not calling.has((number + 1) / (kills + 2)):  # noqa: ASYNC110 - answers alone tell
                await asyncio.sleep(0.01)
            match number % 3:
                case 0:
                    await nodes.kill_one()
                case 1:
                    await kill_backend(database_url)
                case _:
                    await asyncio.to_thread(worker.kill)
                    worker = await asyncio.to_thread(start_worker)

    async with asyncio.timeout(60 + calls / 20), asyncio.TaskGroup() as group:
        group.create_task(calling.run())
        group.create_task(kill())

    async with opened(database_url, folder) as engine:
        await compare(engine, calling)
    assert calling.failed > 0, "nothing was killed in the middle of anything"


async def test_every_answered_call_has_its_entry_whatever_is_killed(
    start_node: StartNode, start_worker: StartWorker, database_url: str, tmp_path: Path
) -> None:
    await survives(start_node, start_worker, database_url, tmp_path, calls=2000, kills=6)


async def test_every_answered_call_has_its_entry_though_postgresql_itself_is_killed(
    used: Path, processes: Processes, tmp_path: Path
) -> None:
    environment = {
        "HOLDFAST_DATA": str(used),
        "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
        "PYTHONPATH": str(PROGRAMS),
    }

    def start(_: int) -> tuple[Process, int]:
        return started(processes, environment)

    nodes = Nodes(start, 1)
    await nodes.begin()
    postmaster = postmaster_of(used)
    calling = Calls(nodes, 1000)

    async def kill() -> None:
        while not calling.has(0.5):  # noqa: ASYNC110 - answers alone tell
            await asyncio.sleep(0.01)
        os.kill(postmaster, signal.SIGKILL)

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(calling.run())
        group.create_task(kill())

    async with open_engine(config=load_config({"data": used}, environ={}, cwd=tmp_path)) as engine:
        await compare(engine, calling)
        assert postmaster_of(used) != postmaster, "it was killed, and the engine started it again"


@pytest.mark.soak(minutes=15)
async def test_every_one_of_a_hundred_thousand_answered_calls_has_its_entry(
    start_node: StartNode, start_worker: StartWorker, database_url: str, tmp_path: Path
) -> None:
    await survives(start_node, start_worker, database_url, tmp_path, calls=100_000, kills=60)
