"""What a gateway costs between a caller and another MCP server: ours, beside no gateway and other people's.

`tools/call` of one tool, from 1, 32 and 256 clients. The MCP server behind the gateways counts the requests that come
to it. It is one of little cost, so that it is not what is measured: once with all versions of the protocol, once with
those before 2026-07-28 only, which need a session. To see that the figures do not depend on it, the official SDK's
server takes its place. Server, clients and each gateway are processes of their own.

Ours is `holdfast up` with its PostgreSQL, a JWT on every request, the tool permitted to the token's agent, and its
arguments checked; once more with a secret that is sent to the server, and removed from what it returns. FastMCP's proxy
asks for no token, and is asked in the version of the server. ContextForge has SQLite and its own JWT, and neither
limits nor plugins. It is asked in a session of its caller: only for those does it keep its sessions with servers.

`--clients 1,32,256`, `--only WORDS` (ways with one of these words in their names, with commas between them).
`--profile` measures nothing: it prints what our functions take while 32 clients call.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import uvloop
from measure import Table, scratch
from parts.cases import Case, Measuring, Plan, figures_of, options_of
from parts.fronts import FEDERATED, PROXY, TOOL, forge_call, legacy_call, tool_call, versions
from parts.loading import Ask, loader
from parts.profiling import report, sample
from parts.standing import Issuer, ours
from parts.upstreams import LEGACY, MODERN, SDK, Upstream, can_run, upstream

DIRECT, PLAIN, WITH_SECRET = "direct", "Holdfast, /mcp", "Holdfast, with a secret"
WAYS = (DIRECT, PLAIN, WITH_SECRET, PROXY, FEDERATED)
UPSTREAMS = (MODERN, LEGACY, SDK)
OURS = {PLAIN: "shop", WITH_SECRET: "safe"}  # the ways, and how their sources are named
SECRETS = {"shop-token": "0123456789abcdef-of-nobody"}
HEADERS = {"Authorization": "Bearer {{secret:shop-token}}"}
SESSION = "bench"
AIM, REQUESTS = 1200, 1  # µs of CPU, and requests to the server, for a call
PACKAGES = ("holdfast", "uvicorn", "uvloop", "httptools", "msgspec", "joserfc", "jsonschema-rs", "aiohttp")


async def measure(plan: Plan, folder: Path) -> Measuring:
    """All cases."""
    async with AsyncExitStack() as stack:
        measuring = Measuring(plan, await stack.enter_async_context(loader()))
        issuer = await stack.enter_async_context(Issuer().open())
        servers = list[Upstream]()
        for name in UPSTREAMS:
            if why := reason_against(name, plan):
                measuring.left_out[name] = why
            else:
                servers.append(await stack.enter_async_context(upstream(name, folder)))
        sources = {(server.name, way): source_of(server, way) for server in servers for way in OURS if way in plan.ways}
        tools = {key: tool_of(source) for key, source in sources.items()}
        calls = dict[tuple[str, str], Ask]()
        if sources:
            made = ours(folder / "data", [*sources.values()], issuer, tools=[*tools.values()], secrets=SECRETS)
            gateway = await stack.enter_async_context(made)
            calls = {key: tool_call(gateway, tool) for key, tool in tools.items()}
        for server in servers:
            asks = {DIRECT: server.direct()}
            asks |= {way: call for (name, way), call in calls.items() if name == server.name}
            async with AsyncExitStack() as theirs:
                asks |= await others(measuring, theirs, server, folder)
                for clients in plan.clients:
                    counted = {way: server.behind(ask) for way, ask in asks.items()}
                    await measuring.add(Case(server.name, clients), counted)
    return measuring


def reason_against(name: str, plan: Plan) -> str:
    """Why a server is left out; "" if it is not."""
    if not can_run(name):
        return "not installed here; `make bench` installs it"
    return "it takes too long to start for so few seconds" if plan.is_short and name == SDK else ""


async def others(measuring: Measuring, stack: AsyncExitStack, server: Upstream, folder: Path) -> Mapping[str, Ask]:
    """What the peers are asked in front of a server."""
    document = folder / "document.json"
    document.write_text(json.dumps({"servers": [{"url": server.url}]}))
    ways = (PROXY, FEDERATED) if server.name == MODERN else (PROXY,)
    asks = dict[str, Ask]()
    for way, front in (await measuring.others(stack, document, ways)).items():
        if way == FEDERATED:
            asks[way] = forge_call(front, f"shop_{TOOL}", session=SESSION)
        else:
            asks[way] = legacy_call(front) if server.name == LEGACY else tool_call(front)
    return asks


def source_of(server: Upstream, way: str) -> Mapping[str, Any]:
    """The source of a server for one of our ways to call it."""
    source = {"name": f"{OURS[way]}-{UPSTREAMS.index(server.name)}", "kind": "mcp", "url": server.url}
    return {**source, "headers": HEADERS} if way == WITH_SECRET else source


def tool_of(source: Mapping[str, Any]) -> str:
    """The name of the tool of a source."""
    return f"{source['name']}_{TOOL}"


def table(found: Measuring, plan: Plan) -> Table:
    """The medians, the ratios to a call without a gateway within a round, and the aims."""
    head = ["server", "clients", "way", "per s", "p50 ms", "p95 ms", "CPU µs", "PostgreSQL's CPU µs", "resident MB"]
    cells = [[*head, "of the direct rate", "of the direct p50", "requests per call", "aims", "errors"]]
    figures: list[dict[str, object]] = []
    for case, ways in found.turns.items():
        for way, turns in ways.items():
            row = figures_of(turns, ways.get(DIRECT))
            figures.append({"server": case.what, "clients": case.clients, "way": way, **row})
            shown = [f"{row['rate']:.0f}", f"{row['p50_ms']:.2f}", f"{row['p95_ms']:.2f}", f"{row['cpu_us']:.0f}"]
            shown += [f"{row['database_cpu_us']:.0f}", f"{row['resident_mb']:.0f}", f"{row['rate_ratio']:.4f}"]
            shown += [f"{row['p50_ratio']:.1f}x", f"{row['upstream']:.3f}", aims(row) if way in OURS else ""]
            if not row["rate"]:  # no call got its answer in time, and there is nothing to divide by
                shown = ["0", *["-"] * (len(shown) - 2), ""]
            cells.append([case.what, str(case.clients), way, *shown, f"{row['errors']:.0f}"])
    notes = [
        f"The aims: at most {AIM:,} µs of CPU for a `tools/call`, with JWT, access and arguments checked, and exactly",
        f"{REQUESTS} request to the server behind. CPU is that of the gateway's processes for one call, without that",
        "server's and without PostgreSQL's, which stands beside it; of a direct call it is its own. Requests are",
        "counted by the server while many calls are made, whatever they are: calls, lists, handshakes. Medians over",
        f"turns of {plan.turn:.2g} s, {plan.rounds} at most; ratios within a round. The machine's load average was",
        f"{found.load:.1f} at the beginning: others that work at the same time make each call take more CPU.",
        f"The others: {', '.join(f'{name} {version}' for name, version in versions().items()) or 'none'}.",
        *(f"Left out: {way}: {why}." for way, why in found.left_out.items()),
    ]
    return Table("federation", "What a gateway costs in front of an MCP server", cells, figures, notes, PACKAGES)


def aims(row: Mapping[str, float]) -> str:
    """Whether both aims were reached."""
    cpu = "held" if row["cpu_us"] <= AIM else "missed"
    requests = "held" if abs(row["upstream"] - REQUESTS) < 0.0005 else "missed"
    return f"≤ {AIM:,} µs: {cpu}; {REQUESTS} request: {requests}"


async def profile(folder: Path, seconds: float, way: str) -> None:
    """Print what our functions take while 32 clients call."""
    samples = folder / "samples"
    async with upstream(MODERN, folder) as server, loader() as load, Issuer().open() as issuer:
        source = source_of(server, way)
        tool = tool_of(source)
        made = ours(folder / "data", [source], issuer, tools=[tool], secrets=SECRETS, samples=samples)
        async with made as front:
            turn = await sample(load, server.behind(tool_call(front, tool)), seconds)
    print(report(way, samples, turn))


def main() -> None:
    """Measure, print, keep."""
    options, ways, clients = options_of(str(__doc__), WAYS, seconds=150, base=DIRECT)
    plan = Plan.of(options.seconds, ways, clients, each=len(UPSTREAMS))
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if options.profile:
            way = next((way for way in OURS if way in plan.ways), PLAIN)
            runner.run(profile(folder, min(10, options.seconds), way))
            return
        found = runner.run(measure(plan, folder))
    table(found, plan).publish(options.results)


if __name__ == "__main__":
    main()
