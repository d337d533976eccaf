"""Nodes: what a conversation is made of."""

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


class Node(msgspec.Struct, frozen=True):  # a struct, not a dataclass: thousands are made for one read
    """A message, or a piece of a document, as it stands now."""

    id: UUID
    root: UUID  # the conversation's id
    parent: UUID | None
    seq: int
    context: str
    content: str
    payload: dict[str, Any] | None
    state: (
        dict[str, list[Any]] | None
    )  # the changes that came with it: a value in brackets, empty where one was deleted
    key: str | None
    version: int
    revision: int  # the conversation's, when this was last changed
    deleted: bool
    created_at: datetime
    updated_at: datetime
    form: str | None = None  # which framework wrote it
    native: str | None = None  # its JSON, where it was asked for

    @property
    def author(self) -> str:
        """Whose words these are."""
        return parse_context(self.context).value if self.context else ""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A node to append."""

    content: str
    context: str | Context
    payload: Mapping[str, Any] | None = None
    key: str | None = None
    form: str | None = None
    native: str | None = None


class NodeRevision(msgspec.Struct, frozen=True):
    """A node as it was in one version."""

    node_id: UUID
    version: int
    parent: UUID | None
    context: str
    content: str
    payload: dict[str, Any] | None
    form: str | None  # which framework wrote it
    native: str | None  # its JSON
    deleted: bool
    revision: int
    updated_at: datetime


def node_of(row: Row) -> Node:
    """The node that a row is."""
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
    """The context that a row has."""
    type = row["context_type"]
    return f"{type}:{row['context_name']}:{restore(row['context_value'])}" if type else ""


def revision_of(row: Row) -> NodeRevision:
    """The version of a node that a row is."""
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
    """The ids of a tree as it is read: each before its children, siblings by their places; the top comes first."""
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
