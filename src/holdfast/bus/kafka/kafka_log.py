"""The log with Kafka behind it: records are published to PostgreSQL, and groups read them from Kafka."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from holdfast.bus.feed_options import FeedOptions
from holdfast.bus.kafka.brokers import Broker
from holdfast.bus.kafka.kafka_feed import KafkaFeed
from holdfast.bus.kafka.kafka_lag import GroupProgress, KafkaLag, PartitionLag
from holdfast.bus.kafka.relay import CHANNEL, GROUP
from holdfast.bus.postgres_log import PostgresLog
from holdfast.bus.topics import Lag, Topic
from holdfast.core.errors import Unavailable
from holdfast.postgres.database import Transaction


class KafkaLog(PostgresLog):
    """Publishes and reads the records of one tenant. Groups read from Kafka, everything else from PostgreSQL."""

    def __init__(self, *args: Any, broker: Broker, kafka_lag: KafkaLag, tenant: Callable[[], Awaitable[str]]) -> None:
        super().__init__(*args)
        self._broker = broker
        self._kafka_lag = kafka_lag
        self._tenant = tenant

    async def create(self, topic: str, *, partitions: int | None = None, tx: Transaction | None = None) -> int:
        """Create a topic, unless it exists, also on Kafka: now if possible, or when the relay first needs it."""
        number = await super().create(topic, partitions=partitions, tx=tx)
        if tx is None:
            with suppress(Unavailable):
                await self._broker.ensure(self._broker.name(await self._tenant(), topic), number)
        return number

    async def topics(self) -> list[Topic]:
        """List all topics with their statistics, including records of foreign producers."""
        topics, tenant = await super().topics(), await self._tenant()
        places = {
            topic.name: [(self._broker.name(tenant, topic.name), number) for number in range(topic.partitions)]
            for topic in topics
        }
        ranges = await self._kafka_lag.ranges({place for each in places.values() for place in each})
        ends = {name: sum(ranges[place].end for place in each if place in ranges) for name, each in places.items()}
        return [replace(topic, records=max(topic.records, ends[topic.name])) for topic in topics]

    async def lag(self, group: str | None = None) -> list[Lag]:
        """List how far groups are behind, per partition, including records of foreign producers."""
        found, tenant = await self._topics.progress(group), await self._tenant()
        progress = [
            GroupProgress((self._broker.name(tenant, lag.topic), lag.partition), lag.position, lag.end, position)
            for lag, position in found
            if lag.group != GROUP
        ]
        unread = iter(await self._kafka_lag.of(progress))
        return [lag if lag.group == GROUP else _with_foreign(lag, next(unread)) for lag, _ in found]

    async def _wake_readers(
        self, changed: Mapping[str, Collection[int]], *, known_locally: bool = False, tx: Transaction | None = None
    ) -> None:
        """Wake the readers of topics, and the relay."""
        await super()._wake_readers(changed, known_locally=known_locally, tx=tx)
        self._notifications.send(CHANNEL, tx=tx)

    async def _feed(self, group: str, options: FeedOptions) -> KafkaFeed:
        tenant = await self._tenant()
        return KafkaFeed(
            self._database, group, options, self._listen, self._notifications, broker=self._broker, tenant=tenant
        )


def _with_foreign(lag: Lag, unread: PartitionLag) -> Lag:
    times = [at for at in (lag.oldest, unread.oldest) if at is not None]
    return replace(lag, lag=unread.lag, oldest=min(times, default=None))
