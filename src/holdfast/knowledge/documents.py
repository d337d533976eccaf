"""Finds, changes and removes documents."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.core.errors import AlreadyExists, InvalidInput
from holdfast.core.names import stored_name
from holdfast.core.text import restore, store
from holdfast.knowledge.document import (
    DOCUMENT_STATUSES,
    CollectionCount,
    Document,
    DocumentStatus,
    document_of,
    document_owner_ids,
)
from holdfast.knowledge.readings import unknown_document
from holdfast.memory import Owner
from holdfast.memory.drafts import check_metadata
from holdfast.memory.graph.extraction import key_of
from holdfast.memory.owners import OwnerIds, Owners, check_owner
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

MAX_PAGE = 1000
MAX_TITLE = 1000  # characters
DEFAULT = "default"  # the collection of a document for which none is named

sql = statements(__name__)


class KnowledgeDocuments:
    """The documents of a tenant, without their text."""

    def __init__(self, database: Database, *, owners: Owners) -> None:
        self._database = database
        self._owners = owners

    async def get(self, id: UUID) -> Document:
        """Return a document."""
        row = await self._database.one(sql("document"), id)
        if row is None:
            raise unknown_document(id)
        return (await self.from_rows([row]))[0]

    async def find(self, name: str, *, collection: str = DEFAULT, owner: Owner | None = None) -> Document | None:
        """Return the document of this name, if there is one."""
        ids = await self._owners.find_ids(document_owner(owner))
        row = await self._database.one(
            sql("find_document"), ids.scope, ids.id, stored_collection(collection), stored_name("document", name)
        )
        return None if row is None else (await self.from_rows([row]))[0]

    async def list(
        self,
        *,
        owners: Sequence[Owner] | None = None,
        collections: Sequence[str] | None = None,
        name: str | None = None,
        status: DocumentStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Document]:
        """Return documents, newest first: those of all owners, or of some; of all collections, or of some."""
        check_limit(limit)
        if status is not None and status not in DOCUMENT_STATUSES:
            raise InvalidInput(
                f"the status {status!r:.100} is unknown", next=f"Use one of {', '.join(DOCUMENT_STATUSES)}."
            )
        names = None if collections is None else [stored_collection(each) for each in collections]
        before, _ = read_cursor(cursor)
        if name is not None:
            return await self._of_name(name, owners, names, status, before, limit)
        if owners is None:
            rows = await self._database.all(sql("list_documents"), names, status, before, limit + 1)
        else:
            scopes, ids = await self.scopes_and_ids(owners)
            rows = await self._database.all(
                sql("list_documents_of_owners"), scopes, ids, names, status, before, limit + 1
            )
        last = rows[limit - 1]["id"] if len(rows) > limit else None
        return Page(await self.from_rows(rows[:limit]), None if last is None else write_cursor(last))

    async def _of_name(
        self,
        name: str,
        owners: Sequence[Owner] | None,
        collections: "Sequence[str] | None",
        status: DocumentStatus | None,
        before: UUID,
        limit: int,
    ) -> Page[Document]:
        scopes, ids = (None, None) if owners is None else await self.scopes_and_ids(owners)
        stored = stored_name("document", name)
        rows = await self._database.all(
            sql("documents_by_name"), stored, scopes, ids, collections, before, limit + 1, status
        )
        last = rows[limit - 1]["id"] if len(rows) > limit else None
        return Page(await self.from_rows(rows[:limit]), None if last is None else write_cursor(last))

    async def collections(
        self, owners: Sequence[Owner] | None = None, *, collections: Sequence[str] | None = None
    ) -> "list[CollectionCount]":
        """Return the collections, by name, and how many documents and chunks each has."""
        names = None if collections is None else [stored_collection(each) for each in collections]
        scopes, ids = (None, None) if owners is None else await self.scopes_and_ids(owners)
        rows = await self._database.all(sql("collections"), scopes, ids, names)
        return [CollectionCount(restore(row["collection"]), row["documents"], row["chunks"]) for row in rows]

    async def update(
        self,
        id: UUID,
        *,
        metadata: Mapping[str, Any] | None = None,
        title: str | None = None,
        collection: str | None = None,
    ) -> Document:
        """Change what is known about a document. Omitted fields are unchanged."""
        if metadata is None and title is None and collection is None:
            raise InvalidInput("no change was given", next="Pass metadata, a title or a collection.")
        if metadata is not None:
            check_metadata(metadata)
        if title is not None and stored_title(title) is None:
            raise InvalidInput("the title is empty", next="Pass a title, or leave it out to keep the title.")
        try:
            row = await self._database.one(
                sql("update_document"),
                id,
                None if metadata is None else dict(metadata),
                stored_title(title),
                title_key(title),
                None if collection is None else stored_collection(collection),
            )
        except AlreadyExists:
            raise AlreadyExists(
                "the collection already has a document of this name",
                next="Remove that document first, or use another collection.",
            ) from None
        if row is None:
            raise unknown_document(id)
        return (await self.from_rows([row]))[0]

    async def remove(self, id: UUID) -> None:
        """Remove a document with every trace: its chunks, vectors, words, entities, jobs and uploads."""
        if await self._database.value(sql("remove_document"), id) is None:
            raise unknown_document(id)

    async def from_rows(self, rows: "Sequence[Row]") -> "list[Document]":
        """Convert rows of `document`."""
        owners = await self._owners.from_ids([document_owner_ids(row) for row in rows])
        return [document_of(row, owner) for row, owner in zip(rows, owners, strict=True)]

    async def scopes_and_ids(self, owners: Iterable[Owner]) -> "tuple[list[str], list[UUID]]":
        """Return the scopes and the ids of owners, as in rows of `document`."""
        found = [await self._owners.find_ids(document_owner(owner)) for owner in owners]
        distinct = list(dict.fromkeys((ids.scope, ids.id) for ids in found))
        return [scope for scope, _ in distinct], [id for _, id in distinct]

    async def owner_ids(self, owner: Owner | None) -> OwnerIds:
        """Return the ids of an owner to write, and store its names."""
        return await self._owners.store_ids(document_owner(owner))


def document_owner(owner: Owner | None) -> Owner:
    """Return the owner of documents: the organization if none is given. A session has no documents."""
    if owner is None:
        return Owner("organization")
    check_owner(owner)
    if owner.scope == "session":
        raise InvalidInput(
            "a session cannot have documents",
            why="documents stay when a session ends",
            next='Use organization(), agent(name) or user("ann").',
        )
    return owner


def stored_collection(name: str) -> str:
    """Return the stored form of the name of a collection."""
    return stored_name("collection", name)


def stored_title(title: str | None) -> str | None:
    """Return the stored form of a title: in one line, and cut if it is long."""
    if title is None:
        return None
    if not isinstance(title, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"the title {title!r:.100} is not a string", next="Pass a string.")
    return store(" ".join(title.split())[:MAX_TITLE]) or None


def title_key(title: str | None) -> str | None:
    """Return the stored form of a title as searches compare it."""
    return None if title is None else store(key_of(title)) or None


def check_limit(limit: int) -> None:
    """Raise InvalidInput for a page size that is out of range."""
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_PAGE:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"the limit {limit!r:.100} is invalid", next=f"Use a number from 1 to {MAX_PAGE}.")
