"""Dead letters: records that a group could not process, stored completely until someone redrives or drops them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from holdfast.bus.members import group_channel
from holdfast.bus.notifications import Notifications
from holdfast.core.errors import NotFound
from holdfast.core.text import loads, restore
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that a group gave up on, with its last error. In state `redriven`, it waits for its redelivery.

    A dead letter with a `correlation_id` is a command that failed in all its attempts.
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
    """Lists, redrives and drops dead letters."""

    def __init__(self, database: Database, notifications: Notifications) -> None:
        self._database = database
        self._notifications = notifications

    async def get(self, id: UUID) -> DeadLetter:
        """Return a dead letter."""
        row = await self._database.one(sql("dead_letter"), id)
        if row is None:
            raise _unknown(id)
        return _dead_letter(row)

    async def redrive(self, id: UUID) -> None:
        """Deliver a record to its group once more, or queue its command again. If it fails again, it is dead again."""
        group = await self._database.value(sql("redrive_dead_letter"), id)
        if group is None:
            raise _unknown(id)
        self._notifications.send(group_channel(await self._database.tenant(), group))

    async def redrive_all(self, *, group: str | None = None, topic: str | None = None) -> int:
        """Redrive all dead letters, or those of a group, a topic or both. Return how many there were."""
        found = await self._database.all(sql("dead_letter_ids"), group, topic)
        for row in found:
            await self.redrive(row["id"])
        return len(found)

    async def drop(self, id: UUID) -> None:
        """Delete a dead letter."""
        if not await self._database.run(sql("drop_dead_letter"), id):
            raise _unknown(id)

    async def list(
        self, *, group: str | None = None, topic: str | None = None, limit: int = 100, before: UUID | None = None
    ) -> list[DeadLetter]:
        """List dead letters, newest first. `before` is the id of the last one of the previous page."""
        rows = await self._database.all(sql("dead_letters"), group, topic, before, limit)
        return [_dead_letter(row) for row in rows]


def _dead_letter(row: Row) -> DeadLetter:
    fields = dict(row)
    fields["key"] = None if row["key"] is None else restore(row["key"])
    fields.update(headers=loads(row["headers"]), value=loads(row["value"]), error=restore(row["error"]))
    return DeadLetter(**fields)


def _unknown(id: UUID) -> NotFound:
    return NotFound(
        f"the dead letter {id} does not exist",
        why="it was processed or dropped, or it never existed",
        next="List the dead letters with `holdfast dead-letters ls`.",
    )
