"""Snapshots: whole conversations, for frameworks that keep a session in memory.

One statement reads the revision, the state (including shared state) and the nodes, so all are of the same moment.
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


class ForeignNode(msgspec.Struct, frozen=True):
    """A node that another framework wrote: the parts that all readers understand."""

    id: UUID
    context: Context
    content: str
    payload: dict[str, Any] | None
    state: dict[str, list[Any]] | None
    created_at: datetime


class Snapshot(msgspec.Struct, frozen=True):
    """A conversation at one moment, with the requested nodes, oldest first."""

    id: UUID
    session_id: str
    user: str | None  # None: it has no user yet
    agent: str | None
    revision: int
    state: dict[str, Any]
    last_time: float  # of the last change, by the timestamps of the framework that reads
    nodes: list[str | ForeignNode] = []  # str: the JSON of the framework that reads


class Snapshots:
    """Reads whole conversations, for one app and user."""

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
        """Return the conversation with one of these session ids, if it is the user's in this app or has no user yet.

        `form` is the framework that reads. `count` limits the nodes to the newest ones. With `since`, only nodes that
        were written at this time or later are read.
        """
        user_id = await self._identities.find_id("user", user)
        names = [store(name) for name in session_ids]
        rows = await self._database.all(sql("snapshot"), names[0], names[-1], store(app), user_id, count, form, since)
        if not rows:
            return None
        rows.sort(key=_seq)
        head = rows[0]
        return _snapshot(head, head["state"] or {}, head["created_at"], [_node(row) for row in rows[1:]])

    # It comes last because `list` is the method from here on.

    async def list(self, app: str, user: str | None = None, *, form: str) -> list[Snapshot]:
        """Return the conversations of an app, or of one user in it, without their nodes, in no order."""
        if user is None:
            rows = await self._database.all(sql("snapshots"), store(app), form)
        else:
            rows = await self._database.all(
                sql("snapshots_of_user"), store(app), form, await self._identities.find_id("user", user)
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


def _snapshot(row: Row, state: dict[str, Any], changed_at: datetime, nodes: "list[str | ForeignNode]") -> Snapshot:
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


def _node(row: Row) -> str | ForeignNode:
    if row["native"] is not None:
        return row["native"]
    context = Context(row["context_type"], row["context_name"], restore(row["context_value"]))
    return ForeignNode(row["id"], context, restore(row["content"]), row["payload"], row["state"], row["created_at"])


def _seq(row: Row) -> int:
    return row["seq"]
