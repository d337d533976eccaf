"""The sweeper of quotas: settles what died, and deletes what no longer counts."""

import logging
from datetime import timedelta
from functools import partial

from holdfast.core.background import PeriodicJob
from holdfast.core.limits import QuotaSettings
from holdfast.postgres.database import Database, Postgres
from holdfast.postgres.each_tenant import for_each_tenant, in_batches
from holdfast.postgres.sql import statements

PAUSE = 60.0
BATCH = 500

sql = statements(__name__)
log = logging.getLogger(__name__)


class QuotaSweeper(PeriodicJob):
    """Sweeps the quotas of every tenant once a minute."""

    def __init__(self, postgres: Postgres, settings: QuotaSettings) -> None:
        super().__init__("sweep of quotas", pause=PAUSE)
        self._postgres = postgres
        self._keep = timedelta(days=settings.keep_days)

    async def sweep(self) -> int:
        """Sweep every tenant that has something to sweep. Return how many rows were handled."""
        tenants = await self._postgres.system.all(sql("tenants_to_sweep"), self._keep)
        return await for_each_tenant(self._postgres, tenants, self._sweep, name="sweep of quotas")

    async def step(self) -> None:
        """Sweep."""
        if swept := await self.sweep():
            log.info("swept %d rows of quotas", swept)

    async def _sweep(self, database: Database) -> int:
        return await in_batches(partial(database.value, sql("sweep_quotas"), self._keep, BATCH), BATCH)
