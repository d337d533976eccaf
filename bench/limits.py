"""What rate limits cost a call: the policy with no limit, with five that match, and with ten thousand of others beside.

In one process, on one server, in turns: calls through the policy of limits alone, one after another, whose tool does
nothing. Figures are medians over the rounds, without the cost of the same calls without the policy.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import uvloop
from measure import Table, arguments, scratch

from holdfast.core.config import load_config
from holdfast.core.limits import QuotaSettings
from holdfast.engine import Engine, open_engine
from holdfast.execution.outcomes import Outcome
from holdfast.execution.policies.limits import LimitPolicy
from holdfast.skills.tool import Tool

ROUNDS = 9
OTHERS = 10_000
AIM = 15  # µs of CPU for a call with five limits
FIVE = tuple(
    f"{subject}: 900000000 requests per minute"
    for subject in ("tenant", "each user", "each agent", "tool track", "each user of each tool")
)
MANY = (*FIVE, *(f"user user-{number}: 60 requests per minute" for number in range(OTHERS)))
CASES = {"no limit": (), "five limits": FIVE, f"five limits, and {OTHERS:,} of other users": MANY}
DONE = Outcome("done", "", None, None, 0.0)


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A call of a tool."""

    tool: Tool
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    user: str | None = "ann"
    agent: str | None = "support"
    key: UUID | None = None
    actor: str | None = None
    scopes: frozenset[str] = frozenset({"read", "write"})
    resumed: bool = False
    notes: list[str] = field(default_factory=list[str])


async def proceed(call: object) -> Outcome:
    """Do nothing."""
    return DONE


async def cost(one: Callable[[], Awaitable[object]], seconds: float) -> float:
    """The µs of CPU of a call, without what the server's connection and other tasks wait."""
    calls, end = 0, time.perf_counter() + seconds
    began = time.process_time()
    while time.perf_counter() < end:
        for _ in range(100):
            await one()
        calls += 100
        await asyncio.sleep(0)
    return (time.process_time() - began) / calls * 1e6


async def measured(engine: Engine, seconds: float) -> float:
    """The median cost of the policy."""
    call, policy = PlainCall(Tool("track", "Where a parcel is.", {})), LimitPolicy(engine.quotas)
    await cost(lambda: policy.apply(call, proceed), seconds)
    found = [
        await cost(lambda: policy.apply(call, proceed), seconds) - await cost(lambda: proceed(call), seconds)
        for _ in range(ROUNDS)
    ]
    return statistics.median(found)


async def measure(folder: Path, seconds: float) -> dict[str, float]:
    """All cases."""
    found: dict[str, float] = {}
    turn = seconds / len(CASES) / (2 * ROUNDS + 1)
    flags = {"data": folder / "data", "memory.embedding.fetch": False}
    config = load_config(flags, environ={}, cwd=folder)
    for case, limits in CASES.items():
        changed = config.model_copy(update={"quotas": QuotaSettings(limits=limits)})
        async with open_engine(config=changed) as engine:
            found[case] = await measured(engine, turn)
    return found


def main() -> None:
    """Measure, print, keep."""
    options = arguments(str(__doc__), seconds=30)
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure(folder, options.seconds))
    cells = [["limits", "CPU µs", "aim"]]
    for case, cpu in found.items():
        cells.append([case, f"{cpu:.2f}", f"≤ {AIM} µs: {'held' if cpu <= AIM else 'missed'}"])
    notes = [f"Medians over {ROUNDS} turns. The process leases tokens in the background meanwhile."]
    figures = [{"limits": case, "cpu_us": cpu} for case, cpu in found.items()]
    Table("limits", "What rate limits cost a call", cells, figures, notes, ("holdfast",)).publish(options.results)


if __name__ == "__main__":
    main()
