"""What one call of a REST back end costs as a tool, beside bare clients and LangChain's tools; 1 and 16 at once.

A GET with an argument in the path and one in the query, and a POST of a small JSON; both are answered with a small
JSON by a process that does nothing else. All ways are in this process, in turns; each round begins with another way.
CPU is this process's. Figures are medians over the rounds; a ratio is taken within a round.
"""

import asyncio
import statistics
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

import uvloop
from measure import Table, arguments
from measure.flows import Flow, Meter, in_turns
from measure.helpers import helper
from measure.rounds import Spent, medians
from parts.loading import port_of
from peers import enter_environment
from peers.callers import BARE, METHODS, OURS, OURS_EXECUTOR, WAYS, Call, Method, is_installed

AT_ONCE = (1, 16)
ROUNDS = 5
AIM = 2.0
DEAREST = 0.004  # seconds that the dearest call takes, about: of it come the calls of a turn
PACKAGES = ("holdfast", "aiohttp", "uvloop", "httpx", "langchain-community", "msgspec", "yarl")

Case = tuple[Method, int]
Found = Mapping[Case, Mapping[str, Sequence[Spent]]]


def flow(call: Call, method: Method, at_once: int) -> Flow:
    """Calls, so many at once."""

    async def carry(meter: Meter, calls: int) -> int:
        each = max(1, calls // at_once)

        async def work() -> None:
            for _ in range(each):
                said = await call(method)
                assert said["id"] == 42, said

        with meter:
            await asyncio.gather(*(work() for _ in range(at_once)))
        return each * at_once

    return carry


async def measure(seconds: float) -> Found:
    """The cost of every way's calls."""
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(helper("shop"))
        port, _ = await port_of(shop)
        url = f"http://127.0.0.1:{port}"
        calls = {
            way: await stack.enter_async_context(opens(url)) for way, opens in WAYS.items() if is_installed(way)
        }  # fmt: skip
        cases: dict[Case, dict[str, Flow]] = {
            (method, at_once): {way: flow(call, method, at_once) for way, call in calls.items()}
            for method in METHODS
            for at_once in AT_ONCE
        }
        turns = ROUNDS * len(cases) * len(calls)
        records = max(AT_ONCE[-1], int(seconds / turns / DEAREST))
        return await in_turns(cases, rounds=ROUNDS, records=records, meter=Meter(shop))


def table(found: Found) -> Table:
    """The medians, and how many times the bare client's CPU each way takes."""
    cells = [["call", "at once", "way", "µs per call", "CPU µs per call", "of bare aiohttp's time", "of its CPU"]]
    figures: list[dict[str, object]] = []
    for (method, at_once), ways in found.items():
        for way, spent in ways.items():
            median = medians(spent)
            time = statistics.median(own.wall / bare.wall for own, bare in zip(spent, ways[BARE], strict=True))
            cpu = statistics.median(own.client / bare.client for own, bare in zip(spent, ways[BARE], strict=True))
            row = {"wall_us": 1e6 * median.wall, "cpu_us": 1e6 * median.client, "time_ratio": time, "cpu_ratio": cpu}
            figures.append({"call": method, "at_once": at_once, "way": way, **row})
            shown = [f"{row['wall_us']:.0f}", f"{row['cpu_us']:.0f}", f"{time:.2f}x", f"{cpu:.2f}x"]
            cells.append([method, str(at_once), way, *shown])
    notes = [
        f"The aim: at most {AIM:g}x the CPU of bare aiohttp. `{OURS}` makes the request of the tool's description and",
        "checked arguments, judges the address, bounds and reads the answer; with a secret, this is shown to the back",
        f"end and looked for in the answer. `{OURS_EXECUTOR}` adds the limits of time and output, and what the model",
        "reads; asking the registry and writing down the call need a database, and are not in it.",
        "LangChain's tools open a connection for each call; the others keep theirs.",
    ]
    missing = [way for way in WAYS if not is_installed(way)]
    if missing:
        notes.append(f"Left out: {'; '.join(missing)}: not installed here; `make bench` installs them.")
    return Table(
        name="execute",
        title="What a call of a REST back end costs",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=PACKAGES,
    )


def main() -> None:
    """Measure, print, keep."""
    enter_environment("execute")
    options = arguments(str(__doc__), seconds=90)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure(options.seconds))
    table(found).publish(options.results)


if __name__ == "__main__":
    main()
