"""Approvals: people's decisions whether tool calls may run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from holdfast.bus.notifications import Notifications
from holdfast.conversations.turn_claims import wake_queue
from holdfast.core.errors import Conflict, InvalidInput, NotFound
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

State = Literal["pending", "approved", "denied", "withdrawn"]
MAX_COMMENT = 10_000

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Approval:
    """A tool call that waits, or waited, for a person's decision.

    `reason`: the agent or the tool requires an approval (`listed`); or the call may have run already and is not safe to
    repeat (`unknown`): then to approve means to run it again.
    """

    id: UUID
    run_id: UUID
    conversation: UUID
    call_id: str
    tool: str
    arguments: Any
    user: str | None
    reason: Literal["listed", "unknown"]
    state: State
    decided_by: str | None
    comment: str | None
    created_at: datetime
    decided_at: datetime | None


class Approvals:
    """Finds approvals, and stores people's decisions."""

    def __init__(self, database: Database, notifications: Notifications) -> None:
        self._database = database
        self._notifications = notifications

    async def get(self, id: UUID) -> Approval:
        """Return an approval."""
        row = await self._database.one(sql("approval"), id)
        if row is None:
            raise NotFound(f"there is no approval {id}")
        return approval_of(row)

    async def pending(self, *, user: str | None = None, limit: int = 100) -> list[Approval]:
        """List the approvals that wait for a decision, oldest first: of a user, or of all users."""
        stored = None if user is None else store(user)
        return [approval_of(row) for row in await self._database.all(sql("pending_approvals"), stored, limit)]

    async def decide(self, id: UUID, *, approve: bool, by: str, comment: str = "") -> Approval:
        """Approve or deny a call. Its run continues in a process that serves the agent.

        It is no error to repeat a decision.
        """
        if len(comment) > MAX_COMMENT:
            raise InvalidInput("the comment is too long", next=f"Use at most {MAX_COMMENT} characters.")
        decision = "approved" if approve else "denied"
        outcome, _, state = await self._database.value(
            sql("decide_approval"), id, decision, store(by), store(comment) or None
        )
        if outcome == "missing":
            raise NotFound(f"there is no approval {id}")
        if outcome == "decided before":
            raise Conflict(
                f"the approval {id} cannot be {decision}",
                expected=0,
                current=1,
                why=f"it is already {state}",
                next="To change the outcome, send another message to the agent.",
            )
        await wake_queue(self._database, self._notifications)
        return await self.get(id)


def approval_of(row: Row) -> Approval:
    """Build an approval from its row."""
    return Approval(
        row["id"],
        row["run_id"],
        row["root"],
        row["call_id"],
        row["tool"],
        row["arguments"],
        _restore_optional(row["user_name"]),
        row["reason"],
        row["state"],
        _restore_optional(row["decided_by"]),
        _restore_optional(row["comment"]),
        row["created_at"],
        row["decided_at"],
    )


def _restore_optional(stored: str | None) -> str | None:
    return None if stored is None else restore(stored)
