"""The records of a group, read from Kafka: partitions by its group protocol, positions from PostgreSQL."""

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Self
from uuid import UUID

from confluent_kafka import OFFSET_BEGINNING

from holdfast.bus.kafka.bridge import Beginning, Bridge
from holdfast.bus.kafka.brokers import Broker, Place
from holdfast.bus.kafka.lanes import Handed
from holdfast.bus.kafka.unpacking import Unpacking
from holdfast.bus.kafka.wire import Arrival
from holdfast.bus.members import Membership
from holdfast.bus.positions import Holding, Positions
from holdfast.bus.postgres_feed import HANDOVER, Reading
from holdfast.bus.records import Record
from holdfast.bus.sharing import Slot
from holdfast.bus.wakes import until
from holdfast.core.errors import Broken, HoldfastError, Unavailable
from holdfast.core.ids import uuid7
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

MIN_SESSION = 6.0  # seconds: what brokers allow unless told otherwise
RETRY = 1.0
OVERDUE = 5.0  # seconds without a word of a partition after which PostgreSQL is asked what there should be

sql = statements(__name__)
log = logging.getLogger(__name__)


class KafkaFeed:
    """The partitions that Kafka has given one member of a group, and their records."""

    def __init__(
        self, database: Database, group: str, reading: Reading, broker: Broker, *, tenant: str, protocol: str
    ) -> None:
        self.member: UUID = uuid7()
        self.positions = Positions(database, group, self.member)
        self._database = database
        self._reading = reading
        self._broker = broker
        self._protocol = protocol
        self._names = {broker.name(tenant, topic): topic for topic in reading.topics}
        self._group = broker.name(tenant, group)
        self._unpacking = Unpacking(database, reading, self.positions, self._renewed)
        self._members = Membership(database, group, self.member, reading.topics, reading.lease)
        self._assigned: set[Slot] = set()  # by Kafka
        self._claiming: set[Slot] = set()  # assigned, and being claimed in PostgreSQL
        self._held: dict[Slot, Holding] = {}  # in PostgreSQL, too
        self._generations = itertools.count(1)
        self._starts: dict[Slot, int] = {}  # where reading began, as Kafka counts
        self._in_hand: set[Slot] = set()
        self._freed = asyncio.Event()
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()
        self._waiting: deque[tuple[Holding, int, Arrival]] = deque()
        self._unpacked: list[tuple[Holding, int, Record]] = []
        self._heard: dict[Slot, float] = {}  # when something of it came, by the loop's clock
        self._asked = 0.0
        self._arrived = asyncio.Event()

    async def __aenter__(self) -> Self:
        topics = await self._unpacking.begin()
        await self._beat()
        await self.positions.begin(self._reading.topics, start=self._reading.start)
        for topic, partitions in topics.items():
            with contextlib.suppress(Unavailable):  # the relay makes them when the broker is back
                await self._broker.ensure(self._broker_topic(topic), partitions)
        most, most_bytes = self._reading.batch, self._reading.batch_bytes
        self._bridge = Bridge(self._client(), list(self._names), self, most=most, most_bytes=most_bytes)
        self._bridge.start()
        self._keeping = asyncio.create_task(self._keep(), name="holdfast group member")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.hold(set())
        self._closing.set()
        self._keeping.cancel()
        await asyncio.wait([self._keeping])
        await self._bridge.stop()
        with contextlib.suppress(HoldfastError):  # whoever cannot be told waits for the lease to run out
            await self._members.leave()
        self._held.clear()

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
        self._read_again(holding, wait)

    def _read_again(self, holding: Holding, wait: float) -> None:
        if self._held.get(holding.slot) is not holding:
            return  # another's by now, or ours anew
        holding.generation = next(self._generations)
        holding.passed = holding.expected = 0
        holding.retry_at = asyncio.get_running_loop().time() + wait
        start = self._starts.get(holding.slot, OFFSET_BEGINNING)
        offset = start if holding.broker_position is None else holding.broker_position
        self._bridge.seek(self._place(holding.slot), offset, holding.generation, wait)

    def lose(self, holding: Holding) -> None:
        """The partition turned out to be another's; if Kafka does not say so, too, it is claimed again."""
        if self._held.get(holding.slot) is holding:
            del self._held[holding.slot]
            self._changed.set()

    def hold(self, slots: set[Slot]) -> None:
        """Records of these partitions, and of no other, are in hand."""
        self._in_hand = slots
        self._freed.set()

    # What the bridge asks, from its thread by way of the loop.

    async def assigned(self, places: Sequence[Place]) -> Mapping[Place, Beginning]:
        """Own the partitions in PostgreSQL, too, and find where to read each from."""
        slots = {self._slot(place) for place in places}
        self._claiming |= slots
        try:
            taken = await self._claim(sorted(slots))
            self._assigned |= slots
        finally:
            self._claiming -= slots
        for holding in taken:
            if holding.retry_at:
                self._read_again(holding, holding.retry_at)
        return {self._place(h.slot): Beginning(self._starts[h.slot], h.generation) for h in taken}

    async def revoked(self, places: Sequence[Place]) -> None:
        """Give partitions up when nothing of them is in hand, or has been for too long."""
        slots = {self._slot(place) for place in places}
        holdings = [self._held[slot] for slot in slots if slot in self._held]
        for holding in holdings:
            holding.leaving = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANDOVER):
                while self._in_hand & slots:
                    self._freed.clear()
                    await self._freed.wait()
        self._assigned -= slots
        for holding in holdings:
            self._held.pop(holding.slot, None)
        try:
            await self.positions.release({holding.slot: holding.epoch for holding in holdings})
        except HoldfastError as error:
            log.warning("partitions could not be given up in PostgreSQL: %s", error)

    def lost(self, places: Sequence[Place]) -> None:
        """Others have these partitions."""
        for slot in map(self._slot, places):
            self._assigned.discard(slot)
            self._held.pop(slot, None)

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

    def _renewed(self, topic: str) -> None:
        for holding in [holding for slot, holding in self._held.items() if slot.topic == topic]:
            self.lose(holding)

    async def _claim(self, slots: Sequence[Slot]) -> list[Holding]:
        while not self._closing.is_set():
            try:
                taken = await self.positions.claim(slots, start=self._reading.start, force=True)
                await self._have(taken)
                return taken
            except HoldfastError as error:
                log.warning("partitions cannot be owned in PostgreSQL, trying again: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY):
                    await self._closing.wait()
        return []

    async def _have(self, holdings: Sequence[Holding]) -> None:
        """Own them from here on, and know where Kafka has their positions."""
        places = [self._place(h.slot) for h in holdings if h.broker_position is None and not self._from_start(h)]
        ends = await self._broker.ends(places) if places else {}
        times: dict[Place, datetime] = {}
        for holding in holdings:
            place = self._place(holding.slot)
            if place in ends:
                found = await self._database.one(sql("time_at"), *holding.slot, holding.position)
                # To whoever begins at the end, what was there before does not matter, whoever wrote it.
                if found is not None and (found["known"] or self._reading.start == "start"):
                    times[place] = found["at"]
        starts = ends | (await self._broker.offsets_at(times, ends) if times else {})
        now = asyncio.get_running_loop().time()
        for holding in holdings:
            known = starts.get(self._place(holding.slot), OFFSET_BEGINNING)
            self._starts[holding.slot] = known if holding.broker_position is None else holding.broker_position
            holding.generation = next(self._generations)
            holding.passed = max(known, 0)  # what is before it is no longer unread
            self._held[holding.slot] = holding
            self._heard[holding.slot] = now
        await self._pass()

    def _from_start(self, holding: Holding) -> bool:
        return holding.position == 0 and self._reading.start == "start"

    async def _keep(self) -> None:
        """Show that this consumer lives, and tell the broker how far it is."""
        while True:
            await until(self._changed, self._reading.lease.total_seconds() / 3)
            try:
                await self._beat()
                await self._reclaim()
                await self._pass()
            except HoldfastError as error:
                log.warning("the group cannot be told that this consumer lives: %s", error)
            known = {self._place(slot): h.broker_position for slot, h in self._held.items()}
            self._bridge.commit({place: offset for place, offset in known.items() if offset is not None})

    async def _reclaim(self) -> None:
        """Have what Kafka has given us and PostgreSQL has not, unless someone alive has it there."""
        missing = sorted(self._assigned - self._held.keys() - self._claiming)
        taken = await self.positions.claim(missing, start=self._reading.start)
        await self._have([holding for holding in taken if holding.slot in self._assigned])
        for holding in taken:
            if self._held.get(holding.slot) is holding:
                self._read_again(holding, holding.retry_at)

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

    async def _beat(self) -> None:
        async with self._database.transaction() as tx:
            group = await self._members.beat(tx)
            # Kafka has the last word: what it does not give us may be another's, who cannot claim it while we live.
            ours = {slot: group.epochs[slot] for slot, owner in group.owners.items() if owner == self.member}
            others = {slot: epoch for slot, epoch in ours.items() if slot not in self._assigned | self._claiming}
            await self.positions.release(others, tx=tx)

    def _client(self) -> dict[str, object]:
        session = int(max(self._reading.lease.total_seconds(), MIN_SESSION) * 1000)
        # By a heartbeat a member learns that the group shares partitions anew, which waits for everybody.
        heartbeat = int(min(max(self._reading.lease.total_seconds() / 10, 0.1), 1.0) * 1000)
        classic = {
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": session,
            "heartbeat.interval.ms": heartbeat,
        }
        return self._broker.client(
            {
                "group.id": self._group,
                "group.protocol": self._protocol,
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
                **(classic if self._protocol == "classic" else {}),
            }
        )

    def _broker_topic(self, topic: str) -> str:
        return next(name for name, ours in self._names.items() if ours == topic)

    def _place(self, slot: Slot) -> Place:
        return self._broker_topic(slot.topic), slot.partition

    def _slot(self, place: Place) -> Slot:
        return Slot(self._names[place[0]], place[1])
