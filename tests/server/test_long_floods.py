"""The long forms of floods: a server in a process of its own, two minutes each, and what a victim notices of it."""

import asyncio
import re
import statistics
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.memory import Owner
from tests.processes import Processes
from tests.server.conftest import make_key
from tests.server.floods import Target, heavy_searches, locked_appends, slow_chats, slow_logins, sockets
from tests.server.wire import Wire, connect

CALM = 20.0  # seconds
FLOOD = 120.0
PACE = 0.1  # seconds between two requests of the victim
STALL = 3.0  # seconds that no request may take, also when a flood begins
NOISE = 0.05  # seconds that a busy machine may add to anything
ROUNDS = 20  # requests at least, however slow the machine is

PROGRAM = """
import asyncio
from contextlib import AsyncExitStack

from holdfast.core.config import load_config
from holdfast.engine import open_engine
from holdfast.server.port import bind
from holdfast.server.serving import run, serve
from tests.server.floods import app_of

async def main():
    async with open_engine(config=config) as engine, AsyncExitStack() as stack:
        for tenant in ("default", "acme"):
            own = engine.tenant(await engine.tenants.id_of(tenant))
            await stack.enter_async_context(own.serving(app_of(seconds=60)))
        await serve(engine, listener, config, lambda file: print("ready", file.url, flush=True))

config = load_config()
listener = bind(config)
run(main())
"""

Flood = Callable[[Target, int], AbstractAsyncContextManager[Any]]

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.req("SAFE-06")]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a victim notices: how long its requests took, and how many were not answered well."""

    name: str
    seconds: list[float]
    refused: int

    def percentile(self, share: int) -> float:
        return statistics.quantiles(self.seconds, n=100, method="inclusive")[share - 1]

    def __str__(self) -> str:
        p50, p95, p99 = (1000 * self.percentile(share) for share in (50, 95, 99))
        most = 1000 * max(self.seconds)
        return (
            f"{self.name}: p50 {p50:.1f} p95 {p95:.1f} p99 {p99:.1f} most {most:.1f} ms, "
            f"{self.refused} of {len(self.seconds)} refused"
        )


@asynccontextmanager
async def server(processes: Processes, config: Config) -> AsyncGenerator[tuple[int, psutil.Process]]:
    """A server in a process of its own: its port, and the process."""
    assert config.database.url is not None
    root = Path(__file__).parents[2]
    environment = {
        "HOLDFAST_DATABASE_URL": config.database.url.get_secret_value(),
        "HOLDFAST_DATA": str(config.data),
        "HOLDFAST_SERVER__PORT": "0",
        "PYTHONPATH": f"{root}:{root / 'src'}",
    }
    process = processes.start("-c", PROGRAM, environment=environment)
    process.wait_for("ready")
    found = re.search(r":(\d+)\n", process.stdout)
    assert found is not None
    yield int(found[1]), psutil.Process(process.pid)


async def watched(port: int, key: str, seconds: float) -> list[Seen]:
    """What somebody notices who writes and talks to an agent at an even pace."""

    async def write(wire: Wire) -> bool:
        return (await wire.ask("POST", "/api/conversations", key=key, json={})).status == 201

    async def talk(wire: Wire) -> bool:
        said = {"message": "Hello", "agent_id": "support"}
        return (await wire.ask("POST", "/api/chat", key=key, json=said)).status == 200

    return list(await asyncio.gather(*(_series(port, seconds, each) for each in (write, talk))))


async def _series(port: int, seconds: float, work: Callable[[Wire], Awaitable[bool]]) -> Seen:
    took: list[float] = []
    refused = 0
    until = monotonic() + seconds
    async with connect(port) as wire:
        while monotonic() < until or len(took) < ROUNDS:
            began = monotonic()
            refused += not await work(wire)
            took.append(monotonic() - began)
            await asyncio.sleep(PACE)
    return Seen(work.__name__, took, refused)


async def remember(engine: Engine, count: int) -> None:
    """Give the one who floods many memories to search."""
    own = engine.tenant(await engine.tenants.id_of("default"))
    seasons = ("spring", "summer", "autumn", "winter")
    for start in range(0, count, 500):
        texts = [f"note {n}: she drinks tea number {n % 97} in {seasons[n % 4]}" for n in range(start, start + 500)]
        await own.memory.remember_all([(Owner("user", "eve"), text) for text in texts])


@pytest.mark.parametrize(
    ("flood", "count", "times"),
    [
        (slow_logins, 300, 2),
        (sockets, 2000, 2),
        (slow_chats, 2050, 2),
        (locked_appends, 40, 2),
        # These keep as many cores of the database busy as there are: shares bound that, and make no core faster.
        (heavy_searches, 40, 5),
    ],
)
async def test_a_flood_leaves_others_as_quick_as_they_were(
    processes: Processes,
    config: Config,
    no_models: None,
    record_property: Callable[[str, object], None],
    flood: Flood,
    count: int,
    times: int,
) -> None:
    async with open_engine(config=config) as engine:
        await engine.tenants.create("acme")
        eve, victim = await make_key(engine, "eve"), await make_key(engine, "ann", tenant="acme")
        if flood is heavy_searches:
            await remember(engine, 3000)
        async with server(processes, config) as (port, process):
            await watched(port, victim, CALM / 4)  # what is done for the first time is not measured
            calm = await watched(port, victim, CALM)
            before = process.memory_info().rss
            async with asyncio.timeout(10 * FLOOD), flood(Target(port, eve, engine), count):
                seen = await watched(port, victim, FLOOD)
                during = process.memory_info().rss

    record_property("measured", f"memory: {before // 2**20} to {during // 2**20} MB")
    for quiet, loud in zip(calm, seen, strict=True):
        record_property("measured", f"calm   {quiet}\n    flood  {loud}")
    for quiet, loud in zip(calm, seen, strict=True):
        assert loud.refused == 0
        assert max(loud.seconds) < STALL
        assert loud.percentile(95) <= max(times * quiet.percentile(95), quiet.percentile(95) + NOISE)
    assert during - before < 500 * 2**20
