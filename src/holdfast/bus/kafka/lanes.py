"""Lanes: queues of records that a Kafka client has read, one per partition, emptied round-robin.

The client has one queue for all partitions. A partition that is far behind would fill it, and a record of another
partition would wait for thousands of its records. The lanes are bounded by a number of records and of bytes.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.bus.kafka.brokers import Place
from holdfast.bus.kafka.record_format import IncomingRecord

IncomingBatch = list[tuple[Place, int, IncomingRecord]]  # with the generation of the partition


@dataclass(slots=True)
class Lane:
    """The queue of one partition."""

    records: deque[tuple[int, IncomingRecord]] = field(default_factory=deque)
    bytes: int = 0


class Lanes:
    """The queues of partitions. Empty ones are removed."""

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._lanes: dict[Place, Lane] = {}  # in round-robin order
        self._number = self._bytes = 0

    def __len__(self) -> int:
        return self._number

    def __contains__(self, place: Place) -> bool:
        return place in self._lanes

    def add(self, place: Place, generation: int, arrival: IncomingRecord) -> None:
        """Append a record to the queue of its partition."""
        lane = self._lanes.setdefault(place, Lane())
        lane.records.append((generation, arrival))
        lane.bytes += arrival.bytes
        self._number += 1
        self._bytes += arrival.bytes

    def drop(self, places: Iterable[Place]) -> None:
        """Remove partitions that another consumer owns or that are read again."""
        for place in places:
            lane = self._lanes.pop(place, Lane())
            self._number -= len(lane.records)
            self._bytes -= lane.bytes

    def take(self, most: int, most_bytes: int) -> IncomingBatch:
        """Return the next records, one of each partition in turn. A single record may exceed `most_bytes`."""
        return [*self._turns(most, most_bytes)]

    def _turns(self, most: int, most_bytes: int) -> Iterator[tuple[Place, int, IncomingRecord]]:
        taken = size = 0
        while self._lanes and taken < most and size < most_bytes:
            place = next(iter(self._lanes))
            lane = self._lanes.pop(place)
            generation, arrival = lane.records.popleft()
            lane.bytes -= arrival.bytes
            if lane.records:
                self._lanes[place] = lane  # after the others
            self._number -= 1
            self._bytes -= arrival.bytes
            taken += 1
            size += arrival.bytes
            yield place, generation, arrival

    @property
    def is_full(self) -> bool:
        """Whether the queues together have reached a limit."""
        return self._number >= self._most or self._bytes >= self._most_bytes

    def has_its_share(self, place: Place) -> bool:
        """Whether a partition holds its share. The shares leave room for one more partition."""
        return self._fills(place, 1 + len(self._lanes))

    def is_low(self, place: Place) -> bool:
        """Whether a partition holds less than a quarter of its share, so that the client should read on."""
        return not self._fills(place, 4 * (1 + len(self._lanes)))

    def _fills(self, place: Place, part: int) -> bool:
        lane = self._lanes.get(place)
        if lane is None:
            return False
        return len(lane.records) >= max(self._most // part, 1) or lane.bytes >= max(self._most_bytes // part, 1)
