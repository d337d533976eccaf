"""Nodes: the entries of a conversation."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from holdfast.conversations.contexts import Context, parse_context
from holdfast.core.text import restore
from holdfast.postgres.database import Row


class Node(msgspec.Struct, frozen=True):  # a struct, not a dataclass: one read creates thousands
    """The current version of a message, or of a part of a document."""

    id: UUID
    root: UUID  # the conversation's id
    parent: UUID | None
    seq: int
    context: str
    content: str
    payload: dict[str, Any] | None
    state: dict[str, list[Any]] | None  # changes of state with this node: [value], or [] for a deleted key
    key: str | None
    version: int
    revision: int  # of the conversation, at the last change of this node
    deleted: bool
    created_at: datetime
    updated_at: datetime
    form: str | None = None  # the framework that wrote it
    native: str | None = None  # the framework's JSON, if requested

    @property
    def author(self) -> str:
        """The name of the user or agent that the node is from."""
        return parse_context(self.context).value if self.context else ""


class NodeInput(msgspec.Struct, frozen=True, kw_only=True):
    """A node to append."""

    content: str
    context: str | Context
    payload: Mapping[str, Any] | None = None
    key: str | None = None
    form: str | None = None
    native: str | None = None


class NodeRevision(msgspec.Struct, frozen=True):
    """One version of a node."""

    node_id: UUID
    version: int
    parent: UUID | None
    context: str
    content: str
    payload: dict[str, Any] | None
    form: str | None  # the framework that wrote it
    native: str | None  # the framework's JSON
    deleted: bool
    revision: int
    updated_at: datetime


def node_of(row: Row) -> Node:
    """Return the node in a row."""
    key = row["key"]
    return Node(
        row["id"],
        row["root"],
        row["parent"],
        row["seq"],
        context_of(row),
        restore(row["content"]),
        row["payload"],
        row["state"],
        key if key is None else restore(key),
        row["version"],
        row["revision"],
        row["deleted"],
        row["created_at"],
        row["updated_at"],
        row["form"],
        row["native"],
    )


def context_of(row: Row) -> str:
    """Return the context in a row."""
    type = row["context_type"]
    return f"{type}:{row['context_name']}:{restore(row['context_value'])}" if type else ""


def revision_of(row: Row) -> NodeRevision:
    """Return the version of a node in a row."""
    return NodeRevision(
        node_id=row["node_id"],
        version=row["version"],
        parent=row["parent"],
        context=context_of(row),
        content=restore(row["content"]),
        payload=row["payload"],
        form=row["form"],
        native=row["native"],
        deleted=row["deleted"],
        revision=row["revision"],
        updated_at=row["updated_at"],
    )


def in_reading_order(top: UUID, rows: Iterable[Row]) -> list[UUID]:
    """Return the ids of a tree in reading order, from `top`: a parent before its children, siblings by place."""
    children: defaultdict[UUID | None, list[tuple[Decimal, int, UUID]]] = defaultdict(list)
    waiting: list[UUID] = []
    for row in rows:
        if row["id"] == top:
            waiting.append(top)
        else:
            children[row["parent"]].append((row["place"], row["seq"], row["id"]))
    ordered: list[UUID] = []
    while waiting:
        id = waiting.pop()
        ordered.append(id)
        waiting.extend(child for _, _, child in sorted(children[id], reverse=True))
    return ordered
