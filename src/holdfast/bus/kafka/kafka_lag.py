"""The lag of groups on Kafka, including records of foreign producers, which PostgreSQL does not know.

It asks the broker where partitions begin and end, and when the first unread record was published. The answers are
cached briefly, so that monitoring many groups costs little. If the broker does not answer, only PostgreSQL's numbers
are used.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.bus.kafka.brokers import Broker, Place, Range
from holdfast.core.errors import HoldfastError

FRESH = 1.0  # seconds for which an answer of the broker is cached
AWAY = 10.0  # seconds until a broker that did not answer is asked again
PATIENCE = 3.0  # seconds that a query of the lag waits for the broker

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """A group's progress on a partition: `position` in our log, which ends at `end`, and `broker_position` on Kafka."""

    place: Place
    position: int
    end: int
    broker_position: int | None


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The number of unread records. If Kafka has more than PostgreSQL, `oldest` is the time of its first one."""

    lag: int
    oldest: datetime | None


def first_unread(progress: GroupProgress, known: Range) -> int | None:
    """Return the offset of the first unread record on Kafka; None if unknown: the group has read only PostgreSQL."""
    if progress.broker_position is None:
        return known.begin if progress.position == 0 else None
    return max(progress.broker_position, known.begin)


def lag_of(progress: GroupProgress, known: Range | None) -> int:
    """Return the number of unread records in our log, or on Kafka (with foreign records) if there are more."""
    start = None if known is None else first_unread(progress, known)
    on_kafka = 0 if known is None or start is None else known.end - start
    return max(progress.end - progress.position, on_kafka, 0)


class KafkaLag:
    """Computes how far groups are behind on Kafka."""

    def __init__(self, broker: Broker, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._broker = broker
        self._clock = clock
        self._ranges: dict[Place, tuple[float, Range]] = {}
        self._times: dict[tuple[Place, int], datetime] = {}
        self._unavailable_until = 0.0
        self._lock = asyncio.Lock()

    async def of(self, progress: Sequence[GroupProgress]) -> list[PartitionLag]:
        """Return the unread records for each of these."""
        ranges = await self.ranges({one.place for one in progress})
        firsts = [self._first_foreign(one, ranges.get(one.place)) for one in progress]
        times = await self._times_of({first for first in firsts if first is not None})
        lags = [lag_of(one, ranges.get(one.place)) for one in progress]
        return [PartitionLag(lag, times.get(first) if first else None) for lag, first in zip(lags, firsts, strict=True)]

    async def ranges(self, places: Collection[Place]) -> Mapping[Place, Range]:
        """Return where partitions begin and end on Kafka. Those without an answer are missing."""
        async with self._lock:
            now = self._clock()
            self._ranges = {place: known for place, known in self._ranges.items() if known[0] > now - FRESH}
            missing = [place for place in places if place not in self._ranges]
            if missing and now >= self._unavailable_until:
                try:
                    found = await self._broker.ranges(missing, timeout=PATIENCE)
                    self._ranges |= {place: (self._clock(), known) for place, known in found.items()}
                except HoldfastError as error:
                    self._give_up(error)
            return {place: self._ranges[place][1] for place in places if place in self._ranges}

    @staticmethod
    def _first_foreign(progress: GroupProgress, known: Range | None) -> tuple[Place, int] | None:
        """Return the place of Kafka's first unread record, if Kafka has more of them than PostgreSQL."""
        if known is None or lag_of(progress, known) <= progress.end - progress.position:
            return None
        start = first_unread(progress, known)
        return None if start is None else (progress.place, start)

    async def _times_of(self, wanted: Collection[tuple[Place, int]]) -> Mapping[tuple[Place, int], datetime]:
        """Return when records were published. Each record is read once for that."""
        async with self._lock:
            self._times = {key: at for key, at in self._times.items() if key in wanted} if wanted else self._times
            # Groups may be at different offsets of a partition: each round asks for one of them.
            while missing := dict(key for key in wanted if key not in self._times):
                if self._clock() < self._unavailable_until:
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
        self._unavailable_until = self._clock() + AWAY
        log.warning("the lag does not include records of foreign producers: %s", error)
