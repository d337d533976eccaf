"""Dead letters: what a group could not process, kept whole until somebody decides."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from holdfast.bus.members import group_channel
from holdfast.bus.wakes import Wakes
from holdfast.core.errors import NotFound
from holdfast.core.text import loads, restore
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that a group gave up, with its last error; `redriven` ones are on their way to the group again.

    One with a `correlation_id` is a command that failed for good.
    """

    id: UUID
    group: str
    topic: str
    partition: int
    offset: int
    at: datetime
    record_id: UUID
    key: str | None
    headers: dict[str, str]
    value: Any
    correlation_id: str | None
    error: str
    attempts: int
    failed_at: datetime
    state: str


class DeadLetters:
    """Shows dead letters, and has them processed once more or dropped."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._wakes = wakes

    async def get(self, id: UUID) -> DeadLetter:
        """One dead letter."""
        row = await self._database.one(sql("dead_letter"), id)
        if row is None:
            raise _unknown(id)
        return _dead_letter(row)

    async def redrive(self, id: UUID) -> None:
        """Deliver it to its group once more, or run the command again; a second failure makes it dead again."""
        group = await self._database.value(sql("redrive_dead_letter"), id)
        if group is None:
            raise _unknown(id)
        self._wakes.send(group_channel(await self._database.tenant(), group))

    async def redrive_all(self, *, group: str | None = None, topic: str | None = None) -> int:
        """Redrive every dead letter of a group, a topic or both; how many there were."""
        found = await self._database.all(sql("dead_letter_ids"), group, topic)
        for row in found:
            await self.redrive(row["id"])
        return len(found)

    async def drop(self, id: UUID) -> None:
        """Forget it."""
        if not await self._database.run(sql("drop_dead_letter"), id):
            raise _unknown(id)

    async def list(
        self, *, group: str | None = None, topic: str | None = None, limit: int = 100, before: UUID | None = None
    ) -> list[DeadLetter]:
        """The newest first; `before` is the last one of the page before."""
        rows = await self._database.all(sql("dead_letters"), group, topic, before, limit)
        return [_dead_letter(row) for row in rows]


def _dead_letter(row: Row) -> DeadLetter:
    fields = dict(row)
    fields["key"] = None if row["key"] is None else restore(row["key"])
    fields.update(headers=loads(row["headers"]), value=loads(row["value"]), error=restore(row["error"]))
    return DeadLetter(**fields)


def _unknown(id: UUID) -> NotFound:
    return NotFound(
        f"there is no dead letter {id}",
        why="it was processed, dropped, or never there",
        next="`holdfast dead-letters ls` lists them.",
    )
