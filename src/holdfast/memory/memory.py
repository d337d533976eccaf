"""A memory: one short text, whose it is, and what is known about it."""

from dataclasses import dataclass
from datetime import MAXYEAR, datetime
from typing import Any, Literal, get_args
from uuid import UUID

from holdfast.core.text import restore
from holdfast.memory.owners import Owner, OwnerIds
from holdfast.postgres.database import Row

Trust = Literal["system", "user", "agent", "tool", "untrusted"]
TRUSTS: tuple[Trust, ...] = get_args(Trust)


@dataclass(frozen=True, slots=True)
class Memory:
    """Something remembered.

    `conversation`, `seq`, `author` and `at`: where, in which place, by whom and when it was said, if it was said.
    It is recalled from `valid_from` to `valid_to`, until `expires_at`, unless it is `buried`; None is without end.
    `embedded`: whether it can be found by meaning yet, and not by its words alone.
    """

    id: UUID
    owner: Owner
    content: str
    type: str
    importance: float
    trust: Trust
    metadata: dict[str, Any]
    source: str | None
    key: str | None
    conversation: str | None
    seq: int | None
    author: str | None
    at: datetime | None
    created_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    expires_at: datetime | None
    superseded_by: UUID | None
    pinned: bool
    buried: bool
    embedded: bool
    access_count: int
    last_accessed: datetime
    version: int


def owner_ids(row: Row) -> OwnerIds:
    """Whose a row of `memory` is."""
    return OwnerIds(row["scope"], row["owner"], row["agent_id"], row["user_id"])


def memory_of(row: Row, owner: Owner) -> Memory:
    """A row of `memory` as a memory."""
    return Memory(
        id=row["id"],
        owner=owner,
        content=restore(row["content"]),
        type=restore(row["type"]),
        importance=row["importance"],
        trust=row["trust"],
        metadata=row["metadata"],
        source=_restored(row["source"]),
        key=_restored(row["key"]),
        conversation=_restored(row["conversation"]),
        seq=row["seq"],
        author=_restored(row["author"]),
        at=row["said_at"],
        created_at=row["created_at"],
        valid_from=row["valid_from"],
        valid_to=_end(row["valid_to"]),
        expires_at=_end(row["expires_at"]),
        superseded_by=row["superseded_by"],
        pinned=row["pinned"],
        buried=row["buried_at"] is not None,
        embedded=row["embedded"] is not None,
        access_count=row["access_count"],
        last_accessed=row["last_accessed"],
        version=row["version"],
    )


def _restored(text: str | None) -> str | None:
    return None if text is None else restore(text)


def _end(moment: datetime) -> datetime | None:
    # The driver gives infinity as the last moment that Python knows.
    return None if moment.year == MAXYEAR else moment
