"""Limits that processes share while all of them are busy, and while one of them is killed."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import perf_counter

import pytest

from holdfast.engine import Engine
from tests.clock import Clock
from tests.processes import Process, Processes
from tests.quotas.nodes import Nodes

pytestmark = pytest.mark.req("MCP-07")

CLIENTS = 32  # of a node
ROOT = Path(__file__).parents[2]


class BusyNodes:
    """Nodes of one run, and the gates between their steps."""

    def __init__(self, processes: Processes, url: str, folder: Path) -> None:
        self._processes = processes
        self._url = url
        self._folder = folder
        self._started: list[Path] = []

    def start(self, *steps: str) -> Process:
        """Start a node."""
        folder = self._folder / f"node-{len(self._started)}"
        folder.mkdir(parents=True)
        self._started.append(folder)
        words = ("tests.quotas.busy_node", self._url, str(folder), str(self._folder), str(CLIENTS), *steps)
        return self._processes.start("-m", *words, environment={"PYTHONPATH": str(ROOT)})

    async def open_gate(self, step: int, *nodes: Process) -> None:
        """Let nodes begin a step when all of them are ready for it."""
        for node in nodes:
            await asyncio.to_thread(node.wait_for, f"ready for {step}\n")
        (self._folder / str(step)).touch()

    @property
    def admitted(self) -> int:
        """How many calls all nodes have admitted."""
        return sum((folder / "admitted").stat().st_size for folder in self._started)


MakeNodes = Callable[[str], BusyNodes]


@pytest.fixture
def busy(processes: Processes, database_url: str, tmp_path: Path) -> MakeNodes:
    """Make the nodes of a run."""
    return lambda name: BusyNodes(processes, database_url, tmp_path / name)


async def ended(*nodes: Process, seconds: float = 0) -> None:
    """Wait until nodes have done their steps."""
    for node in nodes:
        await asyncio.to_thread(node.wait_for, "ended", timeout=120 + seconds)


async def limit(engine: Engine, rule: str) -> None:
    """Set a limit."""
    await (await engine.quotas.limits()).set(rule, by="boss")


# The short forms: a bucket that is not filled again meanwhile, so that the speed of the machine does not matter.


async def test_two_busy_nodes_admit_what_the_limit_allows(
    engine: Engine, busy: MakeNodes, record_property: Callable[[str, object], None]
) -> None:
    allowed = 4000
    await limit(engine, f"tenant: {allowed} requests per month")
    nodes = busy("run")
    pair = nodes.start("refused"), nodes.start("refused")

    await nodes.open_gate(1, *pair)
    await ended(*pair)

    record_property("measured", f"{nodes.admitted} of {allowed} calls")
    assert 0.95 * allowed <= nodes.admitted <= allowed + 1  # a second of the month may pass


async def test_a_busy_node_that_is_killed_loses_less_than_a_tenth(
    engine: Engine, busy: MakeNodes, record_property: Callable[[str, object], None]
) -> None:
    allowed = 4000
    await limit(engine, f"tenant: {allowed} requests per month")
    nodes = busy("run")
    killed, other = nodes.start("calls:300", "kill"), nodes.start("calls:1000", "refused")

    await nodes.open_gate(1, killed, other)
    await asyncio.to_thread(killed.wait)
    await nodes.open_gate(2, other)
    await ended(other)

    record_property("measured", f"{nodes.admitted} of {allowed} calls")

    assert 0.9 * allowed <= nodes.admitted <= allowed + 1


async def test_the_slots_of_a_killed_node_are_free_after_their_lease(
    engine: Engine, busy: MakeNodes, nodes: Nodes, clock: Clock
) -> None:
    await limit(engine, "tool track: 3 concurrent calls")
    run = busy("run")
    killed = run.start("hold:3", "kill")
    await run.open_gate(1, killed)
    await asyncio.to_thread(killed.wait)

    before = await (await nodes.make()).tries(1)
    await clock.advance(timedelta(seconds=11))

    assert (before, await (await nodes.make()).tries(1)) == (0, 1)


@pytest.mark.soak(minutes=2)
@pytest.mark.parametrize(("kill_after", "tolerance"), [(None, 0.05), (15.0, 0.1)])
async def test_two_nodes_hold_half_of_what_they_can_do_for_half_a_minute(
    engine: Engine,
    busy: MakeNodes,
    kill_after: float | None,
    tolerance: float,
    record_property: Callable[[str, object], None],
) -> None:
    async def calls(name: str, seconds: float, kill_after: float | None = None) -> int:
        nodes = busy(name)
        first, second = nodes.start(f"seconds:{seconds}"), nodes.start(f"seconds:{seconds}")
        await nodes.open_gate(1, first, second)
        if kill_after is not None:
            await asyncio.sleep(kill_after)
            await asyncio.to_thread(first.kill)
        await ended(*([second] if kill_after else [first, second]), seconds=seconds)
        return nodes.admitted

    began = perf_counter()
    capacity = await calls("without a limit", 5) / 5
    rate, seconds = int(capacity / 2), 30.0
    await limit(engine, f"tenant: {rate} requests per second, burst {rate}")
    allowed = rate * (seconds + 1)

    found = await calls("with a limit", seconds, kill_after)

    what = f"{found} of {allowed:.0f} calls at {rate} per second, half of {capacity:.0f}: {100 * found / allowed:.1f}%"
    record_property("measured", f"{what}; killed: {kill_after}; in {perf_counter() - began:.0f} s")
    assert (1 - tolerance) * allowed <= found <= (1 + tolerance) * allowed
