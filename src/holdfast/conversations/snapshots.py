"""Snapshots: conversations whole, as frameworks want them that keep a session in memory.

What is read together is of one moment: the revision, the state with what is shared, the nodes. One statement gives it.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.access.identities import Identities
from holdfast.conversations.contexts import Context
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

sql = statements(__name__)


class Said(msgspec.Struct, frozen=True):
    """A node as another framework wrote it: what every reader understands."""

    id: UUID
    context: Context
    content: str
    payload: dict[str, Any] | None
    state: dict[str, list[Any]] | None
    created_at: datetime


class Snapshot(msgspec.Struct, frozen=True):
    """A conversation at one moment; of the nodes, those that were asked for, oldest first."""

    id: UUID
    session_id: str
    user: str | None  # None: it is nobody's yet
    agent: str | None
    revision: int
    state: dict[str, Any]
    last_time: float  # when it was last changed, as the framework that asks dates what it writes
    nodes: list[str | Said] = []  # text: the framework's own, as it wrote it


class Snapshots:
    """Reads conversations whole, for one app and user."""

    def __init__(self, database: Database, identities: Identities) -> None:
        self._database = database
        self._identities = identities

    async def read(
        self,
        app: str,
        user: str,
        *session_ids: str,
        form: str,
        count: int | None = None,
        since: float | None = None,
    ) -> Snapshot | None:
        """The conversation with one of these session ids, if it is the user's in this app, or nobody's yet.

        `form`: the framework that reads. `count`: how many of the newest nodes, all unless said. `since`: only what was
        written at this time or later.
        """
        who = await self._identities.known_as("user", user)
        names = [store(name) for name in session_ids]
        rows = await self._database.all(sql("snapshot"), names[0], names[-1], store(app), who, count, form, since)
        if not rows:
            return None
        rows.sort(key=_seq)
        head = rows[0]
        return _snapshot(head, head["state"] or {}, head["created_at"], [_node(row) for row in rows[1:]])

    # Last, for from here on `list` is the method

    async def list(self, app: str, user: str | None = None, *, form: str) -> list[Snapshot]:
        """The conversations of an app, or of one user there, without their nodes, in no order."""
        if user is None:
            rows = await self._database.all(sql("snapshots"), store(app), form)
        else:
            rows = await self._database.all(
                sql("snapshots_of_user"), store(app), form, await self._identities.known_as("user", user)
            )
        shared: dict[UUID | None, dict[str, Any]] = {
            row["user_id"]: row["state"] or {} for row in rows if row["scope"] != "session"
        }
        of_app = shared.get(None, {})
        return [
            _snapshot(row, {**of_app, **shared.get(row["user_id"], {}), **(row["state"] or {})}, row["updated_at"], [])
            for row in rows
            if row["scope"] == "session"
        ]


def _snapshot(row: Row, state: dict[str, Any], changed_at: datetime, nodes: "list[str | Said]") -> Snapshot:
    user, agent, last_time = row["user_name"], row["agent_name"], row["last_time"]
    return Snapshot(
        id=row["id"],
        session_id=restore(row["session_id"]),
        user=user and restore(user),
        agent=agent and restore(agent),
        revision=row["revision"],
        state=state,
        last_time=changed_at.timestamp() if last_time is None else last_time,
        nodes=nodes,
    )


def _node(row: Row) -> str | Said:
    if row["native"] is not None:
        return row["native"]
    context = Context(row["context_type"], row["context_name"], restore(row["context_value"]))
    return Said(row["id"], context, restore(row["content"]), row["payload"], row["state"], row["created_at"])


def _seq(row: Row) -> int:
    return row["seq"]
