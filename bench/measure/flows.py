"""Flows: ways to carry many records, measured in turns, and what their users wait."""

import gc
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, Self

import psutil

from measure.rounds import Case, Spent


class Measured(Protocol):
    """Processes whose CPU time counts."""

    def cpu(self) -> float:
        """Seconds so far."""
        ...


class Program:
    """A process with all its threads."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._process = psutil.Process(pid)

    def cpu(self) -> float:
        """Seconds so far."""
        times = self._process.cpu_times()
        return times.user + times.system


class Meter:
    """Seconds that pass while it is entered: of this process's CPU and its helpers', of the servers', of the clock."""

    def __init__(self, *servers: Measured, helpers: Sequence[Measured] = ()) -> None:
        self._servers = servers
        self._helpers = helpers
        self._spent = (0.0, 0.0, 0.0)

    def __enter__(self) -> Self:
        gc.collect()
        self._start = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        client, server, wall = (now - then for now, then in zip(self._now(), self._start, strict=True))
        self._spent = client, server, wall

    def per(self, operations: int) -> Spent:
        """What one of so many operations took."""
        client, server, wall = self._spent
        return Spent(client / operations, server / operations, wall / operations)

    def _now(self) -> tuple[float, float, float]:
        client = time.process_time() + sum(helper.cpu() for helper in self._helpers)
        return client, sum(server.cpu() for server in self._servers), time.perf_counter()


# Carries about so many records, enters the meter meanwhile, and says how many they were.
Flow = Callable[[Meter, int], Awaitable[int]]


async def in_turns(
    cases: Mapping[Case, Mapping[str, Flow]], *, rounds: int, records: int, meter: Meter
) -> dict[Case, dict[str, list[Spent]]]:
    """The costs of every way in every case; each round begins with another way."""
    found: dict[Case, dict[str, list[Spent]]] = {case: {way: [] for way in ways} for case, ways in cases.items()}
    for case, ways in cases.items():
        for flow in ways.values():  # connections, prepared statements and compiled code are made before
            await flow(meter, max(1, records // 10))
        for number in range(rounds):
            first = number % len(ways)
            for way in [*ways][first:] + [*ways][:first]:
                carried = await ways[way](meter, records)
                found[case][way].append(meter.per(carried))
    return found


def percentile(times: Sequence[float], share: float) -> float:
    """What this share of the times is not above."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]
