"""Gauges of the log with Kafka, including records of foreign producers, which PostgreSQL does not know."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from holdfast.bus.gauges import Gauges, GroupGauge, TopicGauge
from holdfast.bus.kafka.brokers import Broker
from holdfast.bus.kafka.kafka_lag import GroupProgress, KafkaLag, PartitionLag
from holdfast.bus.kafka.relay import GROUP
from holdfast.postgres.database import Row
from holdfast.postgres.sql import statements

sql = statements(__name__)


class KafkaGauges(Gauges):
    """Reads the gauges from PostgreSQL and from the broker."""

    def __init__(self, *args: Any, broker: Broker, unread: KafkaLag) -> None:
        super().__init__(*args)
        self._broker = broker
        self._unread = unread

    async def topics(self) -> list[TopicGauge]:
        """Return a gauge per topic."""
        gauges = await super().topics()
        places = [
            [(self._broker.name(one.tenant, one.topic), number) for number in range(one.partitions)] for one in gauges
        ]
        ranges = await self._unread.ranges({place for each in places for place in each})
        ends = [sum(ranges[place].end for place in each if place in ranges) for each in places]
        return [replace(one, records=max(one.records, end)) for one, end in zip(gauges, ends, strict=True)]

    async def groups(self) -> list[GroupGauge]:
        """Return a gauge per group and topic that it reads."""
        gauges = await super().groups()
        rows = await self._system.all(sql("group_progress"), *self._parameters, GROUP)
        unread = await self._unread.of([self._progress(row) for row in rows])
        found: defaultdict[tuple[str, str, str], list[tuple[Row, PartitionLag]]] = defaultdict(list)
        for row, one in zip(rows, unread, strict=True):
            found[row["tenant"], row["group"], row["topic"]].append((row, one))
        return [_with_foreign(gauge, found[gauge.tenant, gauge.group, gauge.topic]) for gauge in gauges]

    def _progress(self, row: Row) -> GroupProgress:
        place = self._broker.name(row["tenant"], row["topic"]), row["partition"]
        return GroupProgress(place, row["position"], row["end"], row["broker_position"])


def _with_foreign(gauge: GroupGauge, found: list[tuple[Row, PartitionLag]]) -> GroupGauge:
    ages = [(row["now"] - one.oldest).total_seconds() for row, one in found if one.oldest is not None]
    return replace(gauge, lag=max(gauge.lag, sum(one.lag for _, one in found)), age=max([gauge.age, *ages]))
