"""The feed of a group member from Kafka. PostgreSQL assigns the partitions and stores the positions.

Kafka's own group protocols are not used: PostgreSQL decides in any case who owns a position. And in a classic Kafka
group, no member reads while one joins or leaves.
"""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Self

from confluent_kafka import OFFSET_BEGINNING

from holdfast.bus.assignment import TopicPartition
from holdfast.bus.feed_options import FeedOptions, Listen
from holdfast.bus.kafka.bridge import Bridge, StartPosition
from holdfast.bus.kafka.brokers import Broker, Place
from holdfast.bus.kafka.lanes import IncomingBatch
from holdfast.bus.kafka.record_format import IncomingRecord
from holdfast.bus.kafka.unpacker import Unpacker
from holdfast.bus.notifications import Notifications, until
from holdfast.bus.owned_partitions import OwnedPartitions
from holdfast.bus.positions import OwnedPartition, Positions
from holdfast.bus.records import Record
from holdfast.core.errors import Broken, Unavailable
from holdfast.core.ids import uuid7
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

DISCOVERY = 5.0  # seconds between two searches for partitions that only Kafka has
OVERDUE = 5.0  # seconds without a record of a partition until PostgreSQL is asked for missing ones

sql = statements(__name__)


class KafkaFeed:
    """The partitions that a group member owns, and their records."""

    def __init__(
        self,
        database: Database,
        group: str,
        options: FeedOptions,
        listen: Listen,
        notifications: Notifications,
        *,
        broker: Broker,
        tenant: str,
    ) -> None:
        self.positions = Positions(database, group, uuid7())
        self._database = database
        self._options = options
        self._broker = broker
        self._names = {broker.name(tenant, topic): topic for topic in options.topics}
        self._group = broker.name(tenant, group)
        self._unpacker = Unpacker(database, options, self.positions, self._lose_topic)
        self._partitions = OwnedPartitions(database, self.positions, options, listen, notifications, self)
        self._held = self._partitions.held
        self._generations = itertools.count(1)
        self._starts: dict[TopicPartition, int] = {}  # the Kafka offset at which reading began
        self._waiting: deque[tuple[OwnedPartition, int, IncomingRecord]] = deque()
        self._unpacked: list[tuple[OwnedPartition, int, Record]] = []
        self._last_arrivals: dict[TopicPartition, float] = {}  # when its last record arrived, by the loop's clock
        self._checked_at = 0.0
        self._arrived = asyncio.Event()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        topics = await self._unpacker.begin()
        for topic, partitions in topics.items():
            with contextlib.suppress(Unavailable):  # the relay creates them when the broker is back
                await self._broker.ensure(self._broker_topic(topic), partitions)
        most, most_bytes = self._options.batch, self._options.batch_bytes
        self._bridge = Bridge(self._client(), self.queue_arrivals, most=most, most_bytes=most_bytes)
        async with AsyncExitStack() as stack:
            self._bridge.start()
            stack.push_async_callback(self._bridge.stop)
            await stack.enter_async_context(self._partitions)
            discovering = asyncio.create_task(self._discover(), name="holdfast kafka partitions")
            stack.push_async_callback(asyncio.wait, [discovering])
            stack.callback(discovering.cancel)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def partitions(self) -> Mapping[TopicPartition, OwnedPartition]:
        """The owned partitions."""
        return self._held

    async def take(self, wait: float) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records, or an empty list if none arrive within `wait` seconds."""
        if self._bridge.failure is not None:
            raise Broken("the Kafka consumer has stopped", why=str(self._bridge.failure), next="Subscribe again.")
        await self._fetch_overdue()
        if not self._waiting:
            await until(self._arrived, 0 if self._unpacked else wait)
        await self._unpack()
        # Includes records that an earlier call unpacked before it was cancelled or failed.
        unpacked, self._unpacked = self._unpacked, []
        return [(p, record) for p, generation, record in unpacked if self._is_current(p, generation)]

    def rewind(self, partition: OwnedPartition, wait: float) -> None:
        """Deliver again from the partition's position, after `wait` seconds."""
        partition.next = partition.position
        if self._held.get(partition.slot) is not partition:
            return  # another consumer owns it, or it was claimed anew
        partition.generation = next(self._generations)
        partition.passed = partition.expected = 0
        partition.retry_at = asyncio.get_running_loop().time() + wait
        start = self._starts.get(partition.slot, OFFSET_BEGINNING)
        offset = start if partition.broker_position is None else partition.broker_position
        self._bridge.seek(self._place(partition.slot), offset, partition.generation, wait)

    def lose(self, partition: OwnedPartition) -> None:
        """Stop reading a partition that another consumer may own."""
        self._partitions.lose(partition)

    def mark_in_process(self, slots: set[TopicPartition]) -> None:
        """Set the partitions whose records are being processed."""
        self._partitions.mark_in_process(slots)

    # The `Reader` protocol of `OwnedPartitions`.

    async def begin(self, partitions: Sequence[OwnedPartition]) -> None:
        """Find the Kafka offsets of these partitions' positions, and read from there."""
        unknown = [p for p in partitions if p.broker_position is None and not self._from_start(p)]
        starts = await self._places_of(unknown) if unknown else {}
        now = asyncio.get_running_loop().time()
        beginnings: dict[Place, StartPosition] = {}
        for partition in partitions:
            place = self._place(partition.slot)
            known = starts.get(place, OFFSET_BEGINNING)
            start = known if partition.broker_position is None else partition.broker_position
            partition.generation = next(self._generations)
            partition.passed = max(known, 0)  # nothing before it is unread
            self._starts[partition.slot] = start
            self._last_arrivals[partition.slot] = now
            beginnings[place] = StartPosition(start, partition.generation, max(partition.retry_at - now, 0))
        self._bridge.begin(beginnings)

    def end(self, slots: Collection[TopicPartition]) -> None:
        """Stop reading these partitions."""
        self._bridge.end([self._place(slot) for slot in slots])

    async def on_renewed(self) -> None:
        """Move positions past skipped arrivals, and commit the positions to the broker."""
        await self._skip_arrivals()
        known = {self._place(slot): p.broker_position for slot, p in self._held.items()}
        self._bridge.commit({place: offset for place, offset in known.items() if offset is not None})

    async def _discover(self) -> None:
        """Find partitions that were created on Kafka. It is a separate task because it may wait for the broker."""
        while True:
            with contextlib.suppress(Unavailable):
                counts = await self._broker.partitions(list(self._names))
                existing = {
                    TopicPartition(self._names[name], n) for name, count in counts.items() for n in range(count)
                }
                if existing - {*self._partitions.unlisted}:
                    self._partitions.unlisted = existing
                    self._partitions.rebalance_soon()
            await asyncio.sleep(DISCOVERY)

    async def _places_of(self, partitions: Sequence[OwnedPartition]) -> dict[Place, int]:
        """Return the Kafka offsets of these partitions' positions, as far as the broker knows them."""
        ends = await self._broker.ends([self._place(partition.slot) for partition in partitions])
        times: dict[Place, datetime] = {}
        for partition in partitions:
            place = self._place(partition.slot)
            if place in ends:
                found = await self._database.one(sql("time_at"), *partition.slot, partition.position)
                # A group that begins at the end skips all earlier records, also those of foreign producers.
                if found is not None and (found["known"] or self._options.start == "start"):
                    times[place] = found["at"]
        return ends | (await self._broker.offsets_at(times, ends) if times else {})

    def _from_start(self, partition: OwnedPartition) -> bool:
        return partition.position == 0 and self._options.start == "start"

    async def _skip_arrivals(self) -> None:
        """Move positions on Kafka past arrivals for which no record was delivered, if all records before are done."""
        done = [
            partition
            for partition in self._held.values()
            if partition.position >= partition.next
            and partition.expected <= (partition.broker_position or 0) < partition.passed
        ]
        if done:
            passed = {partition.slot: partition.passed for partition in done}
            await self.positions.pass_on_kafka(done, list(passed.values()))
            for partition in done:
                partition.broker_position = max(partition.broker_position or 0, passed[partition.slot])

    def queue_arrivals(self, batch: IncomingBatch) -> None:
        """Queue arrivals from the bridge."""
        unknown: list[IncomingRecord] = []
        now = asyncio.get_running_loop().time()
        for place, generation, arrival in batch:
            partition = self._held.get(self._slot(place))
            if partition is None:
                unknown.append(arrival)
            else:
                self._waiting.append((partition, generation, arrival))
                self._last_arrivals[partition.slot] = now
        self._bridge.note_taken(len(unknown), sum(arrival.bytes for arrival in unknown))
        self._arrived.set()

    async def _unpack(self) -> None:
        """Unpack arrivals, at most a batch."""
        done = size = 0
        try:
            while self._waiting and len(self._unpacked) < self._options.batch and size < self._options.batch_bytes:
                partition, generation, arrival = self._waiting[0]
                if self._is_current(partition, generation):
                    found, whole = await self._unpacker.unpack(partition, arrival)
                    self._unpacked += [(partition, generation, record) for record in found]
                    if not whole:
                        break
                    if partition.generation == generation:
                        partition.passed = arrival.offset + 1
                        if any(record.broker_offset is not None for record in found):
                            partition.expected = arrival.offset + 1
                self._waiting.popleft()
                done += 1
                size += arrival.bytes
        except Unavailable:
            if not self._unpacked:
                raise
        finally:
            self._bridge.note_taken(done, size)

    def _is_current(self, partition: OwnedPartition, generation: int) -> bool:
        return self._held.get(partition.slot) is partition and partition.generation == generation

    async def _fetch_overdue(self) -> None:
        """Ask PostgreSQL periodically for records that Kafka should have delivered.

        While there are any, it asks again at the next call.
        """
        now = asyncio.get_running_loop().time()
        if now < self._checked_at + OVERDUE:
            return
        arriving = {partition.slot for partition, _, _ in self._waiting}
        quiet = [
            partition
            for slot, partition in self._held.items()
            if slot not in arriving and now > max(self._last_arrivals.get(slot, 0.0), partition.retry_at) + OVERDUE
        ]
        overdue = await self._unpacker.overdue(quiet) if quiet else []
        self._unpacked += [(partition, partition.generation, record) for partition, record in overdue]
        if not overdue:
            self._checked_at = now

    def _lose_topic(self, topic: str) -> None:
        """Stop reading the partitions of a topic that was removed and created again: their state is outdated."""
        for partition in [partition for slot, partition in self._held.items() if slot.topic == topic]:
            self.lose(partition)

    def _client(self) -> dict[str, object]:
        return self._broker.client(
            {
                "group.id": self._group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "topic.metadata.refresh.interval.ms": 5000,
                "fetch.wait.max.ms": 100,
                "fetch.queue.backoff.ms": 5,  # by default, the client waits a second after a full queue
                "fetch.message.max.bytes": 262_144,  # per partition and fetch: others wait behind it in the queue
                "queued.min.messages": max(self._options.batch, 1000),
                "queued.max.messages.kbytes": 16_384,
            }
        )

    def _broker_topic(self, topic: str) -> str:
        return next(name for name, ours in self._names.items() if ours == topic)

    def _place(self, slot: TopicPartition) -> Place:
        return self._broker_topic(slot.topic), slot.partition

    def _slot(self, place: Place) -> TopicPartition:
        return TopicPartition(self._names[place[0]], place[1])
