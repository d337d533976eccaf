"""Cases: what many clients ask, the ways that are measured, for how long, and the figures of each way."""

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from measure import arguments

from parts.fronts import CONTEXTFORGE, FEDERATED, PEERS, is_installed, peer
from parts.loading import Ask, Front, Loader, Turn

CLIENTS = (1, 32, 256)
ROUNDS = 3
SHORT = 20  # seconds: with less there are few clients, and nothing that takes long to start
SLOW_STARTERS = (CONTEXTFORGE, FEDERATED)


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
    rounds: int
    turn: float  # seconds
    is_short: bool = False
    left_out: Sequence[str] = ()

    @classmethod
    def of(
        cls, seconds: float, ways: Sequence[str], clients: Sequence[int], *, each: int = 1, others: int = 0
    ) -> "Plan":
        """A plan that fits into so many seconds: `each` is how often a way is measured, `others` what comes besides."""
        if seconds < SHORT:
            quick = [way for way in ways if way not in SLOW_STARTERS]
            left_out = [way for way in ways if way in SLOW_STARTERS]
            return cls(quick, (1, 8), 1, seconds / 10, is_short=True, left_out=left_out)
        return cls(ways, clients, ROUNDS, seconds / ROUNDS / (len(ways) * len(clients) * each + others))


def options_of(
    description: str, ways: Sequence[str], *, seconds: float, base: str
) -> tuple[argparse.Namespace, Sequence[str], Sequence[int]]:
    """The options of such a benchmark, its chosen ways and the one that all are compared to, and how many clients."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--clients", default=",".join(map(str, CLIENTS)))
    own.add_argument("--only", default="")
    (asked, sys.argv[1:]) = own.parse_known_args()
    options = arguments(description, seconds=seconds, flags={"--profile": "print what our functions take, and no more"})
    words = asked.only.lower().split(",")
    chosen = [way for way in ways if way == base or any(word in way.lower() for word in words)]
    return options, chosen, [int(each) for each in asked.clients.split(",")]


class Measuring:
    """Measures one case after the other: `turns` by case and way, and why some ways were left out.

    A wrong answer of ours is an error: refused calls cost little.

    `load` is the load average of the machine at the beginning.
    """

    def __init__(self, plan: Plan, loader: Loader) -> None:
        self.plan = plan
        self.load = os.getloadavg()[0]
        self.turns: dict[Case, Mapping[str, Sequence[Turn]]] = {}
        self.left_out = dict.fromkeys(plan.left_out, "it takes too long to start for so few seconds")
        self.loader = loader

    async def add(self, case: Case, asks: Mapping[str, Ask]) -> None:
        """Measure a case; who does not answer rightly even once is left out, and is none of ours."""
        asks = {way: ask for way, ask in asks.items() if await self._is_right(way, ask)}
        if asks:
            found = await self.loader.in_turns(
                asks, clients=case.clients, rounds=self.plan.rounds, seconds=self.plan.turn
            )
            for way, turns in found.items():
                said = next((turn.said for turn in turns if turn.wrong), None)
                assert way in PEERS or said is None, f"{way} answered {case.clients} clients: {said}"
            self.turns[case] = found

    async def others(self, stack: AsyncExitStack, document: Path, ways: Sequence[str]) -> dict[str, Front]:
        """Those of these peers that are installed and in the plan, in front of what a document describes."""
        found: dict[str, Front] = {}
        for way in (way for way in ways if way in self.plan.ways):
            if is_installed(way):
                found[way] = await stack.enter_async_context(peer(way, document))
            else:
                self.left_out[way] = "not installed here; `make bench` installs it"
        return found

    async def _is_right(self, way: str, ask: Ask) -> bool:
        turn = await self.loader.put(ask, clients=1, seconds=0)
        if turn.wrong:
            assert way in PEERS, f"{way} answered: {turn.said}"
            self.left_out[way] = f"it answered {turn.said!r:.200}"
        return not turn.wrong


def figures_of(turns: Sequence[Turn], bases: Sequence[Turn] | None) -> dict[str, float]:
    """What is told of one way in one case."""

    def median(of: Callable[[Turn], float]) -> float:
        return statistics.median(map(of, turns))

    row = {
        "rate": median(lambda turn: turn.rate),
        "p50_ms": 1e3 * median(lambda turn: turn.p50),
        "p95_ms": 1e3 * median(lambda turn: turn.p95),
        "p99_ms": 1e3 * median(lambda turn: turn.p99),
        "cpu_us": 1e6 * median(lambda turn: turn.cpu),
        "database_cpu_us": 1e6 * median(lambda turn: turn.database),
        "upstream": median(lambda turn: turn.upstream),
        "resident_mb": turns[-1].resident / 1e6,
        "errors": sum(turn.wrong for turn in turns),
    }
    if bases:
        pairs = [*zip(turns, bases, strict=False)]  # who is slow has fewer rounds
        row["rate_ratio"] = statistics.median(turn.rate / base.rate for turn, base in pairs)
        row["p50_ratio"] = statistics.median(turn.p50 / base.p50 for turn, base in pairs)
    return row
