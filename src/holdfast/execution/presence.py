"""Presence: which tools a worker serves now. Workers report this every few seconds."""

import asyncio
from time import monotonic

from holdfast.core.text import store
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

FRESH = 2.0  # seconds for which an answer is cached
MOST = 10_000  # cached answers

sql = statements(__name__)


class ToolPresence:
    """Tells which tools the workers of one tenant serve."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[float, bool]] = {}  # the time of the query, and its answer
        self._queries: dict[str, asyncio.Task[bool]] = {}

    async def serves(self, name: str) -> bool:
        """Whether a worker serves the tool, as of at most two seconds ago. A dead worker still counts for a while."""
        queried_at, served = self._known.get(name, (-FRESH, False))
        if monotonic() - queried_at < FRESH:
            return served
        query = self._queries.get(name)
        if query is None:  # one query for all callers that wait
            query = self._queries[name] = asyncio.create_task(self._query(name), name="presence of workers")
            query.add_done_callback(lambda task: self._end_query(name, task))
        return await asyncio.shield(query)

    async def _query(self, name: str) -> bool:
        queried_at = monotonic()
        served = bool(await self._database.value(sql("is_served"), store(name)))
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[name] = queried_at, served
        return served

    def _end_query(self, name: str, task: "asyncio.Task[bool]") -> None:
        del self._queries[name]
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it: the callers have received it
