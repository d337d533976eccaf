"""Deletes runs that ended long ago, with their steps, executions, approvals and events. Nodes stay."""

import logging
from datetime import timedelta

from holdfast.core.periodic import PeriodicJob
from holdfast.core.settings import AgentSettings, BusSettings
from holdfast.postgres.database import Database, Postgres
from holdfast.postgres.each_tenant import for_each_tenant, in_batches
from holdfast.postgres.sql import statements

FIRST = 90.0  # seconds before the first sweep: a process that ends sooner has nothing to sweep
PAUSE = 3600.0  # seconds between two sweeps
TOGETHER = 200  # runs deleted in one batch

sql = statements(__name__)
log = logging.getLogger(__name__)


class RunSweeper(PeriodicJob):
    """Deletes old runs of every tenant from time to time."""

    def __init__(self, postgres: Postgres, settings: AgentSettings, bus: BusSettings) -> None:
        super().__init__("sweep of runs", pause=PAUSE, first=FIRST)
        self._postgres = postgres
        # A record that is read again has to find the run that answered it. Otherwise it would be answered again.
        self._kept = timedelta(days=max(settings.keep_runs_days, bus.retention_days))

    async def sweep(self) -> int:
        """Delete runs of every tenant that ended long ago. Return how many were deleted."""
        tenants = await self._postgres.system.all(sql("tenants_with_old_runs"), self._kept)
        return await for_each_tenant(self._postgres, tenants, self._sweep, name="sweep of runs")

    async def step(self) -> None:
        """Sweep."""
        if swept := await self.sweep():
            log.info("deleted %d old runs", swept)

    async def _sweep(self, database: Database) -> int:
        return await in_batches(lambda: database.run(sql("forget_runs"), self._kept, TOGETHER), TOGETHER)
