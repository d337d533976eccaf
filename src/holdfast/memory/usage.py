"""Counts in the background how often memories are recalled."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from uuid import UUID

from holdfast.core.errors import HoldfastError
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

DELAY = 1.0  # seconds to collect uses before they are written

log = logging.getLogger(__name__)
sql = statements(__name__)


class RecallUsage:
    """Counts uses in batches. If the process dies, the unwritten counts are lost, and nothing else."""

    def __init__(self) -> None:
        self._counts: defaultdict[Database, Counter[UUID]] = defaultdict(Counter)
        self._writing: asyncio.Task[None] | None = None

    def note(self, database: Database, ids: Sequence[UUID]) -> None:
        """Count a use of each memory."""
        if not ids:
            return
        self._counts[database].update(ids)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_later(), name="holdfast memory usage")

    async def flush(self) -> None:
        """Write the counts. If it is cancelled, the unwritten counts are kept for the next flush."""
        for database in tuple(self._counts):
            uses = self._counts.pop(database, Counter[UUID]())
            try:
                await database.run(sql("count_uses"), list(uses), list(uses.values()))
            except HoldfastError as error:
                log.warning("the uses of %s memories were not counted: %s", len(uses), error)
            except asyncio.CancelledError:
                self._counts[database].update(uses)
                raise

    async def close(self) -> None:
        """Write the remaining counts, and stop."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        await self.flush()

    async def _write_later(self) -> None:
        while self._counts:
            await asyncio.sleep(DELAY)
            await self.flush()
