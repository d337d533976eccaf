"""The log with Kafka behind it: published to PostgreSQL, read from Kafka."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from holdfast.bus.kafka.brokers import Broker
from holdfast.bus.kafka.kafka_feed import KafkaFeed
from holdfast.bus.kafka.relay import CHANNEL
from holdfast.bus.postgres_feed import Reading
from holdfast.bus.postgres_log import PostgresLog
from holdfast.core.errors import Unavailable
from holdfast.postgres.database import Transaction


class KafkaLog(PostgresLog):
    """Publishes and reads records of one tenant; groups read from Kafka, everything else from PostgreSQL."""

    def __init__(self, *args: Any, broker: Broker, tenant: Callable[[], Awaitable[str]]) -> None:
        super().__init__(*args)
        self._broker = broker
        self._tenant = tenant

    async def create(self, topic: str, *, partitions: int | None = None, tx: Transaction | None = None) -> int:
        """Make a topic, unless it is there; in Kafka too, or when the relay first needs it."""
        number = await super().create(topic, partitions=partitions, tx=tx)
        if tx is None:
            with suppress(Unavailable):
                await self._broker.ensure(self._broker.name(await self._tenant(), topic), number)
        return number

    async def _tell(
        self, named: Mapping[str, Collection[int]], *, told: bool = False, tx: Transaction | None = None
    ) -> None:
        """Wake those who read topics, and the relay."""
        await super()._tell(named, told=told, tx=tx)
        self._wakes.send(CHANNEL, tx=tx)

    async def _feed(self, group: str, reading: Reading) -> KafkaFeed:
        protocol = self._settings.group_protocol
        return KafkaFeed(self._database, group, reading, self._broker, tenant=await self._tenant(), protocol=protocol)
