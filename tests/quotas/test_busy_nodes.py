"""Limits that processes share while all of them are busy, and while one of them is killed."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import pytest

from holdfast.engine import Engine
from tests.processes import Process, Processes

pytestmark = pytest.mark.req("MCP-07")

CLIENTS = 32  # of a node
ROOT = Path(__file__).parents[2]

StartNode = Callable[[str, float], Process]


@pytest.fixture
def node(processes: Processes, database_url: str, tmp_path: Path) -> StartNode:
    """Start a node, whose calls begin when `go` is called."""

    def start(gate: str, seconds: float) -> Process:
        folder = tmp_path / f"{gate}-data"
        folder.mkdir(exist_ok=True)
        words = ("tests.quotas.busy_node", database_url, str(folder), str(tmp_path / gate), str(CLIENTS), str(seconds))
        return processes.start("-m", *words, environment={"PYTHONPATH": str(ROOT)})

    return start


async def admitted(nodes: list[Process], gate: Path, seconds: float, *, kill_after: float | None = None) -> int:
    """How many calls the nodes admit; the first one is killed after a time."""
    for each in nodes:
        await asyncio.to_thread(each.wait_for, "ready")
    gate.touch()
    if kill_after is not None:
        await asyncio.sleep(kill_after)
        await asyncio.to_thread(nodes[0].kill)
    for each in nodes[0 if kill_after is None else 1 :]:
        await asyncio.to_thread(each.wait_for, "ended", timeout=60 + seconds)
    return sum(int(re.findall(r"admitted (\d+)", each.stdout)[-1]) for each in nodes)


async def limit(engine: Engine, rate: int) -> None:
    """Limit the tenant to so many calls a second."""
    await (await engine.quotas.limits()).set(f"tenant: {rate} requests per second, burst {rate}", by="boss")


@pytest.mark.parametrize(("kill_after", "tolerance"), [(None, 0.05), (2.0, 0.1)])
async def test_two_busy_nodes_admit_what_the_limit_allows(
    engine: Engine,
    node: StartNode,
    tmp_path: Path,
    kill_after: float | None,
    tolerance: float,
    record_property: Callable[[str, object], None],
) -> None:
    rate, seconds = 200, 4.0
    await limit(engine, rate)
    allowed = rate * (seconds + 1)

    found = await admitted([node("go", seconds), node("go", seconds)], tmp_path / "go", seconds, kill_after=kill_after)

    record_property("measured", f"{found} of {allowed:.0f} calls: {100 * found / allowed:.1f}%; killed: {kill_after}")
    assert (1 - tolerance) * allowed <= found <= (1 + tolerance) * allowed


@pytest.mark.soak(minutes=2)
@pytest.mark.parametrize(("kill_after", "tolerance"), [(None, 0.05), (15.0, 0.1)])
async def test_two_nodes_hold_half_of_what_they_can_do_for_half_a_minute(
    engine: Engine,
    node: StartNode,
    tmp_path: Path,
    kill_after: float | None,
    tolerance: float,
    record_property: Callable[[str, object], None],
) -> None:
    began = perf_counter()
    capacity = await admitted([node("try", 5), node("try", 5)], tmp_path / "try", 5) / 5
    rate, seconds = int(capacity / 2), 30.0
    await limit(engine, rate)
    allowed = rate * (seconds + 1)

    found = await admitted([node("go", seconds), node("go", seconds)], tmp_path / "go", seconds, kill_after=kill_after)

    what = f"{found} of {allowed:.0f} calls at {rate} per second, half of {capacity:.0f}: {100 * found / allowed:.1f}%"
    record_property("measured", f"{what}; killed: {kill_after}; in {perf_counter() - began:.0f} s")
    assert (1 - tolerance) * allowed <= found <= (1 + tolerance) * allowed
