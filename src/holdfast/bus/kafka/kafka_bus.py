"""The bus with Kafka: a log for each tenant, and one relay for all tenants."""

from typing import Self

from holdfast.access.tenants import Tenants
from holdfast.bus.buses import State
from holdfast.bus.gauges import Gauges
from holdfast.bus.kafka.brokers import Broker
from holdfast.bus.kafka.kafka_gauges import KafkaGauges
from holdfast.bus.kafka.kafka_lag import KafkaLag
from holdfast.bus.kafka.kafka_log import KafkaLog
from holdfast.bus.kafka.relay import Relay
from holdfast.bus.log import Log
from holdfast.bus.notifications import Notifications
from holdfast.core.ids import TenantId
from holdfast.core.settings import BusSettings
from holdfast.postgres.database import Database, Postgres


class KafkaBus:
    """Provides logs in PostgreSQL that groups read from Kafka."""

    def __init__(self, settings: BusSettings, postgres: Postgres, *, tenants: Tenants, wakes: Notifications) -> None:
        self._settings = settings
        self._postgres = postgres
        self._tenants = tenants
        self._wakes = wakes
        self._broker = Broker(settings)
        self._unread = KafkaLag(self._broker)
        self._relay = Relay(postgres.system, settings, self._broker, postgres.listen, wakes)

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
            self._wakes,
            broker=self._broker,
            unread=self._unread,
            tenant=tenant,
        )

    def gauges(self, tenant: TenantId | None) -> Gauges:
        """Return the gauges of one tenant or of all."""
        return KafkaGauges(self._postgres.system, tenant, broker=self._broker, unread=self._unread)

    @property
    def state(self) -> State:
        """Whether records reach Kafka, and if not, why."""
        trouble = self._relay.trouble
        return ("reduced", trouble) if trouble else ("ok", f"Kafka at {self._broker.address}")
