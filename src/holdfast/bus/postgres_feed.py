"""Feeds from PostgreSQL: a group member reads the partitions that it owns; a reader without a group reads all."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Self

from holdfast.bus.assignment import TopicPartition
from holdfast.bus.feed_options import FeedOptions, Listen
from holdfast.bus.notifications import Notifications, channel
from holdfast.bus.owned_partitions import OwnedPartitions
from holdfast.bus.partition_hints import ChangedPartitions
from holdfast.bus.positions import OwnedPartition, Positions
from holdfast.bus.records import Record, record_of
from holdfast.core.ids import TenantId, uuid7
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

sql = statements(__name__)


def topic_channel(tenant: TenantId, topic: str) -> str:
    """Return the channel on which the readers of a topic are woken."""
    return channel("topic", tenant, topic)


async def fetch(database: Database, starts: Mapping[TopicPartition, int], *, most: int, most_bytes: int) -> list[Row]:
    """Return stored records of partitions, each from an offset on. Partitions that have records share the limits."""
    if len(starts) == 1:
        ((slot, start),) = starts.items()
        return await database.all(sql("fetch_one"), *slot, start, most, most_bytes)
    columns = [slot.topic for slot in starts], [slot.partition for slot in starts], list(starts.values())
    return await database.all(sql("fetch"), *columns, most, most_bytes)


class Pages:
    """Reads the next records of partitions in bounded pages."""

    def __init__(self, database: Database, reading: FeedOptions) -> None:
        self._database = database
        self._reading = reading
        self.read_all = False  # whether the last page reached the end of its partitions

    async def next(self, holdings: Sequence[OwnedPartition]) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records of these partitions."""
        now = asyncio.get_running_loop().time()
        ready = {h.slot: h for h in holdings if not h.leaving and h.retry_at <= now}
        if not ready:
            self.read_all = True
            return []
        self.read_all = False
        generations = {slot: h.generation for slot, h in ready.items()}
        reading, starts = self._reading, {slot: h.next for slot, h in ready.items()}
        rows = await fetch(self._database, starts, most=reading.batch, most_bytes=reading.batch_bytes)
        for slot, holding in ready.items():
            if holding.generation == generations[slot]:
                holding.retry_at = 0.0
        records: list[tuple[OwnedPartition, Record]] = []
        for row in rows:
            holding = ready[TopicPartition(row["topic"], row["partition"])]
            if holding.generation == generations[holding.slot]:
                records.append((holding, record_of(row, epoch=holding.epoch)))
                holding.next = row["offset"] + 1
        ends = {TopicPartition(row["topic"], row["partition"]): row["ends"] for row in rows}
        self.read_all = (
            len(rows) < reading.batch
            and sum(row["bytes"] for row in rows) < reading.batch_bytes
            and all(ready[slot].next >= end for slot, end in ends.items())
        )
        return records


class NewRecords:
    """Reads new records, only from partitions that may have some."""

    def __init__(self, database: Database, reading: FeedOptions, listen: Listen, *, process: str) -> None:
        self._database = database
        self._pages = Pages(database, reading)
        self._reading = reading
        self._listen = listen
        self._teller = process if reading.known_locally else ""

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Self]:
        """Listen for wake-ups inside the context."""
        tenant = await self._database.tenant()
        channels = {topic_channel(tenant, topic): topic for topic in self._reading.topics}
        async with self._listen(*channels) as wake:
            self._news = ChangedPartitions(wake, channels, teller=self._teller)
            yield self

    def again(self) -> None:
        """Make the next `take` check all partitions without waiting."""
        self._pages.read_all = False
        self._news.look()

    async def take(
        self, held: Mapping[TopicPartition, OwnedPartition], wait: float
    ) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records, or an empty list if none arrive within `wait` seconds."""
        news: Collection[TopicPartition] | None = None
        if self._pages.read_all:
            now = asyncio.get_running_loop().time()
            due = [max(h.retry_at - now, 0) for h in held.values() if h.retry_at and not h.leaving]
            news = await self._news.come(min([wait, *due]))
        else:
            self._news.looked()
        return await self._pages.next([h for h in held.values() if news is None or h.retry_at or h.slot in news])


class PostgresFeed:
    """The partitions that a group member owns, and their records."""

    def __init__(
        self, database: Database, group: str, reading: FeedOptions, listen: Listen, wakes: Notifications
    ) -> None:
        self.positions = Positions(database, group, uuid7())
        self._looking = NewRecords(database, reading, listen, process=wakes.name)
        self._partitions = OwnedPartitions(database, self.positions, reading, listen, wakes, self)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._looking.listening())
            await stack.enter_async_context(self._partitions)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def holdings(self) -> Mapping[TopicPartition, OwnedPartition]:
        """The owned partitions."""
        return self._partitions.held

    async def take(self, wait: float) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records, or an empty list if none arrive within `wait` seconds."""
        return await self._looking.take(self._partitions.held, wait)

    def rewind(self, holding: OwnedPartition, wait: float) -> None:
        """Deliver again from the holding's position, after `wait` seconds."""
        holding.generation += 1
        holding.next = holding.position
        holding.retry_at = asyncio.get_running_loop().time() + wait
        self._looking.again()

    def lose(self, holding: OwnedPartition) -> None:
        """Stop reading a partition that another consumer may own."""
        self._partitions.lose(holding)

    def hold(self, slots: set[TopicPartition]) -> None:
        """Set the partitions whose records are being processed."""
        self._partitions.hold(slots)

    # The `Reader` protocol of `OwnedPartitions`.

    async def begin(self, holdings: Sequence[OwnedPartition]) -> None:
        """Make the next `take` check all partitions."""
        self._looking.again()

    def end(self, slots: Collection[TopicPartition]) -> None:
        """Do nothing: only owned partitions are read."""

    async def renewed(self) -> None:
        """Do nothing."""


class GrouplessFeed:
    """The records of some topics without a group: each reader gets all of them, and no position is stored."""

    def __init__(self, database: Database, reading: FeedOptions, listen: Listen, wakes: Notifications) -> None:
        self._database = database
        self._reading = reading
        self._looking = NewRecords(database, reading, listen, process=wakes.name)
        self._stack = AsyncExitStack()
        self._held: dict[TopicPartition, OwnedPartition] = {}

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._looking.listening())
            for row in await self._database.all(sql("ends"), list(self._reading.topics)):
                slot = TopicPartition(row["topic"], row["partition"])
                start = row["next_offset"] if self._reading.start == "end" else 0
                self._held[slot] = OwnedPartition(slot, 0, start, start, None, 0, None)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def holdings(self) -> Mapping[TopicPartition, OwnedPartition]:
        """All partitions of the topics."""
        return self._held

    async def take(self, wait: float) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records, or an empty list if none arrive within `wait` seconds."""
        return await self._looking.take(self._held, wait)

    def rewind(self, holding: OwnedPartition, wait: float) -> None:
        """Do nothing: nothing is delivered again."""

    def lose(self, holding: OwnedPartition) -> None:
        """Do nothing: partitions have no other owner."""

    def hold(self, slots: set[TopicPartition]) -> None:
        """Do nothing: no other consumer waits for these partitions."""
