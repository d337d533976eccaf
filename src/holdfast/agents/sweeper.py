"""Deletes runs that ended long ago, with their steps, executions, approvals and events. Nodes stay."""

import asyncio
import logging
import random
from datetime import timedelta
from typing import Self

from holdfast.core.errors import DatabaseAway, HoldfastError
from holdfast.core.settings import AgentSettings, BusSettings
from holdfast.postgres.database import Postgres
from holdfast.postgres.sql import statements

FIRST = 90.0  # seconds before the first sweep: a process that ends sooner has nothing to sweep
PAUSE = 3600.0  # seconds between two sweeps
TOGETHER = 200  # runs deleted in one batch

sql = statements(__name__)
log = logging.getLogger(__name__)


class RunSweeper:
    """Deletes old runs of every tenant from time to time."""

    def __init__(self, postgres: Postgres, settings: AgentSettings, bus: BusSettings) -> None:
        self._postgres = postgres
        # A record that is read again has to find the run that answered it. Otherwise it would be answered again.
        self._kept = timedelta(days=max(settings.keep_runs_days, bus.retention_days))

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep(), name="holdfast run sweeper")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def sweep(self) -> int:
        """Delete runs of every tenant that ended long ago. Return how many were deleted."""
        swept = 0
        for row in await self._postgres.system.all(sql("tenants_with_old_runs"), self._kept):
            database = self._postgres.tenant(row["id"])
            try:
                gone = TOGETHER
                while gone == TOGETHER:
                    gone = await database.run(sql("forget_runs"), self._kept, TOGETHER)
                    swept += gone
            except DatabaseAway:
                raise
            except HoldfastError as error:
                log.warning("runs of %s could not be swept, trying again later: %s", row["id"], error)
        return swept

    async def _keep(self) -> None:
        await asyncio.sleep(FIRST * (1 + random.random()))
        while True:
            try:
                swept = await self.sweep()
                if swept:
                    log.info("%d runs were deleted: they had ended long ago", swept)
            except HoldfastError as error:
                log.warning("runs could not be swept, trying again later: %s", error)
            except Exception:
                log.exception("a defect: runs could not be swept, trying again later")
            await asyncio.sleep(PAUSE * (0.9 + random.random() / 5))
