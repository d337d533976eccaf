"""Ways that take turns: what one operation costs, and how long each call took."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from measure.flows import Measured, Meter
from measure.rounds import Server, Spent

LEAST = 0.3  # seconds for one way in one round: where there is less time, there are fewer rounds

# Calls again and again for so many seconds, once at least, and says how long each call took.
Calls = Callable[[float], Awaitable[Sequence[float]]]


@dataclass(frozen=True, slots=True)
class Way:
    """Calls of so many operations each, and the processes besides this one that do them, awake in their turn."""

    calls: Calls
    operations: int = 1
    helpers: Sequence[Measured] = ()
    awake: Callable[[], AbstractAsyncContextManager[object]] = nullcontext


@dataclass(frozen=True, slots=True)
class Turn:
    """What an operation cost in one turn, and how long each call took."""

    spent: Spent
    times: Sequence[float]


def again_and_again(call: Callable[[], Awaitable[object]]) -> Calls:
    """One call after the other."""

    async def calls(seconds: float) -> Sequence[float]:
        times: list[float] = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            await call()
            times.append(time.perf_counter() - start)
        return times

    return calls


async def take_turns(
    ways: Mapping[str, Way], *, rounds: int, seconds: float, server: Server, warm: float = 0.3
) -> dict[str, list[Turn]]:
    """Every way in every round, in at most so many; each round begins with another way."""
    for way in ways.values():  # connections, prepared statements and caches are made before anything is measured
        async with way.awake():
            if warm:
                await way.calls(warm)
    found: dict[str, list[Turn]] = {name: [] for name in ways}
    rounds = max(1, min(rounds, int(seconds / len(ways) / LEAST)))
    for number in range(rounds):
        first = number % len(ways)
        for name in [*ways][first:] + [*ways][:first]:
            meter = Meter(server, helpers=ways[name].helpers)
            async with ways[name].awake():
                with meter:
                    times = await ways[name].calls(seconds / rounds / len(ways))
            found[name].append(Turn(meter.per(len(times) * ways[name].operations), times))
    return found
