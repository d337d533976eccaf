"""Counts in the background how often memories are recalled."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from uuid import UUID

from holdfast.core.background import DelayedWriter
from holdfast.core.errors import HoldfastError
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

DELAY = 1.0  # seconds to collect uses before they are written

log = logging.getLogger(__name__)
sql = statements(__name__)


class RecallUsage(DelayedWriter):
    """Counts uses in batches. If the process dies, the unwritten counts are lost, and nothing else."""

    def __init__(self) -> None:
        super().__init__("memory usage", delay=DELAY)
        self._counts: defaultdict[Database, Counter[UUID]] = defaultdict(Counter)

    def note(self, database: Database, ids: Sequence[UUID]) -> None:
        """Count a use of each memory."""
        if not ids:
            return
        self._counts[database].update(ids)
        self.write_later()

    @property
    def has_values(self) -> bool:
        """Whether there are counts to write."""
        return bool(self._counts)

    async def flush(self) -> None:
        """Write the counts. If it is cancelled, the unwritten counts are kept for the next flush."""
        for database in tuple(self._counts):
            uses = self._counts.pop(database, Counter[UUID]())
            try:
                await database.run(sql("count_uses"), list(uses), list(uses.values()))
            except HoldfastError as error:
                log.warning("could not count the uses of %s memories: %s", len(uses), error)
            except asyncio.CancelledError:
                self._counts[database].update(uses)
                raise
