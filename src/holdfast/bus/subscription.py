"""Subscriptions: deliver records to a consumer, commit them, and retry those that fail.

    async with engine.log.subscribe(["orders"], group="billing") as records:
        async for record in records:
            async with records.handle(record) as tx:
                ...

A record is delivered at least once, in order per key. If it is committed in the transaction of its effect, the effect
happens exactly once. Asking for the next record means that the previous one is no longer being processed.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Protocol, Self, cast
from uuid import UUID
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import force_setattr

from holdfast.bus.assignment import TopicPartition
from holdfast.bus.notifications import POLL
from holdfast.bus.positions import OwnedPartition, Positions, partition_lost
from holdfast.bus.records import Record, record_of
from holdfast.bus.retry_policy import is_hopeless, wait_before
from holdfast.core.errors import Busy, HoldfastError, InvalidInput, Overloaded, Unavailable
from holdfast.postgres.database import Database, Transaction

log = logging.getLogger(__name__)


class Feed(Protocol):
    """The source of a subscription's records. It owns partitions and reads them in order."""

    @property
    def partitions(self) -> Mapping[TopicPartition, OwnedPartition]:
        """The owned partitions."""
        ...

    async def take(self, wait: float) -> list[tuple[OwnedPartition, Record]]:
        """Return the next records, a bounded number, or an empty list if none arrive within `wait` seconds."""
        ...

    def rewind(self, partition: OwnedPartition, wait: float) -> None:
        """Deliver again from the partition's position, after `wait` seconds."""
        ...

    def lose(self, partition: OwnedPartition) -> None:
        """Stop reading a partition that another consumer may own."""
        ...

    def mark_in_process(self, slots: set[TopicPartition]) -> None:
        """Set the partitions whose records are being processed."""
        ...


BufferedRecord = tuple[OwnedPartition, int, Record]  # with the generation of the partition at the fetch
Place = tuple[str, int, int, bool, UUID | None]  # identifies a record


class RetryLimits(msgspec.Struct, frozen=True):
    """When to give up on a failing record."""

    max_attempts: int
    max_failing: timedelta


class Subscription:
    """Delivers records to one consumer, and commits them."""

    def __init__(self, database: Database, feed: Feed, positions: Positions | None, limits: RetryLimits) -> None:
        self._database = database
        self._feed = feed
        self._positions = positions
        self._limits = limits
        self._buffer: deque[BufferedRecord] = deque()
        self._turns: WeakValueDictionary[TopicPartition, asyncio.Lock] = WeakValueDictionary()  # held by `handle` calls
        self._transactions: dict[Place, Transaction] = {}  # records in `handle`, each with its transaction
        self._committed: set[Place] = set()  # those that are already committed in that transaction
        self._checked_at = 0.0
        self._closed = False

    def close(self) -> None:
        """Refuse to deliver and to handle more records."""
        self._closed = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        return (await self.batch(1))[0]

    async def batch(self, most: int = 1000) -> list[Record]:
        """Return the next records, all that are available up to `most`. Wait until there is at least one."""
        if most < 1:
            raise InvalidInput(f"the batch size is {most}", next="Use at least 1.")
        self._feed.mark_in_process(set())
        while True:
            self._check_open()
            records = self._take_ready(most)
            self._feed.mark_in_process(
                {TopicPartition(record.topic, record.partition) for record in records if not record.dead_letter}
            )
            try:
                if records and (records[0].dead_letter is not None or self._is_suspect(records[0])):
                    records = await self._examine(records)
                if records:
                    return records
                await self._fill()
            except (Unavailable, Overloaded) as error:
                log.warning("could not read records; retrying: %s", error)
                await asyncio.sleep(POLL)

    async def commit(self, *records: Record, tx: Transaction | None = None) -> None:
        """Commit these records, and all before them in their partitions: now, or when `tx` commits.

        Raise Busy if another consumer owns a partition by now, so that `tx` does not commit either.
        """
        positions = self._group()
        if any(self._transactions.get(_place(record), tx) is not tx for record in records):
            raise InvalidInput(
                "the record is being handled",
                why="`handle` commits its position in the same transaction as the effect",
                next="Remove this commit: `handle` commits the record.",
            )
        records = tuple(record for record in records if _place(record) not in self._committed)
        for record in records:
            if record.dead_letter is not None:
                await positions.settle(record, tx=tx)
        last = {
            TopicPartition(record.topic, record.partition): record for record in records if record.dead_letter is None
        }
        for record in last.values():
            self._check_not_committed(record)
        try:
            partitions = {slot: self._partition_of(record) for slot, record in last.items()}
            if len(last) == 1:
                ((slot, record),) = last.items()
                await positions.commit(partitions[slot], record, tx=tx)
            elif last and tx is None:
                async with self._database.transaction() as own:
                    await positions.commit_all(list(last.values()), tx=own)
            elif last and tx is not None:
                await positions.commit_all(list(last.values()), tx=tx)
        except Busy:
            for record in last.values():  # none of them is committed
                self._lose(record)
            raise
        self._committed.update(place for place in map(_place, records) if place in self._transactions)
        for slot, record in last.items():
            if tx is None:
                _move(partitions[slot], record)
            else:
                tx.after_commit.append(partial(_move, partitions[slot], record))

    async def fail(self, record: Record, error: BaseException | str) -> None:
        """Count a failed attempt. The record is delivered again after a back-off, and finally becomes a dead letter.

        Its partition waits meanwhile. The records before it in the partition are committed.
        """
        positions = self._group()
        message = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        if record.dead_letter is not None:
            await positions.fail_again(record, message)
            return
        partition = self._partition_of(record)
        now = await self._database.now()
        known = partition.failing_since if _is_at(partition, record) else None
        attempts = (partition.attempts if _is_at(partition, record) else 0) + 1
        limits = self._limits
        try:
            if is_hopeless(
                attempts, now - (known or now), max_attempts=limits.max_attempts, max_failing=limits.max_failing
            ):
                await self._bury(partition, record, message, attempts)
                return
            wait = wait_before(attempts)
            await positions.fail(partition, record, message, wait)
        except Busy:
            self._lose(record)
            raise
        partition.position = record.position if record.foreign else record.offset
        if record.broker_offset is not None:
            partition.broker_position = record.broker_offset
        partition.attempts, partition.failing_since = attempts, known or now
        partition.deaths, partition.on_trial = 0, False
        self._feed.rewind(partition, wait.total_seconds())

    @asynccontextmanager
    async def handle(self, record: Record) -> AsyncGenerator[Transaction]:
        """Open a transaction for the record's effect. It commits with the position, so the effect happens exactly once.

        An exception rolls it back and counts as a failed attempt. It is not raised, so that the loop goes on.
        """
        self._group()
        self._check_open()
        try:
            # In order of arrival: a commit includes all records before it in the partition.
            async with self._turns.setdefault(TopicPartition(record.topic, record.partition), asyncio.Lock()):
                stack = AsyncExitStack()
                tx = self._transactions[_place(record)] = await self._begin(stack, record)
                try:
                    async with stack:
                        yield tx
                        await self.commit(record, tx=tx)
                except Exception as error:
                    traced = not isinstance(error, HoldfastError)  # its message says what is wrong
                    log.warning("an attempt at %s failed: %.500r", _describe(record), error, exc_info=traced)
                    del self._transactions[_place(record)]
                    await self._count_failure(record, error)
        except BaseException:  # cancelled: not a failed attempt, but the record is not done either
            self._deliver_again(record)
            raise
        finally:
            self._transactions.pop(_place(record), None)
            self._committed.discard(_place(record))

    async def _begin(self, stack: AsyncExitStack, record: Record) -> Transaction:
        """Open a transaction. If the database is unavailable, wait for it: that is no failed attempt at the record."""
        while True:
            try:
                return await stack.enter_async_context(self._database.transaction())
            except (Unavailable, Overloaded) as error:
                log.warning("%s is waiting for the database: %s", _describe(record), error)
                await asyncio.sleep(POLL)

    async def _count_failure(self, record: Record, error: Exception) -> None:
        try:
            await self.fail(record, error)
        except Busy:
            log.info("%s will be delivered again, here or to another consumer", _describe(record))
        except (Unavailable, Overloaded) as unavailable:
            log.warning("could not count the attempt at %s; it will be repeated: %s", _describe(record), unavailable)
            self._deliver_again(record, POLL)

    def _deliver_again(self, record: Record, wait: float = 0) -> None:
        partition = self._feed.partitions.get(TopicPartition(record.topic, record.partition))
        if partition is not None and record.dead_letter is None and partition.generation == record.generation:
            self._feed.rewind(partition, wait)

    def _take_ready(self, most: int) -> list[Record]:
        """Return the first buffered records to deliver together. A suspect is returned alone and stays buffered."""
        records: list[Record] = []
        while self._buffer and len(records) < most:
            partition, generation, record = self._buffer[0]
            redriven = record.dead_letter is not None
            if redriven or self._is_next(partition, generation, record):
                suspect = self._is_suspect(record)
                if records and (suspect or redriven != (records[0].dead_letter is not None)):
                    break
                records.append(record)
                if suspect:
                    break
            self._buffer.popleft()
        return records

    def _is_next(self, partition: OwnedPartition, generation: int, record: Record) -> bool:
        """Whether the partition is still ours and not rewound since the record was read, and the record is not done."""
        if (
            self._feed.partitions.get(partition.slot) is not partition
            or partition.leaving
            or generation != partition.generation
        ):
            return False
        if record.foreign:
            return partition.broker_position is None or cast(int, record.broker_offset) >= partition.broker_position
        return record.offset >= partition.position

    def _is_suspect(self, record: Record) -> bool:
        """Whether the record is next in a partition where so many consumers died that it may be the cause."""
        partition = self._feed.partitions.get(TopicPartition(record.topic, record.partition))
        if partition is None or partition.deaths < self._limits.max_attempts or record.dead_letter is not None:
            return False
        return _is_at(partition, record)

    async def _examine(self, records: Sequence[Record]) -> list[Record]:
        """Return the dead letters that are still to be redelivered, or the suspect if it gets one more trial."""
        if records[0].dead_letter is not None:
            taken = await self._group().take_redriven([record.dead_letter for record in records if record.dead_letter])
            return [record for record in records if record.dead_letter in taken]
        (record,) = records
        try:
            partition = self._partition_of(record)
            if partition.on_trial:
                await self._bury(partition, record, "its consumers stopped responding", partition.deaths)
                return []
            await self._group().put_on_trial(partition)
        except Busy:
            self._lose(record)
            return []
        partition.on_trial = True
        self._buffer.popleft()
        return [record]

    def _lose(self, record: Record) -> None:
        """Stop reading a partition that another consumer may own. Its records are delivered again, here or there."""
        partition = self._feed.partitions.get(TopicPartition(record.topic, record.partition))
        if partition is not None and (partition.epoch, partition.generation) == (record.epoch, record.generation):
            self._feed.lose(partition)

    async def _bury(self, partition: OwnedPartition, record: Record, error: str, attempts: int) -> None:
        log.warning("%s is a dead letter after %d attempts: %.500r", _describe(record), attempts, error)
        await self._group().bury(partition, record, error, attempts)
        _move(partition, record)

    async def _fill(self) -> None:
        if self._positions is not None:
            await self._look_for_redriven(self._positions)
        if not self._buffer:
            for partition, record in await self._feed.take(POLL):
                if partition.generation:
                    force_setattr(record, "generation", partition.generation)
                self._buffer.append((partition, partition.generation, record))

    async def _look_for_redriven(self, positions: Positions) -> None:
        now = asyncio.get_running_loop().time()
        partitions = dict(self._feed.partitions)
        if now < self._checked_at + POLL or not partitions:
            return
        self._checked_at = now
        for row in await positions.list_redriven(partitions):
            partition = partitions[TopicPartition(row["topic"], row["partition"])]
            self._buffer.append((partition, partition.generation, record_of(row, dead_letter=row["dead_letter"])))

    def _check_not_committed(self, record: Record) -> None:
        partition = self._feed.partitions.get(TopicPartition(record.topic, record.partition))
        if partition is None or partition.epoch != record.epoch or record.foreign:
            return
        if record.offset < partition.position:
            raise Busy(f"{_describe(record)} is already committed", next="Continue with the next one.")

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInput("the subscription has ended", next="Use it inside `async with`, or subscribe again.")

    def _group(self) -> Positions:
        if self._positions is None:
            raise InvalidInput("the subscription cannot commit", why="it has no group", next="Subscribe with a group.")
        return self._positions

    def _partition_of(self, record: Record) -> OwnedPartition:
        partition = self._feed.partitions.get(TopicPartition(record.topic, record.partition))
        if partition is None or partition.epoch != record.epoch:
            raise partition_lost(TopicPartition(record.topic, record.partition))
        if partition.generation != record.generation:
            raise Busy(
                f"{_describe(record)} cannot be committed now",
                why="an attempt at this record, or at an earlier one in its partition, has failed",
                next="Skip it: it will be delivered again, in order.",
            )
        return partition


def _is_at(partition: OwnedPartition, record: Record) -> bool:
    """Whether the counted attempts are those of this record."""
    if record.broker_offset is not None and record.foreign:
        return partition.broker_position == record.broker_offset
    return partition.position == record.offset


def _move(partition: OwnedPartition, record: Record) -> None:
    partition.position = max(partition.position, record.position if record.foreign else record.offset + 1)
    if record.broker_offset is not None:
        partition.broker_position = max(partition.broker_position or 0, record.broker_offset + 1)
    partition.attempts, partition.failing_since, partition.deaths, partition.on_trial = 0, None, 0, False


def _describe(record: Record) -> str:
    return f"record {record.offset} of {record.topic}/{record.partition}"


def _place(record: Record) -> Place:
    return record.topic, record.partition, record.offset, record.foreign, record.dead_letter
