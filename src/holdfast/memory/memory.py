"""A memory: one short text with its owner and its properties."""

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
    """A stored memory.

    `conversation`, `seq`, `author` and `at`: where, at which place, by whom and when it was said, if it was said.
    It can be recalled from `valid_from` to `valid_to` and until `expires_at`, unless it is `buried`; None means no end.
    `embedded`: whether it has a vector. Without one, search finds it by its words only. `document`: the id of the
    document that it is a chunk of.
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
    document: UUID | None = None


def owner_ids(row: Row) -> OwnerIds:
    """Return the owner ids of a row of `memory`."""
    return OwnerIds(row["scope"], row["owner"], row["agent_id"], row["user_id"])


def memory_of(row: Row, owner: Owner) -> Memory:
    """Convert a row of `memory`."""
    return Memory(
        id=row["id"],
        owner=owner,
        content=restore(row["content"]),
        type=restore(row["type"]),
        importance=row["importance"],
        trust=row["trust"],
        metadata=row["metadata"],
        source=_restore_optional(row["source"]),
        key=_restore_optional(row["key"]),
        conversation=_restore_optional(row["conversation"]),
        seq=row["seq"],
        author=_restore_optional(row["author"]),
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


def _restore_optional(text: str | None) -> str | None:
    return None if text is None else restore(text)


def _end(moment: datetime) -> datetime | None:
    # The driver returns infinity as the maximum datetime.
    return None if moment.year == MAXYEAR else moment
