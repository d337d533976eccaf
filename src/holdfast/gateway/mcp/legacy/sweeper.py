"""The sweeper deletes expired sessions of MCP clients."""

import asyncio
import logging
import random
from typing import Final, Self

from holdfast.core.errors import DatabaseAway, HoldfastError
from holdfast.postgres.database import Database, Postgres
from holdfast.postgres.sql import statements

PAUSE: Final = 60.0  # seconds between two sweeps
TOGETHER: Final = 500  # sessions in one statement

sql = statements(__name__)
log = logging.getLogger(__name__)


class SessionSweeper:
    """Deletes the expired sessions of every tenant, inside an `async with` block."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep(), name="holdfast mcp session sweeper")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def sweep(self) -> int:
        """Delete expired sessions. Return how many."""
        ended = 0
        for row in await self._postgres.system.all(sql("tenants_with_ended_sessions")):
            try:
                ended += await _end(self._postgres.tenant(row["id"]))
            except DatabaseAway:
                raise
            except HoldfastError as error:
                log.warning("MCP sessions of %s could not be swept, trying again later: %s", row["id"], error)
        return ended

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(PAUSE * (0.9 + random.random() / 5))
            try:
                await self.sweep()
            except HoldfastError as error:
                log.warning("MCP sessions could not be swept, trying again later: %s", error)
            except Exception:
                log.exception("a defect: MCP sessions could not be swept, trying again later")


async def _end(database: Database) -> int:
    gone, ended = TOGETHER, 0
    while gone == TOGETHER:
        gone = await database.run(sql("end_sessions"), TOGETHER)
        ended += gone
    return ended
