"""The bus with Kafka: a log for each tenant, and one relay for all tenants."""

from collections import defaultdict
from dataclasses import replace
from typing import Any, Self

from holdfast.access.tenants import Tenants
from holdfast.bus.buses import State
from holdfast.bus.gauges import Gauges, GroupGauge, TopicGauge
from holdfast.bus.kafka.brokers import Broker
from holdfast.bus.kafka.kafka_lag import GroupProgress, KafkaLag, PartitionLag
from holdfast.bus.kafka.kafka_log import KafkaLog
from holdfast.bus.kafka.relay import GROUP, Relay
from holdfast.bus.log import Log
from holdfast.bus.notifications import Notifications
from holdfast.core.ids import TenantId
from holdfast.core.settings import BusSettings
from holdfast.postgres.database import Database, Postgres, Row
from holdfast.postgres.sql import statements

sql = statements(__name__)


class KafkaGauges(Gauges):
    """Reads the gauges from PostgreSQL and from the broker."""

    def __init__(self, *args: Any, broker: Broker, kafka_lag: KafkaLag) -> None:
        super().__init__(*args)
        self._broker = broker
        self._kafka_lag = kafka_lag

    async def topics(self) -> list[TopicGauge]:
        """Return a gauge per topic."""
        gauges = await super().topics()
        places = [
            [(self._broker.name(one.tenant, one.topic), number) for number in range(one.partitions)] for one in gauges
        ]
        ranges = await self._kafka_lag.ranges({place for each in places for place in each})
        ends = [sum(ranges[place].end for place in each if place in ranges) for each in places]
        return [replace(one, records=max(one.records, end)) for one, end in zip(gauges, ends, strict=True)]

    async def groups(self) -> list[GroupGauge]:
        """Return a gauge per group and topic that it reads."""
        gauges = await super().groups()
        rows = await self._system.all(sql("group_progress"), *self._parameters, GROUP)
        unread = await self._kafka_lag.of([self._progress(row) for row in rows])
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


class KafkaBus:
    """Provides logs in PostgreSQL that groups read from Kafka."""

    def __init__(
        self, settings: BusSettings, postgres: Postgres, *, tenants: Tenants, notifications: Notifications
    ) -> None:
        self._settings = settings
        self._postgres = postgres
        self._tenants = tenants
        self._notifications = notifications
        self._broker = Broker(settings)
        self._kafka_lag = KafkaLag(self._broker)
        self._relay = Relay(postgres.system, settings, self._broker, postgres.listen, notifications)

    async def __aenter__(self) -> Self:
        await self._relay.__aenter__()
        return self

    async def __aexit__(self, *exits: object) -> None:
        await self._relay.__aexit__(*exits)
        await self._broker.close()

    def log(self, database: Database) -> Log:
        """Return the log of a tenant."""

        async def tenant() -> str:
            return (await self._tenants.get(await database.tenant())).name

        return KafkaLog(
            database,
            self._settings,
            self._postgres.listen,
            self._notifications,
            broker=self._broker,
            kafka_lag=self._kafka_lag,
            tenant=tenant,
        )

    def gauges(self, tenant: TenantId | None) -> Gauges:
        """Return the gauges of one tenant or of all."""
        return KafkaGauges(self._postgres.system, tenant, broker=self._broker, kafka_lag=self._kafka_lag)

    @property
    def state(self) -> State:
        """Whether records reach Kafka, and if not, why."""
        error = self._relay.last_error
        return ("reduced", error) if error else ("ok", f"Kafka at {self._broker.address}")
