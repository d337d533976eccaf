"""Opens the bus that the settings name: PostgreSQL alone, or PostgreSQL with Kafka behind it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal, Protocol

from holdfast.access.tenants import Tenants
from holdfast.bus.gauges import Gauges
from holdfast.bus.log import Log
from holdfast.bus.notifications import Notifications
from holdfast.bus.postgres_log import PostgresLog
from holdfast.core.errors import BadSetting
from holdfast.core.ids import TenantId
from holdfast.core.settings import BusSettings
from holdfast.postgres.database import Database, Postgres

State = tuple[Literal["ok", "reduced"], str]


class Bus(Protocol):
    """Provides each tenant's log."""

    def log(self, database: Database) -> Log:
        """Return the log of a tenant."""
        ...

    def gauges(self, tenant: TenantId | None) -> Gauges:
        """Return the gauges of one tenant or of all."""
        ...

    @property
    def state(self) -> State | None:
        """The state of the system behind PostgreSQL, or None if there is none."""
        ...


class PostgresBus:
    """Provides logs in PostgreSQL."""

    state: State | None = None

    def __init__(self, settings: BusSettings, postgres: Postgres, notifications: Notifications) -> None:
        self._settings = settings
        self._postgres = postgres
        self._notifications = notifications

    def log(self, database: Database) -> Log:
        """Return the log of a tenant."""
        return PostgresLog(database, self._settings, self._postgres.listen, self._notifications)

    def gauges(self, tenant: TenantId | None) -> Gauges:
        """Return the gauges of one tenant or of all."""
        return Gauges(self._postgres.system, tenant)


@asynccontextmanager
async def open_driver(
    settings: BusSettings, postgres: Postgres, *, tenants: Tenants, notifications: Notifications
) -> AsyncGenerator[Bus]:
    """Open the bus that the settings name."""
    if not settings.url.startswith("kafka://"):
        yield PostgresBus(settings, postgres, notifications)
        return
    try:
        from holdfast.bus.kafka.kafka_bus import KafkaBus
    except ImportError as error:
        raise BadSetting(
            f"bus.url is {settings.url}, but the Kafka client is not installed",
            why=str(error),
            next="Install it with `pip install 'holdfast[kafka]'`.",
            key="bus.url",
        ) from None
    async with KafkaBus(settings, postgres, tenants=tenants, notifications=notifications) as bus:
        yield bus
