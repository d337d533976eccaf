"""Lanes: what a Kafka client has read and nobody has taken yet, a queue for each partition, taken from in turns.

The client has one queue for all partitions, and one that is far behind would fill it: a record of another partition
would wait for thousands of its records. Bounded, by a number of records and of bytes.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.bus.kafka.brokers import Place
from holdfast.bus.kafka.wire import Arrival

Handed = list[tuple[Place, int, Arrival]]  # with the generation of the partition


@dataclass(slots=True)
class Lane:
    """The records of one partition."""

    records: deque[tuple[int, Arrival]] = field(default_factory=deque)
    bytes: int = 0


class Lanes:
    """Queues of partitions; those that have nothing are not kept."""

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._lanes: dict[Place, Lane] = {}  # in the order of their turns
        self._number = self._bytes = 0

    def __len__(self) -> int:
        return self._number

    def __contains__(self, place: Place) -> bool:
        return place in self._lanes

    def add(self, place: Place, generation: int, arrival: Arrival) -> None:
        """Put a record behind those of its partition."""
        lane = self._lanes.setdefault(place, Lane())
        lane.records.append((generation, arrival))
        lane.bytes += arrival.bytes
        self._number += 1
        self._bytes += arrival.bytes

    def drop(self, places: Iterable[Place]) -> None:
        """Forget partitions: they are another's, or are read again."""
        for place in places:
            lane = self._lanes.pop(place, Lane())
            self._number -= len(lane.records)
            self._bytes -= lane.bytes

    def take(self, most: int, most_bytes: int) -> Handed:
        """The next records, one of each partition in turn; one comes however large it is."""
        return [*self._turns(most, most_bytes)]

    def _turns(self, most: int, most_bytes: int) -> Iterator[tuple[Place, int, Arrival]]:
        taken = size = 0
        while self._lanes and taken < most and size < most_bytes:
            place = next(iter(self._lanes))
            lane = self._lanes.pop(place)
            generation, arrival = lane.records.popleft()
            lane.bytes -= arrival.bytes
            if lane.records:
                self._lanes[place] = lane  # behind the others
            self._number -= 1
            self._bytes -= arrival.bytes
            taken += 1
            size += arrival.bytes
            yield place, generation, arrival

    @property
    def is_full(self) -> bool:
        """Whether all of them together hold as much as they may."""
        return self._number >= self._most or self._bytes >= self._most_bytes

    def has_its_share(self, place: Place) -> bool:
        """Whether a partition holds as much as leaves the same for each other one, and for one that has nothing yet."""
        return self._fills(place, 1 + len(self._lanes))

    def is_low(self, place: Place) -> bool:
        """Whether a partition holds so little that the client should read on."""
        return not self._fills(place, 4 * (1 + len(self._lanes)))

    def _fills(self, place: Place, part: int) -> bool:
        lane = self._lanes.get(place)
        if lane is None:
            return False
        return len(lane.records) >= max(self._most // part, 1) or lane.bytes >= max(self._most_bytes // part, 1)
