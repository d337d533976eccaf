"""A Kafka consumer in its own thread, which hands records over to the event loop.

The client's asyncio API takes 100 µs per record; a thread that hands over batches takes 2 µs. The number of records in
flight to the event loop is bounded. The others wait in `Lanes`, where partitions take turns. A partition that has its
share is paused while another one is empty, because the other's records may be behind its own in the client's queue.
When all have their share, the thread waits for room. (Pausing drops records that the client has already fetched.)
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from holdfast.bus.kafka.brokers import Place, bad_client_settings
from holdfast.bus.kafka.lanes import IncomingBatch, Lanes
from holdfast.bus.kafka.record_format import IncomingRecord

AHEAD, MIN_AHEAD = 10, 2000  # limit of the lanes: a multiple of the records in flight, and a minimum
REST = 0.05  # seconds that the thread waits for a record before it checks its orders

log = logging.getLogger(__name__)


class StartPosition(NamedTuple):
    """Where to start reading a partition, and after how many seconds. The generation of a partition only grows."""

    offset: int
    generation: int
    wait: float = 0.0


class Bridge:
    """Runs the client in a thread. Orders go to the thread, records come back."""

    def __init__(
        self, settings: Mapping[str, Any], on_arrival: Callable[[IncomingBatch], None], *, most: int, most_bytes: int
    ) -> None:
        self._settings = dict(settings)
        self._on_arrival = on_arrival  # called in the event loop, with records and the generations of their partitions
        self._most = most
        self._most_bytes = most_bytes
        self._loop = asyncio.get_running_loop()
        self._requests: queue.SimpleQueue[Callable[[Consumer], None]] = queue.SimpleQueue()
        self._outstanding = self._outstanding_bytes = 0  # handed over and not yet taken; guarded by `_room`
        self._room = threading.Condition()
        self._stopping = threading.Event()
        self._lanes = Lanes(most=max(AHEAD * most, MIN_AHEAD), most_bytes=most_bytes)
        self._assigned: set[Place] = set()
        self._generations: dict[Place, int] = {}
        self._waiting: set[Place] = set()  # paused until their wait is over
        self._paused: set[Place] = set()  # paused because they have their share
        self.failure: BaseException | None = None  # the error that ended the thread
        try:
            self._consumer = Consumer(self._settings)
        except KafkaException as error:
            raise bad_client_settings(error) from error
        self._thread = threading.Thread(target=self._run, name="holdfast kafka consumer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    async def stop(self) -> None:
        """Stop the thread, and wait until it has ended."""
        with self._room:
            self._stopping.set()
            self._room.notify()
        await asyncio.to_thread(self._thread.join)

    def note_taken(self, number: int, size: int) -> None:
        """Note that records were taken, so that more can be handed over. `size` is in bytes."""
        with self._room:
            self._outstanding -= number
            self._outstanding_bytes -= size
            self._room.notify()

    def begin(self, places: Mapping[Place, StartPosition]) -> None:
        """Start reading partitions."""

        def request(consumer: Consumer) -> None:
            self._assigned.update(places)
            self._generations.update({place: start.generation for place, start in places.items()})
            later = {place: start for place, start in places.items() if start.wait}
            try:
                consumer.incremental_assign([TopicPartition(*place, start.offset) for place, start in places.items()])
            except KafkaException as error:
                raise RuntimeError(f"could not assign the partitions {list(places)}: {error}") from error
            # The client may remember a pause from an earlier assignment of the partition.
            consumer.resume([TopicPartition(*place) for place in places if place not in later])
            consumer.pause([TopicPartition(*place) for place in later])
            self._waiting.update(later)
            for place, start in later.items():
                self._request_later(start.wait, self._resumption(place, start.generation))

        self._requests.put(request)

    def end(self, places: Sequence[Place]) -> None:
        """Stop reading these partitions."""

        def request(consumer: Consumer) -> None:
            self._lanes.drop(places)
            for known in (self._assigned, self._waiting, self._paused):
                known.difference_update(places)
            consumer.incremental_unassign([TopicPartition(*place) for place in places])

        self._requests.put(request)

    def seek(self, place: Place, offset: int, generation: int, wait: float) -> None:
        """Read a partition again from an offset, after `wait` seconds. The records have the new generation."""

        def request(consumer: Consumer) -> None:
            if place not in self._assigned or generation < self._generations[place]:
                return  # the order is for an earlier assignment
            self._generations[place] = generation
            self._lanes.drop([place])
            self._waiting.add(place)
            try:
                consumer.pause([TopicPartition(*place)])
                consumer.seek(TopicPartition(*place, offset))
                self._request_later(wait, self._resumption(place, generation))
            except KafkaException:  # the client has not started to read it yet
                self._request_later(REST, request)

        self._requests.put(request)

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit offsets to the broker, only for its own tools: nothing depends on them."""
        if offsets:
            places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
            self._requests.put(lambda consumer: consumer.commit(offsets=places, asynchronous=True))

    def _resumption(self, place: Place, generation: int) -> Callable[[Consumer], None]:
        def resume(consumer: Consumer) -> None:
            if self._generations.get(place) == generation and place in self._assigned:
                self._waiting.discard(place)
                self._paused.discard(place)
                consumer.resume([TopicPartition(*place)])

        return resume

    def _request_later(self, wait: float, request: Callable[[Consumer], None]) -> None:
        self._loop.call_soon_threadsafe(self._loop.call_later, wait, self._requests.put, request)

    def _run(self) -> None:
        consumer = self._consumer
        try:
            while not self._stopping.is_set():
                self._run_requests(consumer)
                self._wait_for_room()
                if self._may_read():
                    self._read(consumer)
                self._regulate(consumer)  # before records are taken from a partition that has its share
                self._hand_over()
        except BaseException as error:
            log.exception("the Kafka consumer has stopped")
            self.failure = error
        finally:
            consumer.close()

    def _read(self, consumer: Consumer) -> None:
        # One by one: asked for many, the client waits until it has them all, and does not limit their size.
        # Reads all that the client has, not only what there is room for: the next may be of another partition.
        begun = len(self._lanes)
        while len(self._lanes) < begun + MIN_AHEAD:
            message: Any = consumer.poll(0 if self._lanes else REST)
            if message is None:
                break
            if message.error() is not None:
                _report(message.error())
                continue
            place = message.topic(), message.partition()
            arrival = IncomingRecord(
                message.partition(),
                message.offset(),
                message.key(),
                message.value(),
                message.headers() or [],
                message.timestamp()[1],
            )
            if place in self._assigned:
                self._lanes.add(place, self._generations[place], arrival)
                if self._lanes.is_full or self._lanes.has_its_share(place):
                    break

    def _hand_over(self) -> None:
        with self._room:
            number, size = self._most - self._outstanding, self._most_bytes - self._outstanding_bytes
        batch = self._lanes.take(number, size)
        if not batch:
            return
        with self._room:
            self._outstanding += len(batch)
            self._outstanding_bytes += sum(arrival.bytes for _, _, arrival in batch)
        self._loop.call_soon_threadsafe(self._on_arrival, batch)

    def _run_requests(self, consumer: Consumer) -> None:
        while not self._requests.empty():
            try:
                self._requests.get()(consumer)
            except KafkaException as error:  # usually, the partition is no longer assigned
                log.debug("the Kafka consumer could not run a request: %s", error)

    def _wait_for_room(self) -> None:
        """If records are queued, wait up to REST seconds for room to hand them over."""
        if self._lanes:
            with self._room:
                self._room.wait_for(self._has_room, REST)

    def _may_read(self) -> bool:
        """Whether there is room, a partition is empty (its records may be behind other ones), or all are paused."""
        return not self._lanes.is_full or self._is_hungry() or self._paused >= self._assigned - self._waiting

    def _regulate(self, consumer: Consumer) -> None:
        """Pause partitions that have their share while another one is empty. Resume those that are low."""
        readable = self._assigned - self._waiting
        low = [place for place in readable & self._paused if self._lanes.is_low(place)]
        over = [place for place in readable - self._paused if self._lanes.has_its_share(place)]
        if low:
            consumer.resume([TopicPartition(*place) for place in low])
            self._paused.difference_update(low)
        if over and self._is_hungry():
            consumer.pause([TopicPartition(*place) for place in over])
            self._paused.update(over)

    def _is_hungry(self) -> bool:
        return any(place not in self._lanes for place in self._assigned - self._waiting - self._paused)

    def _has_room(self) -> bool:
        full = self._outstanding >= self._most or self._outstanding_bytes >= self._most_bytes
        return not full or self._stopping.is_set()


def _report(error: KafkaError) -> None:
    quiet = (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART)  # pyright: ignore[reportPrivateUsage]
    if error.code() not in quiet:
        log.warning("Kafka: %s", error.str())
