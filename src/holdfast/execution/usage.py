"""Usage statistics of tools: how often they were called and how long they took. Written in the background."""

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass
from uuid import UUID

from holdfast.core.background import DelayedWriter
from holdfast.core.errors import HoldfastError
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

DELAY = 1.0  # seconds for which calls are collected before a write

log = logging.getLogger(__name__)
sql = statements(__name__)


@dataclass(slots=True)
class Count:
    """Calls of a tool that are not written yet."""

    calls: int = 0
    failures: int = 0
    total_ms: float = 0.0

    def add(self, calls: int, failures: int, total_ms: float) -> None:
        """Add to the counts."""
        self.calls += calls
        self.failures += failures
        self.total_ms += total_ms


Counts = defaultdict[UUID, Count]


class ToolUsage(DelayedWriter):
    """Counts calls in batches. If the process dies, only the counts that it has not written are lost."""

    def __init__(self) -> None:
        super().__init__("tool usage", delay=DELAY)
        self._counts: defaultdict[Database, Counts] = defaultdict(lambda: Counts(Count))

    def note(self, database: Database, tool: UUID, *, failed: bool, latency_ms: float) -> None:
        """Count a call of a tool."""
        self._counts[database][tool].add(1, int(failed), latency_ms)
        self.write_later()

    @property
    def has_values(self) -> bool:
        """Whether there are counts to write."""
        return bool(self._counts)

    async def flush(self) -> None:
        """Write the counts. If this is cancelled, unwritten counts are kept for the next flush."""
        for database in tuple(self._counts):
            counts = self._counts.pop(database, Counts(Count))
            values = list(counts.values())
            try:
                await database.run(
                    sql("count_calls"),
                    list(counts),
                    [each.calls for each in values],
                    [each.failures for each in values],
                    [each.total_ms for each in values],
                )
            except HoldfastError as error:
                log.warning("could not count the calls of %s tools: %s", len(counts), error)
            except asyncio.CancelledError:
                for tool, each in counts.items():
                    self._counts[database][tool].add(each.calls, each.failures, each.total_ms)
                raise
