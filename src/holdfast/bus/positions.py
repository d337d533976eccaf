"""Positions: how far a group has read. They are in PostgreSQL, even if the records come from Kafka.

A partition has one owner at a time. Its epoch is the fencing token: only the owner moves the position. A consumer that
lost the partition without noticing does no harm: its commit fails, and so does the transaction of the commit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from holdfast.bus.assignment import TopicPartition
from holdfast.bus.records import Record
from holdfast.core.errors import Busy
from holdfast.core.text import dumps, store
from holdfast.postgres.database import Database, Row, Statements, Transaction
from holdfast.postgres.sql import statements

MAX_ERROR = 10_000  # characters of an error that are stored

sql = statements(__name__)


@dataclass(slots=True)
class OwnedPartition:
    """A partition that a consumer owns. `position` is the next offset to commit, `next` the next one to deliver."""

    slot: TopicPartition
    epoch: int
    position: int
    next: int
    broker_position: int | None
    attempts: int
    failing_since: datetime | None
    deaths: int = 0  # owners that died since the position last moved
    on_trial: bool = False
    retry_at: float = 0.0  # by the loop's clock
    leaving: bool = False  # another consumer should have it
    generation: int = 0  # grows with each rewind: records of an older one are dropped
    passed: int = 0  # on Kafka: the offset after the last unpacked arrival
    expected: int = 0  # on Kafka: its position once all delivered records are committed


class Positions:
    """Reads and moves the positions of a group for one of its members."""

    def __init__(self, database: Database, group: str, member: UUID) -> None:
        self._database = database
        self.group = group
        self.member = member

    async def claim(
        self, slots: Sequence[TopicPartition], *, start: str, tx: Transaction | None = None
    ) -> list[OwnedPartition]:
        """Claim these partitions, except those of other live members. Return the claimed ones."""
        if not slots:
            return []
        within = await self._database.within(tx)
        rows = await within.all(
            sql("claim_partitions"),
            self.group,
            self.member,
            [s.topic for s in slots],
            [s.partition for s in slots],
            start == "end",
        )
        return [_owned_partition(row) for row in rows]

    async def release(self, epochs: Mapping[TopicPartition, int], *, tx: Transaction | None = None) -> None:
        """Release partitions, each if this member still owns it at this epoch."""
        if epochs:
            within = await self._database.within(tx)
            columns = [s.topic for s in epochs], [s.partition for s in epochs], list(epochs.values())
            await within.run(sql("release_partitions"), self.group, self.member, *columns)

    async def commit(self, partition: OwnedPartition, record: Record, *, tx: Transaction | None = None) -> None:
        """Commit everything up to and including `record`."""
        within = await self._database.within(tx)
        moved = await within.run(
            sql("commit_position"), self.group, *partition.slot, self.member, record.epoch, *_after(record)
        )
        if not moved:
            raise partition_lost(partition.slot)

    async def commit_all(self, records: Sequence[Record], *, tx: Transaction) -> None:
        """Commit everything up to and including each of these records, one per partition."""
        rows = [(r.topic, r.partition, r.epoch, *_after(r)) for r in records]
        columns = [list(column) for column in zip(*rows, strict=True)]
        within = await self._database.within(tx)
        if await within.run(sql("commit_positions"), self.group, self.member, *columns) != len(records):
            raise partition_lost(TopicPartition(records[0].topic, records[0].partition))

    async def pass_on_kafka(self, partitions: Sequence[OwnedPartition], places: Sequence[int]) -> None:
        """Move positions on Kafka to offsets before which everything is done, for partitions still owned."""
        rows = [(*p.slot, p.epoch, p.position, place) for p, place in zip(partitions, places, strict=True)]
        columns = [list(column) for column in zip(*rows, strict=True)]
        await self._database.run(sql("pass_on_kafka"), self.group, self.member, *columns)

    async def fail(self, partition: OwnedPartition, record: Record, error: str, wait: timedelta) -> None:
        """Commit everything before `record`, and count a failed attempt at it."""
        position = record.position if record.foreign else record.offset
        moved = await self._database.run(
            sql("fail_record"),
            self.group,
            *partition.slot,
            self.member,
            record.epoch,
            position,
            record.broker_offset,
            _error(error),
            wait,
        )
        if not moved:
            raise partition_lost(partition.slot)

    async def put_on_trial(self, partition: OwnedPartition) -> None:
        """Put the next record on trial: it is delivered alone. If this consumer dies too, the record is the cause."""
        if not await self._database.run(sql("try_record"), self.group, *partition.slot, self.member, partition.epoch):
            raise partition_lost(partition.slot)

    async def bury(self, partition: OwnedPartition, record: Record, error: str, attempts: int) -> None:
        """Make the record a dead letter, and commit it."""
        async with self._database.transaction() as tx:
            await self.commit(partition, record, tx=tx)
            await bury(tx, self.group, record, error, attempts)

    async def set_aside(self, record: Record, error: str) -> None:
        """Store an unreadable record as a dead letter, only once if it is delivered repeatedly."""
        await bury(self._database, self.group, record, error, 1)

    async def list_redriven(self, slots: Mapping[TopicPartition, OwnedPartition]) -> list[Row]:
        """Return the redriven dead letters of these partitions."""
        columns = [slot.topic for slot in slots], [slot.partition for slot in slots]
        return await self._database.all(sql("redriven"), self.group, *columns)

    async def take_redriven(self, ids: Sequence[UUID]) -> set[UUID]:
        """Take redriven dead letters for delivery. Return the ids of those that were still redriven."""
        return {row["id"] for row in await self._database.all(sql("take_redriven"), ids)}

    async def settle(self, record: Record, *, tx: Transaction | None = None) -> None:
        """Delete a redriven dead letter whose record is done."""
        within = await self._database.within(tx)
        if not await within.run(sql("settle_dead_letter"), record.dead_letter):
            raise Busy("the dead letter no longer exists", why="another consumer processed it, or someone dropped it")

    async def fail_again(self, record: Record, error: str) -> None:
        """Store the error of a redriven dead letter that failed again."""
        await self._database.run(sql("fail_dead_letter"), record.dead_letter, _error(error))


async def bury(within: Statements, group: str, record: Record, error: str, attempts: int) -> None:
    """Store a record that a group gives up as a dead letter, with all its data."""
    key = None if record.key is None else store(record.key)
    await within.run(
        sql("bury_record"), group, record.topic, record.partition, record.offset, record.at, record.id, key,
        dumps(record.headers), dumps(record.value), _error(error), attempts,
    )  # fmt: skip


def partition_lost(slot: TopicPartition) -> Busy:
    """Return the error for a partition that this consumer no longer owns."""
    return Busy(
        f"this consumer no longer owns partition {slot.partition} of {slot.topic}",
        why="another consumer of the group has taken over, or the record was already committed",
        next="Skip the record and continue with the next one.",
    )


def _after(record: Record) -> tuple[int, int | None, bool]:
    """Return our position and Kafka's after a record, and whether Kafka's is the one that must move."""
    position = record.position if record.foreign else record.offset + 1
    return position, None if record.broker_offset is None else record.broker_offset + 1, record.foreign


def _error(error: str) -> str:
    return store(error[:MAX_ERROR])


def _owned_partition(row: Row) -> OwnedPartition:
    position, broker = cast(int, row["position"]), cast("int | None", row["broker_position"])
    slot = TopicPartition(row["topic"], row["partition"])
    attempts, since = row["attempts"], row["failing_since"]
    partition = OwnedPartition(
        slot, row["epoch"], position, position, broker, attempts, since, row["deaths"], row["on_trial"]
    )
    partition.retry_at = row["wait"]
    return partition
