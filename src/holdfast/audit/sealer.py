"""The sealer: moves new entries of all tenants into their chains, in the background."""

import asyncio
from contextlib import suppress

from holdfast.core.background import PeriodicJob
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Postgres, Statements
from holdfast.postgres.each_tenant import in_turns
from holdfast.postgres.sql import statements

NAME = "sealing of the audit"
PAUSE = 5.0  # seconds between two runs without new entries of this process: another one may have died
GATHER = 0.25  # seconds between a new entry and a run, which then also seals later ones
TOGETHER = 2000  # entries per transaction: while an old transaction is open, each looks past all that were sealed since

sql = statements(__name__)


class AuditSealer(PeriodicJob):
    """Each process has a sealer. Of two that seal the chain of a tenant, one waits for the other."""

    def __init__(self, postgres: Postgres) -> None:
        super().__init__(NAME, pause=PAUSE)
        self._postgres = postgres
        self._new = asyncio.Event()

    def wake(self) -> None:
        """Seal soon: there are new entries."""
        self._new.set()

    async def step(self) -> None:
        """Seal all entries that there are, the tenants in turn."""
        self._new.clear()
        rows = await self._postgres.system.all(sql("tenants_with_open_entries"))
        await in_turns([row["id"] for row in rows], self._seal_some, name=NAME)

    async def repeat(self) -> None:
        """Do one step after another. A new entry ends the pause."""
        await asyncio.sleep(GATHER)
        while True:
            pause = await self.try_step()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._new.wait()
            await asyncio.sleep(GATHER)

    async def _seal_some(self, tenant: TenantId) -> int:
        return await seal_some(self._postgres.tenant(tenant))


async def seal_some(database: Statements) -> int:
    """Seal the oldest entries of a tenant. Return how many."""
    sealed: int = await database.value(sql("seal"), TOGETHER)
    return sealed


async def seal_all(database: Statements) -> None:
    """Seal all entries of a tenant that there are now."""
    while await seal_some(database) == TOGETHER:
        pass
