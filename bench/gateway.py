"""What a gateway costs between a caller and a REST back end: ours, beside no gateway and other people's.

`tools/call` of one tool that gets a customer from the back end, from 1, 32 and 256 clients; `tools/list` of 1,000
tools; 50 calls in one JSON-RPC batch beside 50 calls. Back end, clients and each server are processes of their own;
all get the same document, and the same requests wherever they take them. Ours is `holdfast up` with its PostgreSQL, a
JWT on every request, the tool permitted to the token's agent, and its arguments checked; FastMCP's and the SDK's
servers ask for no token; ContextForge has SQLite and its own JWT, and neither limits nor plugins.

`--clients 1,32,256`, `--only WORDS` (ways with one of these words in their names, with commas between them).
`--profile` measures nothing: it prints what our functions take while 32 clients call.
"""

import argparse
import asyncio
import json
import signal
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import uvloop
from measure import Table, arguments, scratch
from measure.helpers import helper
from parts.fronts import (
    CONTEXTFORGE,
    FASTMCP,
    PEERS,
    SDK,
    direct,
    document,
    forge_call,
    is_installed,
    peer,
    rpc_call,
    tool_call,
    tool_list,
    versions,
)
from parts.loading import Ask, Front, Loader, Tree, Turn, loader, port_of
from parts.profiling import report
from parts.standing import Issuer, administered, ours

DIRECT, MCP, RPC = "direct REST", "Holdfast, /mcp", "Holdfast, /rpc"
WAYS = (DIRECT, MCP, RPC, FASTMCP, SDK, CONTEXTFORGE)
OURS: Mapping[str, Callable[[Front], Ask]] = {MCP: tool_call, RPC: rpc_call}
CALL, LIST, BATCH = "tools/call", "tools/list", "JSON-RPC batch"
CLIENTS = (1, 32, 256)
TOOLS, FEW_TOOLS = 1000, 20
CALLS = 50  # in a batch
ROUNDS = 3
LITTLE = 20  # seconds: with less there are few tools, few clients, and nothing that takes long to start
AIM = 500  # µs of CPU for a call
PACKAGES = ("holdfast", "uvicorn", "uvloop", "httptools", "msgspec", "joserfc", "jsonschema-rs", "aiohttp")


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked, by how many clients."""

    what: str
    clients: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured, and for how long."""

    ways: Sequence[str]
    clients: Sequence[int]
    tools: int
    rounds: int
    turn: float  # seconds
    left_out: Sequence[str] = ()

    @classmethod
    def of(cls, seconds: float, clients: Sequence[int], words: Sequence[str]) -> "Plan":
        """A plan that fits into so many seconds."""
        ways = [way for way in WAYS if way == DIRECT or any(word.lower() in way.lower() for word in words)]
        if seconds < LITTLE:
            quick = [way for way in ways if way != CONTEXTFORGE]
            left_out = [way for way in ways if way == CONTEXTFORGE]
            return cls(quick, (1, 8), FEW_TOOLS, 1, seconds / 10, left_out)
        turns = ROUNDS * (len(ways) * len(clients) + 5)
        return cls(ways, clients, TOOLS, ROUNDS, seconds / turns)


class Measuring:
    """Measures one case after the other: `turns` by case and way, and why some ways were left out."""

    def __init__(self, plan: Plan, load: Loader) -> None:
        self._plan = plan
        self._load = load
        self.turns: dict[Case, Mapping[str, Sequence[Turn]]] = {}
        self.left_out = dict.fromkeys(plan.left_out, "it takes too long to start for so few seconds")

    async def add(self, case: Case, asks: Mapping[str, Ask]) -> None:
        """Measure a case; who does not answer rightly even once is left out, and is none of ours."""
        asks = {way: ask for way, ask in asks.items() if await self._is_right(way, ask)}
        if asks:
            self.turns[case] = await self._load.in_turns(
                asks, clients=case.clients, rounds=self._plan.rounds, seconds=self._plan.turn
            )

    async def others(self, stack: AsyncExitStack, document: Path, *, least: int = 1) -> dict[str, Front]:
        """The peers that are installed and have room for so many tools, with those of a document."""
        found: dict[str, Front] = {}
        for way in (way for way in PEERS if way in self._plan.ways):
            if not is_installed(way):
                self.left_out[way] = "not installed here; `make bench` installs it"
            elif least == 1 or way != CONTEXTFORGE:  # which is given one tool
                found[way] = await stack.enter_async_context(peer(way, document))
        return found

    async def _is_right(self, way: str, ask: Ask) -> bool:
        turn = await self._load.put(ask, clients=1, seconds=0)
        if turn.wrong:
            assert way in PEERS, f"{way} answered: {turn.said}"
            self.left_out[way] = f"it answered {turn.said!r:.200}"
        return not turn.wrong


async def measure(plan: Plan, folder: Path) -> Measuring:
    """All cases."""
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(helper("shop"))
        port, _ = await port_of(shop)
        small, large = written(folder, port, 1), written(folder, port, plan.tools)
        measuring = Measuring(plan, await stack.enter_async_context(loader()))
        issuer = await stack.enter_async_context(Issuer().open())
        calls = {DIRECT: direct(Front(port, Tree(shop.pid)))}
        lists: dict[str, Ask] = {}
        last = f"get_things{plan.tools - 1:03}_by_id"
        if not OURS.keys().isdisjoint(plan.ways):
            front = await stack.enter_async_context(ours(folder / "data", large, issuer))
            calls |= {way: make(front) for way, make in OURS.items() if way in plan.ways}
            if RPC in calls:
                batches = {f"{RPC}, {CALLS} in a batch": rpc_call(front, CALLS), f"{RPC}, one by one": rpc_call(front)}
                await measuring.add(Case(BATCH, 1), batches)
            if MCP in calls:
                lists[MCP] = tool_list(administered(front, issuer), last)
        async with AsyncExitStack() as theirs:
            for way, other in (await measuring.others(theirs, small)).items():
                calls[way] = forge_call(other) if way == CONTEXTFORGE else tool_call(other)
            for clients in plan.clients:
                await measuring.add(Case(CALL, clients), calls)
        others = await measuring.others(stack, large, least=plan.tools)
        lists |= {way: tool_list(other, last) for way, other in others.items()}
        await measuring.add(Case(LIST, 1), lists)
    return measuring


def written(folder: Path, port: int, tools: int) -> Path:
    """The back end's document, with so many tools."""
    file = folder / f"document-{tools}" / "document.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(document(port, tools)))
    return file


def table(found: Measuring, plan: Plan) -> Table:
    """The medians, the ratio to direct REST within a round, and the aim."""
    head = ["asked", "clients", "way", "per s", "p50 ms", "p99 ms", "CPU µs", "PostgreSQL's CPU µs", "resident MB"]
    cells = [[*head, "of direct REST's rate", "of direct REST's p50", "aim", "errors"]]
    figures: list[dict[str, object]] = []
    for case, ways in found.turns.items():
        for way, turns in ways.items():
            row = figures_of(turns, ways.get(DIRECT))
            figures.append({"asked": case.what, "clients": case.clients, "way": way, **row})
            shown = [f"{row['rate']:.0f}", f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}", f"{row['cpu_us']:.0f}"]
            shown += [f"{row['database_cpu_us']:.0f}", f"{row['resident_mb']:.0f}"]
            shown += [f"{row['rate_ratio']:.4f}", f"{row['p50_ratio']:.1f}x"] if "rate_ratio" in row else ["", ""]
            kept = "held" if row["cpu_us"] <= AIM else "missed"
            aim = f"≤ {AIM} µs: {kept}" if case.what == CALL and way in OURS else ""
            cells.append([case.what, str(case.clients), way, *shown, aim, f"{row['errors']:.0f}"])
    notes = [
        f"The aim: at most {AIM} µs of CPU for a `tools/call`, with JWT, access and arguments checked. CPU is that of",
        "the server's processes for one call, without the back end's and without PostgreSQL's, which stands beside it;",
        f"of direct REST it is the back end's own. Medians over turns of {plan.turn:.2g} s, {plan.rounds} at most;",
        f"ratios within a round. `tools/list` is of {plan.tools:,} tools; ours has them in all cases, others have one.",
        f"A batch has {CALLS} calls: `per s` and CPU are of a call, p50 and p99 of the whole batch.",
        f"The others: {', '.join(f'{name} {version}' for name, version in versions().items()) or 'none'}.",
        *(f"Left out: {way}: {why}." for way, why in found.left_out.items()),
    ]
    title = "What a gateway costs in front of a REST back end"
    return Table("gateway", title, cells, figures, notes, PACKAGES)


def figures_of(turns: Sequence[Turn], bases: Sequence[Turn] | None) -> dict[str, float]:
    """What is told of one way in one case."""

    def median(of: Callable[[Turn], float]) -> float:
        return statistics.median(map(of, turns))

    row = {
        "rate": median(lambda turn: turn.rate),
        "p50_ms": 1e3 * median(lambda turn: turn.p50),
        "p99_ms": 1e3 * median(lambda turn: turn.p99),
        "cpu_us": 1e6 * median(lambda turn: turn.cpu),
        "database_cpu_us": 1e6 * median(lambda turn: turn.database),
        "resident_mb": turns[-1].resident / 1e6,
        "errors": sum(turn.wrong for turn in turns),
    }
    if bases:
        pairs = [*zip(turns, bases, strict=False)]  # who is slow has fewer rounds
        row["rate_ratio"] = statistics.median(turn.rate / base.rate for turn, base in pairs)
        row["p50_ratio"] = statistics.median(turn.p50 / base.p50 for turn, base in pairs)
    return row


async def profile(folder: Path, seconds: float, way: str) -> None:
    """Print what our functions take while 32 clients call."""
    samples = folder / "samples"
    async with helper("shop") as shop, loader() as load, Issuer().open() as issuer:
        port, _ = await port_of(shop)
        async with ours(folder / "data", written(folder, port, 1), issuer, samples) as front:
            ask = OURS[way](front)
            await load.put(ask, clients=1, seconds=1)
            front.process.send(signal.SIGUSR2)
            turn = await load.put(ask, clients=32, seconds=seconds)
    assert not turn.wrong, turn.said
    print(f"{way}: {turn.calls} calls, {1e6 * turn.cpu:.0f} µs of CPU each")
    print(report(samples, turn.cpu))


def main() -> None:
    """Measure, print, keep."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--clients", default=",".join(map(str, CLIENTS)))
    own.add_argument("--only", default="")
    (asked, sys.argv[1:]) = own.parse_known_args()
    options = arguments(str(__doc__), seconds=150, flags={"--profile": "print what our functions take, and no more"})
    plan = Plan.of(options.seconds, [int(each) for each in asked.clients.split(",")], asked.only.split(","))
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if options.profile:
            way = next((way for way in OURS if way in plan.ways), MCP)
            runner.run(profile(folder, min(10, options.seconds), way))
            return
        found = runner.run(measure(plan, folder))
    table(found, plan).publish(options.results)


if __name__ == "__main__":
    main()
