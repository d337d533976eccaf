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

Found = tuple[list[Record], bool]  # the records of an arrival, and whether these are all


class Unpacker:
    """Unpacks the arrivals of one consumer. Calls `renewed` for a topic that was removed and created again."""

    def __init__(
        self, database: Database, reading: FeedOptions, positions: Positions, renewed: Callable[[str], None]
    ) -> None:
        self._database = database
        self._reading = reading
        self._positions = positions
        self._renewed = renewed
        self._marks: dict[str, bytes] = {}
        self._former: set[bytes] = set()

    async def begin(self) -> dict[str, int]:
        """Load the ids of the topics. Return their numbers of partitions."""
        tenant: TenantId = await self._database.tenant()
        rows = await self._database.all(sql("topic_ids"), list(self._reading.topics))
        self._marks |= {row["name"]: mark(tenant, row["name"], row["id"]) for row in rows}
        return {row["name"]: row["partitions"] for row in rows}

    async def unpack(self, holding: OwnedPartition, arrival: IncomingRecord) -> Found:
        """Return the records of an arrival. If Kafka lost many before it, they are returned a page at a time."""
        topic = holding.slot.topic
        offset = log_offset(arrival, self._marks[topic])
        if offset is None:
            return await self._foreign(holding, arrival)
        if offset == FORMER:
            return await self._of_another_topic(topic, arrival)
        if offset < holding.next:
            return [], True
        if offset == holding.next and not is_elsewhere(arrival):
            record = own_record(arrival, topic, offset, holding.epoch)
            if record is not None:
                holding.next = offset + 1
                return [record], True
        return await self._missing(holding, arrival, offset)

    async def overdue(self, holdings: Sequence[OwnedPartition]) -> list[tuple[OwnedPartition, Record]]:
        """Return records that Kafka acknowledged but did not deliver: it has a shorter retention, or lost them."""
        generations = {holding.slot: (holding, holding.generation) for holding in holdings}
        columns = [s.topic for s in generations], [s.partition for s in generations], [h.next for h in holdings]
        late = await self._database.all(sql("relayed"), *columns)
        if not late:
            return []
        ends = {TopicPartition(row["topic"], row["partition"]): row["position"] for row in late}
        starts = {slot: generations[slot][0].next for slot in ends}
        most, most_bytes = self._reading.batch, self._reading.batch_bytes
        found: list[tuple[OwnedPartition, Record]] = []
        for row in await fetch(self._database, starts, most=most, most_bytes=most_bytes):
            slot = TopicPartition(row["topic"], row["partition"])
            holding, generation = generations[slot]
            # Records that PostgreSQL has dropped may still come from Kafka.
            if holding.generation == generation and holding.next == row["offset"] < ends[slot]:
                holding.next += 1
                found.append((holding, record_of(row, epoch=holding.epoch)))
        return found

    async def _missing(self, holding: OwnedPartition, arrival: IncomingRecord, upto: int) -> Found:
        """Return missing records up to an offset from PostgreSQL. An arrival that our log does not have is foreign."""
        generation = holding.generation
        if not await self._database.value(sql("is_ours"), *holding.slot, upto, record_id(arrival)):
            return await self._foreign(holding, arrival)
        most, most_bytes = min(self._reading.batch, upto - holding.next + 1), self._reading.batch_bytes
        rows = await fetch(self._database, {holding.slot: holding.next}, most=most, most_bytes=most_bytes)
        rows = [row for row in rows if row["offset"] <= upto]
        if holding.generation != generation:  # rewound meanwhile
            return [], True
        holding.next = rows[-1]["offset"] + 1 if rows else upto + 1  # none: retention has dropped them
        return [record_of(row, epoch=holding.epoch) for row in rows], holding.next > upto

    async def _of_another_topic(self, topic: str, arrival: IncomingRecord) -> Found:
        """Return no record for an arrival of another topic with the same name.

        Either its topic was removed, or ours was, and the arrival is of the topic that was created since.
        """
        told = mark_of(arrival)
        if told not in self._former:
            await self.begin()
            if told == self._marks[topic]:
                self._renewed(topic)
            else:
                self._former.add(told)
        return [], True

    async def _foreign(self, holding: OwnedPartition, arrival: IncomingRecord) -> Found:
        record, wrong = foreign_record(arrival, holding.slot.topic, holding.epoch, holding.next)
        if wrong is None:
            return [record], True
        # Its position is committed with later records: earlier ones may still be in process.
        log.warning("a record of %s is a dead letter: %s", holding.slot.topic, wrong)
        await self._positions.set_aside(record, wrong)
        return [], True
