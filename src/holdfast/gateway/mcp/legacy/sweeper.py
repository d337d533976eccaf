"""The sweeper deletes expired sessions of MCP clients."""

from typing import Final

from holdfast.core.periodic import PeriodicJob
from holdfast.postgres.database import Database, Postgres
from holdfast.postgres.each_tenant import for_each_tenant, in_batches
from holdfast.postgres.sql import statements

NAME: Final = "sweep of MCP sessions"
PAUSE: Final = 60.0  # seconds between two sweeps
TOGETHER: Final = 500  # sessions in one statement

sql = statements(__name__)


class SessionSweeper(PeriodicJob):
    """Deletes the expired sessions of every tenant, inside an `async with` block."""

    def __init__(self, postgres: Postgres) -> None:
        super().__init__(NAME, pause=PAUSE)
        self._postgres = postgres

    async def sweep(self) -> int:
        """Delete expired sessions. Return how many."""
        tenants = await self._postgres.system.all(sql("tenants_with_ended_sessions"))
        return await for_each_tenant(self._postgres, tenants, _end, name=NAME)

    async def step(self) -> None:
        """Sweep."""
        await self.sweep()


async def _end(database: Database) -> int:
    return await in_batches(lambda: database.run(sql("end_sessions"), TOGETHER), TOGETHER)
