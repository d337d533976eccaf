"""Unread records on Kafka, those of foreign producers among them: PostgreSQL knows only of records of ours.

The broker is asked where partitions begin and end, and when the first unread record was published. What it answers
is kept for a moment, so that those who watch many groups cost it little. When it does not answer, PostgreSQL's numbers
are all there is.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.bus.kafka.brokers import Broker, Place, Range
from holdfast.core.errors import HoldfastError

FRESH = 1.0  # seconds that an answer of the broker is good for
AWAY = 10.0  # seconds after which a broker that did not answer is asked again
PATIENCE = 3.0  # seconds that somebody who asks for the lag waits for the broker

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a group is on a partition: `position` in our log, which ends at `end`, and `broker_position` on Kafka."""

    place: Place
    position: int
    end: int
    broker_position: int | None


@dataclass(frozen=True, slots=True)
class Unread:
    """How many records a group has not read, and when the first one that Kafka has was published."""

    lag: int
    oldest: datetime | None


def first_unread(progress: Progress, known: Range) -> int | None:
    """The first record on Kafka that a group has not read; none if nobody can tell: it has read PostgreSQL only."""
    if progress.broker_position is None:
        return known.begin if progress.position == 0 else None
    return max(progress.broker_position, known.begin)


def lag_of(progress: Progress, known: Range | None) -> int:
    """How many records are unread: of ours, or on Kafka, where ours arrive beside those of others."""
    start = None if known is None else first_unread(progress, known)
    on_kafka = 0 if known is None or start is None else known.end - start
    return max(progress.end - progress.position, on_kafka, 0)


class UnreadRecords:
    """Tells how far groups are behind on Kafka."""

    def __init__(self, broker: Broker, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._broker = broker
        self._clock = clock
        self._ranges: dict[Place, tuple[float, Range]] = {}
        self._times: dict[tuple[Place, int], datetime] = {}
        self._away_until = 0.0
        self._asking = asyncio.Lock()

    async def of(self, progress: Sequence[Progress]) -> list[Unread]:
        """How far behind each of these is."""
        ranges = await self.ranges({one.place for one in progress})
        firsts = [self._first_foreign(one, ranges.get(one.place)) for one in progress]
        times = await self._times_of({first for first in firsts if first is not None})
        lags = [lag_of(one, ranges.get(one.place)) for one in progress]
        return [Unread(lag, times.get(first) if first else None) for lag, first in zip(lags, firsts, strict=True)]

    async def ranges(self, places: Collection[Place]) -> Mapping[Place, Range]:
        """Where partitions begin and end on Kafka; those that it cannot tell of are missing."""
        async with self._asking:
            now = self._clock()
            self._ranges = {place: known for place, known in self._ranges.items() if known[0] > now - FRESH}
            missing = [place for place in places if place not in self._ranges]
            if missing and now >= self._away_until:
                try:
                    found = await self._broker.ranges(missing, timeout=PATIENCE)
                    self._ranges |= {place: (self._clock(), known) for place, known in found.items()}
                except HoldfastError as error:
                    self._give_up(error)
            return {place: self._ranges[place][1] for place in places if place in self._ranges}

    @staticmethod
    def _first_foreign(progress: Progress, known: Range | None) -> tuple[Place, int] | None:
        """Where Kafka's first unread record is, if Kafka has more of them than PostgreSQL."""
        if known is None or lag_of(progress, known) <= progress.end - progress.position:
            return None
        start = first_unread(progress, known)
        return None if start is None else (progress.place, start)

    async def _times_of(self, wanted: Collection[tuple[Place, int]]) -> Mapping[tuple[Place, int], datetime]:
        """When records were published; it is read from the record itself, once."""
        async with self._asking:
            self._times = {key: at for key, at in self._times.items() if key in wanted} if wanted else self._times
            # Several groups may be at different places of a partition: each round asks for one of them.
            while missing := dict(key for key in wanted if key not in self._times):
                if self._clock() < self._away_until:
                    break
                try:
                    found = await self._broker.times(missing, timeout=PATIENCE)
                except HoldfastError as error:
                    self._give_up(error)
                    break
                if not found:
                    break
                self._times |= {(place, missing[place]): at for place, at in found.items()}
            return self._times

    def _give_up(self, error: HoldfastError) -> None:
        self._away_until = self._clock() + AWAY
        log.warning("the lag leaves out records of foreign producers: %s", error)
