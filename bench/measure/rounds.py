"""Ways of doing the same, measured in turns: what one operation costs the client, the server, and the one who waits."""

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

LEAST = 0.05  # seconds for one way in one round: where there is less time, there are fewer rounds

Operation = Callable[[], Awaitable[object]]
Case = TypeVar("Case", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds for one operation: of this process's CPU, of the server's, and of the clock."""

    client: float
    server: float
    wall: float


class Server:
    """The server's processes, and the CPU time they have used."""

    def __init__(self, cluster: Path) -> None:
        self._process = psutil.Process(int((cluster / "postmaster.pid").read_text().split()[0]))

    def cpu(self) -> float:
        """Seconds so far, with those of processes that have ended."""
        ended = self._process.cpu_times()
        nanoseconds = 0
        for process in [self._process, *self._process.children()]:
            with suppress(FileNotFoundError, ProcessLookupError):
                nanoseconds += int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0])
        return nanoseconds / 1e9 + ended.children_user + ended.children_system


async def spend(operations: Sequence[Operation], seconds: float, server: Server) -> Spent:
    """What one operation costs when there is a task for each of these."""
    done = 0

    async def work(operation: Operation) -> None:
        nonlocal done
        while True:  # once at least, however short the time
            await operation()
            done += 1
            if time.perf_counter() > end:
                return

    gc.collect()
    served, client, wall = server.cpu(), time.process_time(), time.perf_counter()
    end = wall + seconds
    await asyncio.gather(*map(work, operations))
    wall, client = time.perf_counter() - wall, time.process_time() - client
    return Spent(client / done, (server.cpu() - served) / done, wall / done)


async def in_rounds(
    cases: Mapping[Case, Mapping[str, Sequence[Operation]]], *, rounds: int, seconds: float, server: Server
) -> dict[Case, dict[str, list[Spent]]]:
    """The costs of every way in every case, in at most so many rounds; each round begins with another way."""
    for ways in cases.values():  # connections and prepared statements are made before anything is measured
        for operations in ways.values():
            await spend(operations, min(0.1, seconds / 100), server)
    found: dict[Case, dict[str, list[Spent]]] = {case: {way: [] for way in ways} for case, ways in cases.items()}
    cells = sum(map(len, cases.values()))
    rounds = max(1, min(rounds, int(seconds / cells / LEAST)))
    share = seconds / rounds / cells
    for number in range(rounds):
        for case, ways in cases.items():
            first = number % len(ways)
            for way in [*ways][first:] + [*ways][:first]:
                found[case][way].append(await spend(ways[way], share, server))
    return found


def ratio(costs: Sequence[Spent], bases: Sequence[Spent]) -> float:
    """How many times the others' time these take: the median of the ratios within a round."""
    return statistics.median(cost.wall / base.wall for cost, base in zip(costs, bases, strict=True))


def medians(costs: Sequence[Spent]) -> Spent:
    """The median of each cost."""
    return Spent(
        statistics.median(cost.client for cost in costs),
        statistics.median(cost.server for cost in costs),
        statistics.median(cost.wall for cost in costs),
    )
