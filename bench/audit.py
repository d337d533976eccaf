"""What the audit adds to a tool call: two gateways that differ in `audit.enabled` alone, in turns.

`tools/call` of one tool that gets a customer from a REST back end, from 1, 32 and 256 clients. Each gateway is
`holdfast up` with its own PostgreSQL, which commits to disk. With the audit, each answer waits for the commit of its
entry, which calls that end at the same time share.

`--clients 1,32,256`.
"""

import asyncio
import statistics
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop
from gateway import source_of, written
from measure import Table, scratch
from measure.helpers import helper
from parts.cases import Case, Measuring, Plan, figures_of, options_of
from parts.fronts import TOOL, tool_call
from parts.governing import UNGOVERNED
from parts.loading import loader, port_of
from parts.standing import Issuer, ours

ON, OFF = "with the audit", "without"
CALL = "tools/call"


async def measure(plan: Plan, folder: Path) -> Measuring:
    """All cases."""
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(helper("shop"))
        port, _ = await port_of(shop)
        source = source_of(written(folder, port, 1))
        measuring = Measuring(plan, await stack.enter_async_context(loader()))
        issuer = await stack.enter_async_context(Issuer().open())
        bare = await stack.enter_async_context(
            ours(folder / "off", [source], issuer, tools=[TOOL], settings=UNGOVERNED)
        )
        full = await stack.enter_async_context(ours(folder / "on", [source], issuer, tools=[TOOL]))
        for clients in plan.clients:
            await measuring.add(Case(CALL, clients), {OFF: tool_call(bare), ON: tool_call(full)})
    return measuring


def table(found: Measuring, plan: Plan) -> Table:
    """The medians, and what the audit adds within a round."""
    cells = [["clients", "way", "per s", "p50 ms", "p99 ms", "CPU µs", "PostgreSQL's CPU µs", "added p50 ms", "errors"]]
    figures: list[dict[str, object]] = []
    for case, ways in found.turns.items():
        for way, turns in ways.items():
            row = figures_of(turns, None)
            figures.append({"clients": case.clients, "way": way, **row})
            shown = [f"{row['rate']:.0f}", f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}"]
            shown += [f"{row['cpu_us']:.0f}", f"{row['database_cpu_us']:.0f}"]
            added = ""
            if way == ON:
                pairs = zip(turns, ways[OFF], strict=False)
                more = 1e3 * statistics.median(turn.p50 - base.p50 for turn, base in pairs)
                figures[-1]["added_p50_ms"] = more
                added = f"{more:.2f}"
            cells.append([str(case.clients), way, *shown, added, f"{row['errors']:.0f}"])
    notes = [
        f"Medians over {plan.rounds} turns of {plan.turn:.2g} s each; what is added is compared within a round.",
        "CPU is that of the server's processes for one call. At 32 and 256 clients the machine is saturated: there,",
        "p50 says how long calls queue for the CPU, and grows with all that a call costs.",
    ]
    return Table(
        "audit", "What the audit adds to a tool call", cells, figures, notes, ("holdfast", "uvicorn", "uvloop")
    )


def main() -> None:
    """Measure, print, keep."""
    options, _, clients = options_of(str(__doc__), (OFF, ON), seconds=90, base=OFF)
    plan = Plan.of(options.seconds, (OFF, ON), clients)
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure(plan, folder))
    table(found, plan).publish(options.results)


if __name__ == "__main__":
    main()
