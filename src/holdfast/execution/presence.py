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
        self._asking: dict[str, asyncio.Task[bool]] = {}

    async def serves(self, name: str) -> bool:
        """Whether a worker serves the tool, as of at most two seconds ago. A dead worker still counts for a while."""
        asked, served = self._known.get(name, (-FRESH, False))
        if monotonic() - asked < FRESH:
            return served
        asking = self._asking.get(name)
        if asking is None:  # one query for all callers that wait
            asking = self._asking[name] = asyncio.create_task(self._ask(name), name="presence of workers")
            asking.add_done_callback(lambda ended: self._store_answer(name, ended))
        return await asyncio.shield(asking)

    async def _ask(self, name: str) -> bool:
        asked = monotonic()
        served = bool(await self._database.value(sql("is_served"), store(name)))
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[name] = asked, served
        return served

    def _store_answer(self, name: str, ended: "asyncio.Task[bool]") -> None:
        del self._asking[name]
        if not ended.cancelled():
            ended.exception()  # retrieved, so that asyncio does not log it: the callers have received it
