"""Opens the part of the bus that all tenants share, and composes the part of each tenant."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from holdfast.access.tenants import Tenants
from holdfast.bus.buses import Bus, open_driver
from holdfast.bus.command_queue import CommandQueue
from holdfast.bus.commands import Commands
from holdfast.bus.completions import Completions
from holdfast.bus.dead_letters import DeadLetters
from holdfast.bus.ingest import Ingest
from holdfast.bus.log import Log
from holdfast.bus.notifications import Notifications
from holdfast.bus.retention import Retention
from holdfast.bus.waiters import Waiters
from holdfast.bus.workers import WorkerContext
from holdfast.core.background import Background
from holdfast.core.settings import BusSettings
from holdfast.postgres.database import Database, Postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantBus:
    """The log of a tenant, its dead letters and commands, and what its workers use."""

    log: Log
    dead_letters: DeadLetters
    commands: Commands
    workers: WorkerContext


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBus:
    """The driver of the log, notifications and background tasks."""

    settings: BusSettings
    postgres: Postgres
    connect: Callable[[], Postgres]
    driver: Bus
    notifications: Notifications
    background: Background

    def of(self, database: Database) -> TenantBus:
        """Return the part of a tenant."""
        log, listen = self.driver.log(database), self.postgres.listen
        queue = CommandQueue(database, log, notifications=self.notifications, settings=self.settings)
        completions = Completions(database, log, notifications=self.notifications, settings=self.settings)
        ingest = Ingest(database, log, queue=queue, completions=completions, background=self.background)
        return TenantBus(
            log=log,
            dead_letters=DeadLetters(database, self.notifications),
            commands=Commands(
                database,
                queue=queue,
                completions=completions,
                waiters=Waiters(database, listen, self.background),
                ingest=ingest,
            ),
            workers=WorkerContext(
                database=database,
                queue=queue,
                completions=completions,
                ingest=ingest,
                notifications=self.notifications,
                listen=listen,
                settings=self.settings,
                connect=self.connect,
            ),
        )


@asynccontextmanager
async def open_bus(
    *, settings: BusSettings, postgres: Postgres, tenants: Tenants, connect: Callable[[], Postgres]
) -> AsyncGenerator[SharedBus]:
    """Open it. `connect` opens another `Postgres`, with a pool of one connection."""
    async with AsyncExitStack() as stack:
        notifications, background = Notifications(postgres.system), Background()
        stack.push_async_callback(notifications.close)
        await stack.enter_async_context(Retention(postgres.owner, settings))
        driver = await stack.enter_async_context(
            open_driver(settings, postgres, tenants=tenants, notifications=notifications)
        )
        stack.push_async_callback(background.close)
        yield SharedBus(
            settings=settings,
            postgres=postgres,
            connect=connect,
            driver=driver,
            notifications=notifications,
            background=background,
        )
