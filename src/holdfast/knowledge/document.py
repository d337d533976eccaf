"""A document and what is known about it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

from holdfast.core.text import restore
from holdfast.memory import Owner
from holdfast.memory.owners import OwnerIds
from holdfast.postgres.database import Row

DocumentStatus = Literal["pending", "running", "ready", "failed"]
DOCUMENT_STATUSES: tuple[DocumentStatus, ...] = get_args(DocumentStatus)


@dataclass(frozen=True, slots=True)
class Document:
    """A document. While a new version is ingested, the former one is still searched.

    `version` counts the versions that were ingested: 0 until the first one is. `status` is that of the newest job:
    `failed` with the reason in `error`. `hash` is the SHA-256 of the file that the chunks come from.
    """

    id: UUID
    owner: Owner
    collection: str
    name: str
    title: str | None
    source: str | None
    version: int
    status: DocumentStatus
    error: str | None
    hash: str | None
    media_type: str | None
    size: int
    pages: int | None
    chunks: int
    characters: int
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class CollectionCount:
    """A collection, and how many documents and chunks it has."""

    name: str
    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class ErasedKnowledge:
    """How many documents of an owner were erased, with how many chunks."""

    documents: int
    chunks: int


def document_of(row: Row, owner: Owner) -> Document:
    """Convert a row of `document`."""
    return Document(
        id=row["id"],
        owner=owner,
        collection=restore(row["collection"]),
        name=restore(row["name"]),
        title=_restore_optional(row["title"]),
        source=_restore_optional(row["source"]),
        version=row["version"],
        status=row["status"],
        error=_restore_optional(row["error"]),
        hash=None if row["hash"] is None else row["hash"].hex(),
        media_type=_restore_optional(row["media_type"]),
        size=row["size"],
        pages=row["pages"],
        chunks=row["chunks"],
        characters=row["characters"],
        metadata=row["metadata"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def document_owner_ids(row: Row) -> OwnerIds:
    """Return the owner ids of a row of `document`."""
    return OwnerIds(row["scope"], row["owner"], row["agent_id"], None)


def _restore_optional(text: str | None) -> str | None:
    return None if text is None else restore(text)
