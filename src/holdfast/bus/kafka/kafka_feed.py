"""The records of a group, read from Kafka: partitions and positions from PostgreSQL.

Kafka's own group protocols are not used: positions have an owner in PostgreSQL in any case, whose word is the last; and
in a classic group nobody reads while any member comes or goes.
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

from holdfast.bus.kafka.bridge import Beginning, Bridge
from holdfast.bus.kafka.brokers import Broker, Place
from holdfast.bus.kafka.lanes import Handed
from holdfast.bus.kafka.unpacking import Unpacking
from holdfast.bus.kafka.wire import Arrival
from holdfast.bus.owned_partitions import OwnedPartitions
from holdfast.bus.positions import Holding, Positions
from holdfast.bus.reading import Listen, Reading
from holdfast.bus.records import Record
from holdfast.bus.sharing import Slot
from holdfast.bus.wakes import Wakes, until
from holdfast.core.errors import Broken, Unavailable
from holdfast.core.ids import uuid7
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

DISCOVERY = 5.0  # seconds between two looks for partitions that only Kafka has
OVERDUE = 5.0  # seconds without a word of a partition after which PostgreSQL is asked what there should be

sql = statements(__name__)


class KafkaFeed:
    """The partitions that one member of a group owns, and their records."""

    def __init__(
        self,
        database: Database,
        group: str,
        reading: Reading,
        listen: Listen,
        wakes: Wakes,
        *,
        broker: Broker,
        tenant: str,
    ) -> None:
        self.positions = Positions(database, group, uuid7())
        self._database = database
        self._reading = reading
        self._broker = broker
        self._names = {broker.name(tenant, topic): topic for topic in reading.topics}
        self._group = broker.name(tenant, group)
        self._unpacking = Unpacking(database, reading, self.positions, self._made_again)
        self._partitions = OwnedPartitions(database, self.positions, reading, listen, wakes, self)
        self._held = self._partitions.held
        self._generations = itertools.count(1)
        self._starts: dict[Slot, int] = {}  # where reading began, as Kafka counts
        self._waiting: deque[tuple[Holding, int, Arrival]] = deque()
        self._unpacked: list[tuple[Holding, int, Record]] = []
        self._heard: dict[Slot, float] = {}  # when something of it came, by the loop's clock
        self._asked = 0.0
        self._arrived = asyncio.Event()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        topics = await self._unpacking.begin()
        for topic, partitions in topics.items():
            with contextlib.suppress(Unavailable):  # the relay makes them when the broker is back
                await self._broker.ensure(self._broker_topic(topic), partitions)
        most, most_bytes = self._reading.batch, self._reading.batch_bytes
        self._bridge = Bridge(self._client(), self.arrived, most=most, most_bytes=most_bytes)
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
    def holdings(self) -> Mapping[Slot, Holding]:
        """The partitions it owns."""
        return self._held

    async def take(self, wait: float) -> list[tuple[Holding, Record]]:
        """The next records; none when there are none for so many seconds."""
        if self._bridge.failure is not None:
            raise Broken("the Kafka consumer has stopped", why=str(self._bridge.failure), next="Subscribe again.")
        await self._ask()
        if not self._waiting:
            await until(self._arrived, 0 if self._unpacked else wait)
        await self._unpack()
        # What was unpacked when this was cancelled, or failed, was kept for now.
        unpacked, self._unpacked = self._unpacked, []
        return [(h, record) for h, generation, record in unpacked if self._is_current(h, generation)]

    def rewind(self, holding: Holding, wait: float) -> None:
        """Deliver again from the holding's position, after so many seconds."""
        holding.next = holding.position
        if self._held.get(holding.slot) is not holding:
            return  # another's by now, or ours anew
        holding.generation = next(self._generations)
        holding.passed = holding.expected = 0
        holding.retry_at = asyncio.get_running_loop().time() + wait
        start = self._starts.get(holding.slot, OFFSET_BEGINNING)
        offset = start if holding.broker_position is None else holding.broker_position
        self._bridge.seek(self._place(holding.slot), offset, holding.generation, wait)

    def lose(self, holding: Holding) -> None:
        """The partition turned out to be another's."""
        self._partitions.lose(holding)

    def hold(self, slots: set[Slot]) -> None:
        """Records of these partitions, and of no other, are in hand."""
        self._partitions.hold(slots)

    # As the reader of the partitions.

    async def begin(self, holdings: Sequence[Holding]) -> None:
        """Find where Kafka has the positions of these partitions, and read from there."""
        unknown = [h for h in holdings if h.broker_position is None and not self._from_start(h)]
        starts = await self._places_of(unknown) if unknown else {}
        now = asyncio.get_running_loop().time()
        beginnings: dict[Place, Beginning] = {}
        for holding in holdings:
            place = self._place(holding.slot)
            known = starts.get(place, OFFSET_BEGINNING)
            start = known if holding.broker_position is None else holding.broker_position
            holding.generation = next(self._generations)
            holding.passed = max(known, 0)  # what is before it is no longer unread
            self._starts[holding.slot] = start
            self._heard[holding.slot] = now
            beginnings[place] = Beginning(start, holding.generation, max(holding.retry_at - now, 0))
        self._bridge.begin(beginnings)

    def end(self, slots: Collection[Slot]) -> None:
        """Read these partitions no longer."""
        self._bridge.end([self._place(slot) for slot in slots])

    async def renewed(self) -> None:
        """Tell the broker how far this consumer is."""
        await self._pass()
        known = {self._place(slot): h.broker_position for slot, h in self._held.items()}
        self._bridge.commit({place: offset for place, offset in known.items() if offset is not None})

    async def _discover(self) -> None:
        """Learn of partitions that somebody made on Kafka; apart, for a broker that does not answer is waited for."""
        while True:
            with contextlib.suppress(Unavailable):
                counts = await self._broker.partitions(list(self._names))
                there = {Slot(self._names[name], n) for name, count in counts.items() for n in range(count)}
                if there - {*self._partitions.unlisted}:
                    self._partitions.unlisted = there
                    self._partitions.look()
            await asyncio.sleep(DISCOVERY)

    async def _places_of(self, holdings: Sequence[Holding]) -> dict[Place, int]:
        """Where Kafka has the positions of these partitions, those that it can tell of."""
        ends = await self._broker.ends([self._place(holding.slot) for holding in holdings])
        times: dict[Place, datetime] = {}
        for holding in holdings:
            place = self._place(holding.slot)
            if place in ends:
                found = await self._database.one(sql("time_at"), *holding.slot, holding.position)
                # To whoever begins at the end, what was there before does not matter, whoever wrote it.
                if found is not None and (found["known"] or self._reading.start == "start"):
                    times[place] = found["at"]
        return ends | (await self._broker.offsets_at(times, ends) if times else {})

    def _from_start(self, holding: Holding) -> bool:
        return holding.position == 0 and self._reading.start == "start"

    async def _pass(self) -> None:
        """Move positions on Kafka behind what no record was delivered for: when all before it is done, it is read."""
        done = [
            holding
            for holding in self._held.values()
            if holding.position >= holding.next and holding.expected <= (holding.broker_position or 0) < holding.passed
        ]
        if done:
            passed = {holding.slot: holding.passed for holding in done}
            await self.positions.pass_on_kafka(done, list(passed.values()))
            for holding in done:
                holding.broker_position = max(holding.broker_position or 0, passed[holding.slot])

    def arrived(self, batch: Handed) -> None:
        """Records have come."""
        unknown: list[Arrival] = []
        now = asyncio.get_running_loop().time()
        for place, generation, arrival in batch:
            holding = self._held.get(self._slot(place))
            if holding is None:
                unknown.append(arrival)
            else:
                self._waiting.append((holding, generation, arrival))
                self._heard[holding.slot] = now
        self._bridge.taken(len(unknown), sum(arrival.bytes for arrival in unknown))
        self._arrived.set()

    async def _unpack(self) -> None:
        """Unpack arrivals, as many as one may hold."""
        done = size = 0
        try:
            while self._waiting and len(self._unpacked) < self._reading.batch and size < self._reading.batch_bytes:
                holding, generation, arrival = self._waiting[0]
                if self._is_current(holding, generation):
                    found, whole = await self._unpacking.unpack(holding, arrival)
                    self._unpacked += [(holding, generation, record) for record in found]
                    if not whole:
                        break
                    if holding.generation == generation:
                        holding.passed = arrival.offset + 1
                        if any(record.broker_offset is not None for record in found):
                            holding.expected = arrival.offset + 1
                self._waiting.popleft()
                done += 1
                size += arrival.bytes
        except Unavailable:
            if not self._unpacked:
                raise
        finally:
            self._bridge.taken(done, size)

    def _is_current(self, holding: Holding, generation: int) -> bool:
        return self._held.get(holding.slot) is holding and holding.generation == generation

    async def _ask(self) -> None:
        """Ask PostgreSQL, once in a while, for what Kafka should have delivered; again at once while there is any."""
        now = asyncio.get_running_loop().time()
        if now < self._asked + OVERDUE:
            return
        coming = {holding.slot for holding, _, _ in self._waiting}
        quiet = [
            holding
            for slot, holding in self._held.items()
            if slot not in coming and now > max(self._heard.get(slot, 0.0), holding.retry_at) + OVERDUE
        ]
        overdue = await self._unpacking.overdue(quiet) if quiet else []
        self._unpacked += [(holding, holding.generation, record) for holding, record in overdue]
        if not overdue:
            self._asked = now

    def _made_again(self, topic: str) -> None:
        """A topic was removed and made again: what is known of its partitions no longer holds."""
        for holding in [holding for slot, holding in self._held.items() if slot.topic == topic]:
            self.lose(holding)

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
                "fetch.queue.backoff.ms": 5,  # when its queue was full the client would wait a second
                "fetch.message.max.bytes": 262_144,  # of one partition at once: others are behind it in the queue
                "queued.min.messages": max(self._reading.batch, 1000),
                "queued.max.messages.kbytes": 16_384,
            }
        )

    def _broker_topic(self, topic: str) -> str:
        return next(name for name, ours in self._names.items() if ours == topic)

    def _place(self, slot: Slot) -> Place:
        return self._broker_topic(slot.topic), slot.partition

    def _slot(self, place: Place) -> Slot:
        return Slot(self._names[place[0]], place[1])
