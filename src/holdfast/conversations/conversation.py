"""Conversations without their nodes, search results, and the steps of a replay."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from holdfast.conversations.nodes import Node
from holdfast.core.text import restore
from holdfast.postgres.database import Row


class Conversation(msgspec.Struct, frozen=True):
    """A conversation, without its nodes and its state."""

    id: UUID
    kind: Literal["conversation", "document"]
    session_id: str | None
    app: str
    user: str | None
    agent: str | None
    revision: int
    last_seq: int
    forked_from: UUID | None
    forked_at: int | None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None


class NodeHit(msgspec.Struct, frozen=True):
    """A node that a search found, and its conversation."""

    conversation: Conversation
    node: Node


class ReplayStep(msgspec.Struct, frozen=True):
    """A step of a replay: a node, and the conversation's own state after it."""

    node: Node
    state: dict[str, Any]


def conversation_of(row: Row, prefix: str = "") -> Conversation:
    """Return the conversation in a row, whose columns start with `prefix`."""
    session, user, agent = (row[prefix + name] for name in ("session_id", "user_name", "agent_name"))
    return Conversation(
        id=row[prefix + "id"],
        kind=row[prefix + "kind"],
        session_id=session and restore(session),
        app=restore(row[prefix + "app_name"]),
        user=user and restore(user),
        agent=agent and restore(agent),
        revision=row[prefix + "revision"],
        last_seq=row[prefix + "last_seq"],
        forked_from=row[prefix + "forked_from"],
        forked_at=row[prefix + "forked_at"],
        created_at=row[prefix + "created_at"],
        updated_at=row[prefix + "updated_at"],
        ended_at=row[prefix + "ended_at"],
    )
