"""A reader: finds and reads the documents of some owners, in some collections, and knows of no others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from holdfast.core.cursors import Page
from holdfast.core.errors import InvalidInput, NotFound
from holdfast.knowledge.document import CollectionCount, Document, DocumentStatus
from holdfast.knowledge.hits import PassageHits
from holdfast.knowledge.knowledge import Knowledge
from holdfast.knowledge.readings import unknown_document
from holdfast.memory import Owner, agent, organization, user

SAME_NAME = 10  # documents of one name that an error lists


def readable_owners(*, user_name: str | None, agent_name: str | None = None) -> tuple[Owner, ...]:
    """Return the owners whose documents a user reads, or an agent that works for the user."""
    owners = [organization()]
    owners += [] if agent_name is None else [agent(agent_name)]
    owners += [] if user_name is None else [user(user_name)]
    return tuple(owners)


@dataclass(frozen=True, slots=True)
class KnowledgeReader:
    """Reads the documents of `owners`. `collections` limits it to these; None means all."""

    knowledge: Knowledge
    owners: tuple[Owner, ...]
    collections: tuple[str, ...] | None = None

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        collection: str | None = None,
        documents: Sequence[UUID] | None = None,
        where: Mapping[str, Any] | None = None,
        explain: bool = False,
    ) -> PassageHits:
        """Find the chunks that answer `query`, best first."""
        return await self.knowledge.search(
            query,
            limit=limit,
            owners=self.owners,
            collections=self.within(collection),
            documents=documents,
            where=where,
            explain=explain,
        )

    async def document(self, named: str | UUID, *, collection: str | None = None) -> Document:
        """Return a document by its id or its name, which may look like an id."""
        id = named if isinstance(named, UUID) else _id_of(named)
        found = None if id is None else await self._by_id(id, collection)
        if found is not None:
            return found
        if isinstance(named, UUID):
            raise unknown_document(named)
        collections = self.within(collection)
        same = await self.knowledge.list(owners=self.owners, collections=collections, name=named, limit=SAME_NAME)
        if not same:
            raise NotFound(f"there is no document {named!r:.200}", next="List the documents.")
        if collection is not None:  # owners can have documents of the same address: the first of them counts
            return min(same, key=lambda each: self._place_of(each.owner))
        if len(same) > 1:
            places = ", ".join(f"{each.id} ({each.owner.scope}, collection {each.collection})" for each in same)
            raise InvalidInput(f"several documents are called {named!r:.200}", why=places, next="Give the id of one.")
        return same[0]

    async def _by_id(self, id: UUID, collection: str | None) -> Document | None:
        """Return the document with this id, if it can be read and is in the collection."""
        try:
            found = await self.knowledge.get(id)
        except NotFound:
            return None
        return found if self.may_read(found) and collection in (None, found.collection) else None

    def may_read(self, document: Document) -> bool:
        """Whether the document is one of these owners' and collections."""
        is_owned = self._place_of(document.owner) < len(self.owners)
        return is_owned and (self.collections is None or document.collection in self.collections)

    def _place_of(self, owner: Owner) -> int:
        """Return the place of an owner among the reader's; one after the last if it is none of them."""
        places = (n for n, each in enumerate(self.owners) if (owner.scope, owner.name) == (each.scope, each.name))
        return next(places, len(self.owners))

    async def list(
        self,
        *,
        collection: str | None = None,
        name: str | None = None,
        status: DocumentStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Document]:
        """Return a page of the documents, newest first."""
        collections = self.within(collection)
        return await self.knowledge.list(
            owners=self.owners, collections=collections, name=name, status=status, limit=limit, cursor=cursor
        )

    async def count_by_collection(self) -> Sequence[CollectionCount]:
        """Return the collections, with the number of their documents and chunks."""
        return await self.knowledge.collections(self.owners, collections=self.collections)

    def within(self, collection: str | None) -> tuple[str, ...] | None:
        """Return the collections to look in: all that the reader has, or this one if the reader has it."""
        if collection is None:
            return self.collections
        return (collection,) if self.collections is None or collection in self.collections else ()


def _id_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
