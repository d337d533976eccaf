"""Unpacks arrivals from Kafka into records: one of ours, some that Kafka has lost, a foreign one, or none.

Kafka may deliver a record twice, late, or not at all. Its offset in our log shows this: records that are not newer are
dropped, and missing ones are read from PostgreSQL. Foreign records have no such offset, and are taken as they come.
"""

import logging
from collections.abc import Callable, Sequence

from holdfast.bus.assignment import TopicPartition
from holdfast.bus.feed_options import FeedOptions
from holdfast.bus.kafka.record_format import (
    FORMER,
    IncomingRecord,
    foreign_record,
    is_elsewhere,
    log_offset,
    mark,
    mark_of,
    own_record,
    record_id,
)
from holdfast.bus.positions import OwnedPartition, Positions
from holdfast.bus.postgres_feed import fetch
from holdfast.bus.records import Record, record_of
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

sql = statements(__name__)
log = logging.getLogger(__name__)

UnpackedRecords = tuple[list[Record], bool]  # the records of an arrival, and whether these are all


class Unpacker:
    """Unpacks the arrivals of one consumer. Calls `on_recreated` for a topic that was removed and created again."""

    def __init__(
        self, database: Database, options: FeedOptions, positions: Positions, on_recreated: Callable[[str], None]
    ) -> None:
        self._database = database
        self._options = options
        self._positions = positions
        self._on_recreated = on_recreated
        self._marks: dict[str, bytes] = {}
        self._former: set[bytes] = set()

    async def begin(self) -> dict[str, int]:
        """Load the ids of the topics. Return their numbers of partitions."""
        tenant: TenantId = await self._database.tenant()
        rows = await self._database.all(sql("topic_ids"), list(self._options.topics))
        self._marks |= {row["name"]: mark(tenant, row["name"], row["id"]) for row in rows}
        return {row["name"]: row["partitions"] for row in rows}

    async def unpack(self, partition: OwnedPartition, arrival: IncomingRecord) -> UnpackedRecords:
        """Return the records of an arrival. If Kafka lost many before it, they are returned a page at a time."""
        topic = partition.slot.topic
        offset = log_offset(arrival, self._marks[topic])
        if offset is None:
            return await self._unpack_foreign(partition, arrival)
        if offset == FORMER:
            return await self._skip_other_topic(topic, arrival)
        if offset < partition.next:
            return [], True
        if offset == partition.next and not is_elsewhere(arrival):
            record = own_record(arrival, topic, offset, partition.epoch)
            if record is not None:
                partition.next = offset + 1
                return [record], True
        return await self._read_missing(partition, arrival, offset)

    async def overdue(self, partitions: Sequence[OwnedPartition]) -> list[tuple[OwnedPartition, Record]]:
        """Return records that Kafka acknowledged but did not deliver: it has a shorter retention, or lost them."""
        generations = {partition.slot: (partition, partition.generation) for partition in partitions}
        columns = [s.topic for s in generations], [s.partition for s in generations], [p.next for p in partitions]
        late = await self._database.all(sql("relayed"), *columns)
        if not late:
            return []
        ends = {TopicPartition(row["topic"], row["partition"]): row["position"] for row in late}
        starts = {slot: generations[slot][0].next for slot in ends}
        most, most_bytes = self._options.batch, self._options.batch_bytes
        found: list[tuple[OwnedPartition, Record]] = []
        for row in await fetch(self._database, starts, most=most, most_bytes=most_bytes):
            slot = TopicPartition(row["topic"], row["partition"])
            partition, generation = generations[slot]
            # Records that PostgreSQL has dropped may still come from Kafka.
            if partition.generation == generation and partition.next == row["offset"] < ends[slot]:
                partition.next += 1
                found.append((partition, record_of(row, epoch=partition.epoch)))
        return found

    async def _read_missing(self, partition: OwnedPartition, arrival: IncomingRecord, upto: int) -> UnpackedRecords:
        """Return missing records up to an offset from PostgreSQL. An arrival that our log does not have is foreign."""
        generation = partition.generation
        if not await self._database.value(sql("is_ours"), *partition.slot, upto, record_id(arrival)):
            return await self._unpack_foreign(partition, arrival)
        most, most_bytes = min(self._options.batch, upto - partition.next + 1), self._options.batch_bytes
        rows = await fetch(self._database, {partition.slot: partition.next}, most=most, most_bytes=most_bytes)
        rows = [row for row in rows if row["offset"] <= upto]
        if partition.generation != generation:  # rewound meanwhile
            return [], True
        partition.next = rows[-1]["offset"] + 1 if rows else upto + 1  # none: retention has dropped them
        return [record_of(row, epoch=partition.epoch) for row in rows], partition.next > upto

    async def _skip_other_topic(self, topic: str, arrival: IncomingRecord) -> UnpackedRecords:
        """Return no record for an arrival of another topic with the same name.

        Either its topic was removed, or ours was, and the arrival is of the topic that was created since.
        """
        topic_mark = mark_of(arrival)
        if topic_mark not in self._former:
            await self.begin()
            if topic_mark == self._marks[topic]:
                self._on_recreated(topic)
            else:
                self._former.add(topic_mark)
        return [], True

    async def _unpack_foreign(self, partition: OwnedPartition, arrival: IncomingRecord) -> UnpackedRecords:
        record, wrong = foreign_record(arrival, partition.slot.topic, partition.epoch, partition.next)
        if wrong is None:
            return [record], True
        # Its position is committed with later records: earlier ones may still be in process.
        log.warning("a record of %s is a dead letter: %s", partition.slot.topic, wrong)
        await self._positions.set_aside(record, wrong)
        return [], True
