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

    def __init__(self, database: Database, options: FeedOptions) -> None:
        self._database = database
        self._options = options
        self.read_all = False  # whether the last page reached the end of its partitions

    async def next(self, partitions: Sequence[OwnedPartition]) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records of these partitions."""
        now = asyncio.get_running_loop().time()
        ready = {p.slot: p for p in partitions if not p.leaving and p.retry_at <= now}
        if not ready:
            self.read_all = True
            return []
        self.read_all = False
        generations = {slot: p.generation for slot, p in ready.items()}
        options, starts = self._options, {slot: p.next for slot, p in ready.items()}
        rows = await fetch(self._database, starts, most=options.batch, most_bytes=options.batch_bytes)
        for slot, partition in ready.items():
            if partition.generation == generations[slot]:
                partition.retry_at = 0.0
        records: list[tuple[OwnedPartition, Record]] = []
        for row in rows:
            partition = ready[TopicPartition(row["topic"], row["partition"])]
            if partition.generation == generations[partition.slot]:
                records.append((partition, record_of(row, epoch=partition.epoch)))
                partition.next = row["offset"] + 1
        ends = {TopicPartition(row["topic"], row["partition"]): row["ends"] for row in rows}
        self.read_all = (
            len(rows) < options.batch
            and sum(row["bytes"] for row in rows) < options.batch_bytes
            and all(ready[slot].next >= end for slot, end in ends.items())
        )
        return records


class NewRecords:
    """Reads new records, only from partitions that may have some."""

    def __init__(self, database: Database, options: FeedOptions, listen: Listen, *, process: str) -> None:
        self._database = database
        self._pages = Pages(database, options)
        self._options = options
        self._listen = listen
        self._sender = process if options.known_locally else ""

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Self]:
        """Listen for wake-ups inside the context."""
        tenant = await self._database.tenant()
        channels = {topic_channel(tenant, topic): topic for topic in self._options.topics}
        async with self._listen(*channels) as wake:
            self._changed = ChangedPartitions(wake, channels, sender=self._sender)
            yield self

    def check_again(self) -> None:
        """Make the next `take` check all partitions without waiting."""
        self._pages.read_all = False
        self._changed.check_all()

    async def take(
        self, held: Mapping[TopicPartition, OwnedPartition], wait: float
    ) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records, or an empty list if none arrive within `wait` seconds."""
        changed: Collection[TopicPartition] | None = None
        if self._pages.read_all:
            now = asyncio.get_running_loop().time()
            due = [max(p.retry_at - now, 0) for p in held.values() if p.retry_at and not p.leaving]
            changed = await self._changed.wait_for_changes(min([wait, *due]))
        else:
            self._changed.note_all_checked()
        return await self._pages.next([p for p in held.values() if changed is None or p.retry_at or p.slot in changed])


class PostgresFeed:
    """The partitions that a group member owns, and their records."""

    def __init__(
        self, database: Database, group: str, options: FeedOptions, listen: Listen, notifications: Notifications
    ) -> None:
        self.positions = Positions(database, group, uuid7())
        self._new_records = NewRecords(database, options, listen, process=notifications.name)
        self._partitions = OwnedPartitions(database, self.positions, options, listen, notifications, self)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._new_records.listening())
            await stack.enter_async_context(self._partitions)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def partitions(self) -> Mapping[TopicPartition, OwnedPartition]:
        """The owned partitions."""
        return self._partitions.held

    async def take(self, wait: float) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records, or an empty list if none arrive within `wait` seconds."""
        return await self._new_records.take(self._partitions.held, wait)

    def rewind(self, partition: OwnedPartition, wait: float) -> None:
        """Deliver again from the partition's position, after `wait` seconds."""
        partition.generation += 1
        partition.next = partition.position
        partition.retry_at = asyncio.get_running_loop().time() + wait
        self._new_records.check_again()

    def lose(self, partition: OwnedPartition) -> None:
        """Stop reading a partition that another consumer may own."""
        self._partitions.lose(partition)

    def mark_in_process(self, slots: set[TopicPartition]) -> None:
        """Set the partitions whose records are being processed."""
        self._partitions.mark_in_process(slots)

    # The `Reader` protocol of `OwnedPartitions`.

    async def begin(self, partitions: Sequence[OwnedPartition]) -> None:
        """Make the next `take` check all partitions."""
        self._new_records.check_again()

    def end(self, slots: Collection[TopicPartition]) -> None:
        """Do nothing: only owned partitions are read."""

    async def on_renewed(self) -> None:
        """Do nothing."""


class GrouplessFeed:
    """The records of some topics without a group: each reader gets all of them, and no position is stored."""

    def __init__(self, database: Database, options: FeedOptions, listen: Listen, notifications: Notifications) -> None:
        self._database = database
        self._options = options
        self._new_records = NewRecords(database, options, listen, process=notifications.name)
        self._stack = AsyncExitStack()
        self._held: dict[TopicPartition, OwnedPartition] = {}

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._new_records.listening())
            for row in await self._database.all(sql("ends"), list(self._options.topics)):
                slot = TopicPartition(row["topic"], row["partition"])
                start = row["next_offset"] if self._options.start == "end" else 0
                self._held[slot] = OwnedPartition(slot, 0, start, start, None, 0, None)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def partitions(self) -> Mapping[TopicPartition, OwnedPartition]:
        """All partitions of the topics."""
        return self._held

    async def take(self, wait: float) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records, or an empty list if none arrive within `wait` seconds."""
        return await self._new_records.take(self._held, wait)

    def rewind(self, partition: OwnedPartition, wait: float) -> None:
        """Do nothing: nothing is delivered again."""

    def lose(self, partition: OwnedPartition) -> None:
        """Do nothing: partitions have no other owner."""

    def mark_in_process(self, slots: set[TopicPartition]) -> None:
        """Do nothing: no other consumer waits for these partitions."""
