"""Loads: the same request again and again from so many clients, and what it takes of the server."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import psutil
from measure.flows import Measured
from measure.helpers import Helper, helper

WARM = 0.3  # seconds before anything is measured
LONG = 5.0  # seconds that the last answers may take, if there is to be another round
DATABASE = "postgres"


class Tree:
    """A process and all that it has started, without a database server."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def cpu(self) -> float:
        """Seconds so far."""
        return sum(sum(process.cpu_times()[:2]) for process in self._members())

    def resident(self) -> int:
        """Bytes of memory."""
        return sum(process.memory_info().rss for process in self._members())

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process itself."""
        self._process.send_signal(number)

    def _members(self) -> Sequence[psutil.Process]:
        found = [self._process]
        with suppress(psutil.NoSuchProcess):
            found += [child for child in self._process.children(recursive=True) if child.name() != DATABASE]
        return found


@dataclass(frozen=True, slots=True)
class Front:
    """A server: its port, its process, the token it is shown, its database; `awake` lets it run while it is asked."""

    port: int
    process: Tree
    token: str | None = None
    database: Measured | None = None
    awake: Callable[[], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to a server, how many calls it stands for, and what its answer contains for each of them.

    `upstream` tells how many requests have come to the server behind it.
    """

    front: Front
    request: bytes
    expect: str
    calls: int = 1
    upstream: Callable[[], Awaitable[int]] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of a load: right answers and wrong ones. CPU and requests to the upstream are of one call.

    Times in seconds, `resident` in bytes.
    """

    calls: int
    wrong: int
    said: str
    seconds: float
    p50: float
    p95: float
    p99: float
    cpu: float
    database: float
    resident: int
    upstream: float = 0.0

    @property
    def rate(self) -> float:
        """Calls in a second."""
        return self.calls / self.seconds


class Loader:
    """Puts loads on servers."""

    def __init__(self, process: Helper) -> None:
        self._process = process

    async def put(self, ask: Ask, *, clients: int, seconds: float) -> Turn:
        """So many clients ask for so many seconds, and until all are answered."""
        front = ask.front
        load = {"port": front.port, "request": ask.request.decode("latin-1"), "expect": ask.expect, "times": ask.calls}
        with front.awake():
            self._process.ask(json.dumps({**load, "clients": clients, "seconds": seconds}))
            said = await self._process.answer()
            assert said == "open", said
            upstream = await _requests(ask)
            cpu, database = front.process.cpu(), _cpu(front.database)
            self._process.ask("begin")
            told = json.loads(await self._process.answer())
            cpu, database = front.process.cpu() - cpu, _cpu(front.database) - database
            resident = front.process.resident()
            upstream = await _requests(ask) - upstream
        calls = told.pop("calls") * ask.calls
        each = max(1, calls)
        shares = {"cpu": cpu / each, "database": database / each, "upstream": upstream / each}
        return Turn(calls, resident=resident, **shares, **told)

    async def in_turns(
        self, asks: Mapping[str, Ask], *, clients: int, rounds: int, seconds: float
    ) -> dict[str, list[Turn]]:
        """Every way in every round, so many seconds each; each round begins with another way.

        A way that cannot even answer each client once in the time of `LONG` has one round.
        """
        found: dict[str, list[Turn]] = {way: [] for way in asks}
        for ask in asks.values():
            await self.put(ask, clients=min(clients, 8), seconds=min(WARM, seconds))
        for number in range(rounds):
            first = number % len(asks)
            for way in [*asks][first:] + [*asks][:first]:
                if found[way] and found[way][-1].seconds > seconds + LONG:
                    continue
                found[way].append(await self.put(asks[way], clients=clients, seconds=seconds))
        return found


@asynccontextmanager
async def loader() -> AsyncGenerator[Loader]:
    """A process with clients."""
    async with helper("loader") as process:
        yield Loader(process)


def _cpu(measured: Measured | None) -> float:
    return 0.0 if measured is None else measured.cpu()


async def _requests(ask: Ask) -> int:
    return 0 if ask.upstream is None else await ask.upstream()


async def port_of(process: Helper) -> tuple[int, str | None]:
    """Where a program listens, and the token that it wants."""
    said = await state_of(process)
    return said["port"], said["token"]


async def requests_of(process: Helper) -> int:
    """How many requests have come to a program."""
    return (await state_of(process))["requests"]


async def state_of(process: Helper) -> Any:
    """What a program says of itself."""
    process.ask("where")
    async with asyncio.timeout(60):
        return json.loads(await process.answer())
