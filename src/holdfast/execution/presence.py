"""Presence: which tools some worker serves now, as workers say every few seconds."""

from time import monotonic

from holdfast.core.text import store
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

FRESH = 2.0  # seconds for which an answer is good
MOST = 10_000  # answers that are kept

sql = statements(__name__)


class Presence:
    """Knows what the workers of one tenant serve."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[float, bool]] = {}  # when it was asked, and the answer

    async def serves(self, name: str) -> bool:
        """Whether a worker serves the tool, or did two seconds ago; a dead one is taken for present for a while."""
        asked, served = self._known.get(name, (-FRESH, False))
        now = monotonic()
        if now - asked < FRESH:
            return served
        served = bool(await self._database.value(sql("is_served"), store(name)))
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[name] = now, served
        return served
