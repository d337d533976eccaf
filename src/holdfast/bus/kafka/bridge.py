"""A Kafka consumer in a thread of its own, and the way from there to the event loop.

The client's own asyncio form takes 100 µs a record; a thread that hands over what it has in batches takes 2. The number
of records on the way is bounded: when it is reached the thread waits for room, and where that takes long it pauses the
partitions and goes on polling, so that the group sees us alive. (Pausing drops what the client has fetched already.)
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from holdfast.bus.kafka.brokers import Place, unusable
from holdfast.bus.kafka.wire import Arrival

STALL = 2.0  # seconds without room after which partitions are paused
REST = 0.05  # seconds that the thread waits for a record before it looks for orders
PATIENCE = 120.0  # seconds that the group waits for what the loop does about a rebalance

log = logging.getLogger(__name__)

Handed = list[tuple[Place, int, Arrival]]


class Owner(Protocol):
    """Who decides where to read, on the event loop."""

    async def assigned(self, places: Sequence[Place]) -> Mapping[Place, int]:
        """These partitions are ours: where to read each from."""
        ...

    async def revoked(self, places: Sequence[Place]) -> None:
        """These partitions will be another's; they are as soon as this returns."""
        ...

    def lost(self, places: Sequence[Place]) -> None:
        """These partitions are another's already."""
        ...

    def arrived(self, batch: Handed) -> None:
        """Records, with the generation of their partition."""
        ...


class Bridge:
    """Reads with the client in a thread; orders go there, records come back."""

    def __init__(
        self, settings: Mapping[str, Any], topics: Sequence[str], owner: Owner, *, most: int, most_bytes: int
    ) -> None:
        self._settings = dict(settings)
        self._topics = list(topics)
        self._owner = owner
        self._most = most
        self._most_bytes = most_bytes
        self._loop = asyncio.get_running_loop()
        self._orders: queue.SimpleQueue[Callable[[Consumer], None]] = queue.SimpleQueue()
        self._outstanding = self._outstanding_bytes = 0  # handed over and not yet taken; guarded by the condition
        self._room = threading.Condition()
        self._stopping = threading.Event()
        self._generations: dict[Place, int] = {}
        self._waiting: set[Place] = set()  # paused until their time has come
        self._full = False
        self.failure: BaseException | None = None  # what ended the thread
        try:
            self._consumer = Consumer(self._settings)
        except KafkaException as error:
            raise unusable(error) from error
        self._thread = threading.Thread(target=self._run, name="holdfast kafka consumer", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    async def stop(self) -> None:
        """Leave the group; every partition is revoked."""
        with self._room:
            self._stopping.set()
            self._room.notify()
        await asyncio.to_thread(self._thread.join)

    def taken(self, number: int, size: int) -> None:
        """So many of the records handed over, and bytes, are no longer on the way."""
        with self._room:
            self._outstanding -= number
            self._outstanding_bytes -= size
            self._room.notify()

    def seek(self, place: Place, offset: int, generation: int, wait: float) -> None:
        """Read a partition again from an offset, after so many seconds; what comes then is of this generation."""

        def order(consumer: Consumer) -> None:
            self._generations[place] = generation
            self._waiting.add(place)
            try:
                consumer.pause([TopicPartition(*place)])
                consumer.seek(TopicPartition(*place, offset))
                self._put_later(wait, resume)
            except KafkaException:  # it has not begun to read yet
                if any((one.topic, one.partition) == place for one in consumer.assignment()):
                    self._put_later(REST, order)

        def resume(consumer: Consumer) -> None:
            if self._generations.get(place) == generation:
                self._waiting.discard(place)
                if not self._full:
                    consumer.resume([TopicPartition(*place)])

        self._orders.put(order)

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Tell the broker how far we are: for its own tools, nothing depends on it."""
        if offsets:
            places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
            self._orders.put(lambda consumer: consumer.commit(offsets=places, asynchronous=True))

    def _put_later(self, wait: float, order: Callable[[Consumer], None]) -> None:
        self._loop.call_soon_threadsafe(self._loop.call_later, wait, self._orders.put, order)

    def _run(self) -> None:
        consumer = self._consumer
        try:
            consumer.subscribe(
                self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )
            while not self._stopping.is_set():
                self._obey(consumer)
                self._throttle(consumer)
                messages = self._next(consumer)
                if messages:
                    self._hand_over(messages)
        except BaseException as error:
            log.exception("the Kafka consumer has stopped")
            self.failure = error
        finally:
            consumer.close()

    def _next(self, consumer: Consumer) -> list[Any]:
        # Asked for many at once, the client waits until they are there, and takes them however large they are.
        messages: list[Any] = []
        size = 0
        while len(messages) < self._most and size < self._most_bytes:
            message = consumer.poll(0 if messages else REST)
            if message is None:
                break
            messages.append(message)
            size += len(message)
        return messages

    def _hand_over(self, messages: Sequence[Any]) -> None:
        batch: Handed = []
        for message in messages:
            if message.error() is not None:
                _report(message.error())
                continue
            place = message.topic(), message.partition()
            arrival = Arrival(
                message.partition(),
                message.offset(),
                message.key(),
                message.value(),
                message.headers() or [],
                message.timestamp()[1],
            )
            batch.append((place, self._generations.get(place, 0), arrival))
        with self._room:
            self._outstanding += len(batch)
            self._outstanding_bytes += sum(arrival.bytes for _, _, arrival in batch)
        self._loop.call_soon_threadsafe(self._owner.arrived, batch)

    def _obey(self, consumer: Consumer) -> None:
        while not self._orders.empty():
            try:
                self._orders.get()(consumer)
            except KafkaException as error:  # the partition is no longer ours, mostly
                log.debug("the Kafka consumer could not do as told: %s", error)

    def _throttle(self, consumer: Consumer) -> None:
        with self._room:
            patience = 0 if self._full else STALL
            full = not self._room.wait_for(self._has_room, patience)
        if full != self._full:
            self._full = full
            places = [one for one in consumer.assignment() if (one.topic, one.partition) not in self._waiting]
            if places:
                (consumer.pause if full else consumer.resume)(places)

    def _has_room(self) -> bool:
        full = self._outstanding >= self._most or self._outstanding_bytes >= self._most_bytes
        return not full or self._stopping.is_set()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = [(one.topic, one.partition) for one in partitions]
        starts = self._ask(self._owner.assigned(places))
        for place in places:
            self._generations[place] = 0
            self._waiting.discard(place)
        consumer.incremental_assign([TopicPartition(*place, starts[place]) for place in places if place in starts])
        if self._full:
            consumer.pause([TopicPartition(*place) for place in places])

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._ask(self._owner.revoked([(one.topic, one.partition) for one in partitions]))
        consumer.incremental_unassign(partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._loop.call_soon_threadsafe(self._owner.lost, [(one.topic, one.partition) for one in partitions])
        consumer.incremental_unassign(partitions)

    def _ask(self, question: Awaitable[Any]) -> Any:
        asked = asyncio.run_coroutine_threadsafe(_coroutine(question), self._loop)
        try:
            return asked.result(PATIENCE)
        except TimeoutError:
            asked.cancel()
            raise


async def _coroutine(question: Awaitable[Any]) -> Any:
    return await question


def _report(error: KafkaError) -> None:
    quiet = (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART)  # pyright: ignore[reportPrivateUsage]
    if error.code() not in quiet:
        log.warning("Kafka: %s", error.str())
