"""What a gateway costs between a caller and a REST back end: ours, beside no gateway and other people's.

`tools/call` of one tool that gets a customer from the back end, from 1, 32 and 256 clients; `tools/list` of 1,000
tools; 50 calls in one JSON-RPC batch beside 50 calls. Back end, clients and each server are processes of their own;
all get the same document, and the same requests wherever they take them. Ours is `holdfast up` with its PostgreSQL, a
JWT on every request, the tool permitted to the token's agent, its arguments checked, an audit whose commit each answer
waits for, five limits, 20 access rules that could match (and 1,000 of other users), and a signed identity for the back
end. `ungoverned` is the same without these last four. Before anything is measured, some calls show that all four are at
work in the one, and none in the other. FastMCP's and the SDK's servers ask for no token; ContextForge has SQLite and
its own JWT, and neither limits nor plugins.

`--clients 1,32,256`, `--only WORDS` (ways with one of these words in their names, with commas between them).
`--profile` measures nothing: it prints what our functions take while 32 clients call.
"""

import asyncio
import json
import statistics
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import uvloop
from measure import Table, scratch
from measure.helpers import helper
from parts.cases import Case, Measuring, Plan, figures_of, options_of
from parts.fronts import (
    CONTEXTFORGE,
    FASTMCP,
    SDK,
    TOOL,
    direct,
    document,
    forge_call,
    rpc_call,
    tool_call,
    tool_list,
    versions,
)
from parts.governing import IDENTITY, UNGOVERNED, check, governance
from parts.loading import Ask, Front, Tree, loader, port_of
from parts.profiling import report, sample
from parts.standing import Issuer, administered, ours

DIRECT, MCP, RPC = "direct REST", "Holdfast, /mcp", "Holdfast, /rpc"
BARE_MCP, BARE_RPC = "Holdfast, /mcp, ungoverned", "Holdfast, /rpc, ungoverned"
BARE: Mapping[str, str] = {MCP: BARE_MCP, RPC: BARE_RPC}
WAYS = (DIRECT, MCP, BARE_MCP, RPC, BARE_RPC, FASTMCP, SDK, CONTEXTFORGE)
OURS: Mapping[str, Callable[[Front], Ask]] = {MCP: tool_call, RPC: rpc_call}
CALL, LIST, BATCH = "tools/call", "tools/list", "JSON-RPC batch"
TOOLS, FEW_TOOLS = 1000, 20
CALLS = 50  # in a batch
OTHERS = 5  # turns of a round that are no calls
AIM = 600  # µs of CPU for a call with all governance
AIM_ALONE = 700  # µs, from one client
MORE = 1.25  # of the CPU without governance
PACKAGES = ("holdfast", "uvicorn", "uvloop", "httptools", "msgspec", "joserfc", "jsonschema-rs", "aiohttp")


async def measure(plan: Plan, folder: Path) -> Measuring:
    """All cases."""
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(helper("shop"))
        port, _ = await port_of(shop)
        tools = tools_of(plan)
        small, large = written(folder, port, 1), written(folder, port, tools)
        measuring = Measuring(plan, await stack.enter_async_context(loader()))
        issuer = await stack.enter_async_context(Issuer().open())
        calls = {DIRECT: direct(Front(port, Tree(shop.pid)))}
        lists: dict[str, Ask] = {}
        last = f"get_things{tools - 1:03}_by_id"
        if not OURS.keys().isdisjoint(plan.ways):
            source = source_of(large)
            bare = ours(folder / "bare", [source], issuer, tools=[TOOL], settings=UNGOVERNED)
            governed = {**source, "identity": IDENTITY}
            full = ours(folder / "data", [governed], issuer, tools=[TOOL], requests=governance())
            front, ungoverned = await stack.enter_async_context(full), await stack.enter_async_context(bare)
            await check(front, issuer, shop, measuring.loader, governed=True)
            await check(ungoverned, issuer, shop, measuring.loader, governed=False)
            for way, make in OURS.items():
                calls |= {way: make(front)} if way in plan.ways else {}
                calls |= {BARE[way]: make(ungoverned)} if BARE[way] in plan.ways else {}
            if RPC in calls:
                batches = {f"{RPC}, {CALLS} in a batch": rpc_call(front, CALLS), f"{RPC}, one by one": rpc_call(front)}
                await measuring.add(Case(BATCH, 1), batches)
            if MCP in calls:
                lists[MCP] = tool_list(administered(front, issuer), last)
        async with AsyncExitStack() as theirs:
            for way, other in (await measuring.others(theirs, small, (FASTMCP, SDK, CONTEXTFORGE))).items():
                calls[way] = forge_call(other) if way == CONTEXTFORGE else tool_call(other)
            for clients in plan.clients:
                await measuring.add(Case(CALL, clients), calls)
        others = await measuring.others(stack, large, (FASTMCP, SDK))  # ContextForge is given one tool
        lists |= {way: tool_list(other, last) for way, other in others.items()}
        await measuring.add(Case(LIST, 1), lists)
    return measuring


def tools_of(plan: Plan) -> int:
    """How many tools there are."""
    return FEW_TOOLS if plan.is_short else TOOLS


def source_of(file: Path) -> Mapping[str, Any]:
    """The source of a document, with all its operations."""
    return {"name": "shop", "document": file.read_text(), "choice": {"everything": True}}


def written(folder: Path, port: int, tools: int) -> Path:
    """The back end's document, with so many tools."""
    file = folder / f"document-{tools}" / "document.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(document(port, tools)))
    return file


def table(found: Measuring, plan: Plan) -> Table:
    """The medians, the ratio to direct REST within a round, and the aim."""
    head = ["asked", "clients", "way", "per s", "p50 ms", "p99 ms", "CPU µs", "PostgreSQL's CPU µs", "resident MB"]
    cells = [[*head, "of direct REST's rate", "of direct REST's p50", "aim", "of CPU ungoverned", "errors"]]
    figures: list[dict[str, object]] = []
    for case, ways in found.turns.items():
        for way, turns in ways.items():
            row = figures_of(turns, ways.get(DIRECT))
            figures.append({"asked": case.what, "clients": case.clients, "way": way, **row})
            shown = [f"{row['rate']:.0f}", f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}", f"{row['cpu_us']:.0f}"]
            shown += [f"{row['database_cpu_us']:.0f}", f"{row['resident_mb']:.0f}"]
            shown += [f"{row['rate_ratio']:.4f}", f"{row['p50_ratio']:.1f}x"] if "rate_ratio" in row else ["", ""]
            most = AIM_ALONE if case.clients == 1 else AIM
            kept = "held" if row["cpu_us"] <= most else "missed"
            aim = f"≤ {most} µs: {kept}" if case.what == CALL and way in OURS else ""
            added = ""
            if (without := ways.get(BARE.get(way, ""))) is not None:
                ratios = [turn.cpu / base.cpu for turn, base in zip(turns, without, strict=False) if base.cpu]
                more = statistics.median(ratios or [0.0])  # in a very short run, the clock may count nothing
                figures[-1]["of_ungoverned"] = more
                added = f"{more:.2f}x (≤ {MORE}x: {'held' if more <= MORE else 'missed'})"
            cells.append([case.what, str(case.clients), way, *shown, aim, added, f"{row['errors']:.0f}"])
    notes = [
        f"The aim: at most {AIM} µs of CPU for a `tools/call` ({AIM_ALONE} from one client) with all governance: JWT,",
        "permissions, arguments, audit, five limits, 20 access rules and 1,000 of others, a signed identity for the",
        f"back end; and at most {MORE}x of the CPU without the last four, in the same round. CPU is that of",
        "the server's processes for one call, without the back end's and without PostgreSQL's, which stands beside it;",
        f"of direct REST it is the back end's own. Medians over turns of {plan.turn:.2g} s, {plan.rounds} at most;",
        f"ratios within a round. `tools/list` is of {tools_of(plan):,} tools; ours always has them, others have one.",
        f"A batch has {CALLS} calls: `per s` and CPU are of a call, p50 and p99 of the whole batch.",
        f"The others: {', '.join(f'{name} {version}' for name, version in versions().items()) or 'none'}.",
        *(f"Left out: {way}: {why}." for way, why in found.left_out.items()),
    ]
    title = "What a gateway costs in front of a REST back end"
    return Table("gateway", title, cells, figures, notes, PACKAGES)


async def profile(folder: Path, seconds: float, way: str) -> None:
    """Print what our functions take while 32 clients call."""
    samples = folder / "samples"
    async with helper("shop") as shop, loader() as load, Issuer().open() as issuer:
        port, _ = await port_of(shop)
        source = {**source_of(written(folder, port, 1)), "identity": IDENTITY}
        full = ours(folder / "data", [source], issuer, tools=[TOOL], requests=governance(), samples=samples)
        async with full as front:
            turn = await sample(load, OURS[way](front), seconds)
    print(report(way, samples, turn))


def main() -> None:
    """Measure, print, keep."""
    options, ways, clients = options_of(str(__doc__), WAYS, seconds=150, base=DIRECT)
    plan = Plan.of(options.seconds, ways, clients, others=OTHERS)
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if options.profile:
            way = next((way for way in OURS if way in plan.ways), MCP)
            runner.run(profile(folder, min(10, options.seconds), way))
            return
        found = runner.run(measure(plan, folder))
    table(found, plan).publish(options.results)


if __name__ == "__main__":
    main()
