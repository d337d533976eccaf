"""The corpus of a research: the documents that it may read, found by search and read by chunks."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

import msgspec

from holdfast.core.errors import NotFound
from holdfast.core.text import restore, store
from holdfast.knowledge.research.passages import Passage, one_line
from holdfast.memory import Owner, agent, organization, user
from holdfast.memory.owners import OwnerIds, Owners, Scope
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

LISTED_DOCUMENTS = 60
SECTIONS = 12  # of a document in the overview
LONGEST_NAME = 120
ALL_CHUNKS = 1_000_000  # that a research lists at most

sql = statements(__name__)


class ResearchOwner(msgspec.Struct, frozen=True):
    """Whose documents are read: those of a user, an agent or the organization."""

    scope: Scope
    name: str = ""

    def owner(self) -> Owner:
        """Return it as an owner of memories and documents."""
        match self.scope:
            case "user":
                return user(self.name)
            case "agent":
                return agent(self.name)
            case _:
                return organization()


class ResearchTarget(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a research reads: documents of these owners, in these collections, or only these.

    `whole`: all of their chunks if the budget allows it, else a selection.
    """

    owners: tuple[ResearchOwner, ...]
    collections: tuple[str, ...] | None = None
    documents: tuple[UUID, ...] | None = None
    whole: bool = False


class FoundChunk(Protocol):
    """A hit of a search."""

    @property
    def id(self) -> UUID:
        """The chunk."""
        ...


class ChunkSearch(Protocol):
    """Finds the chunks that answer a query, best first."""

    async def __call__(
        self,
        query: str,
        *,
        limit: int = 10,
        owners: Sequence[Owner] | None = None,
        collections: Sequence[str] | None = None,
        documents: Sequence[UUID] | None = None,
    ) -> Sequence[FoundChunk]:
        """Search."""
        ...


class CorpusSize(msgspec.Struct, frozen=True):
    """How large the corpus is, and an overview of its documents for a prompt."""

    documents: int
    chunks: int
    characters: int
    overview: str


class ChunkSize(msgspec.Struct, frozen=True, array_like=True):
    """A chunk and its tokens, as the tokenizer of the embedding model counts them."""

    chunk: UUID
    tokens: int


class Corpus:
    """The documents that one research may read."""

    def __init__(self, database: Database, owners: Owners, search: ChunkSearch, target: ResearchTarget) -> None:
        self._database = database
        self._owners = owners
        self._search = search
        self._target = target
        self._filter: tuple[object, ...] | None = None

    async def size(self) -> CorpusSize:
        """Return how large the corpus is. Raise NotFound if it has no chunks."""
        rows = await self._database.all(sql("documents"), *await self._filters(), LISTED_DOCUMENTS)
        if not rows:
            raise NotFound(
                "there are no documents to read",
                why="no document with text has one of these owners, collections and ids",
                next="`holdfast knowledge ls` lists documents. A document that is still being read in has no text yet.",
            )
        sections = await self._sections([row["id"] for row in rows])
        lines = [
            f"- {_short(restore(row['title'] or row['name']))} ({row['chunks']} passages"
            + (f", {row['pages']} pages" if row["pages"] else "")
            + ")"
            + (": " + "; ".join(map(_short, sections[row["id"]])) if row["id"] in sections else "")
            for row in rows
        ]
        if rows[0]["documents"] > len(rows):
            lines.append(f"- and {rows[0]['documents'] - len(rows):,} more")
        return CorpusSize(rows[0]["documents"], rows[0]["all_chunks"], rows[0]["all_characters"], "\n".join(lines))

    async def find(self, query: str, limit: int) -> list[UUID]:
        """Return the chunks that answer a query, best first."""
        target = self._target
        hits = await self._search(
            query,
            limit=limit,
            owners=[each.owner() for each in target.owners],
            collections=target.collections,
            documents=target.documents,
        )
        return [hit.id for hit in hits]

    async def all_chunks(self, most: int = ALL_CHUNKS) -> list[ChunkSize]:
        """Return the chunks of all documents, in the order of the text."""
        rows = await self._database.all(sql("chunk_sizes"), *await self._filters(), most)
        return [ChunkSize(row["id"], row["tokens"]) for row in rows]

    async def spread(self, step: int, most: int) -> list[UUID]:
        """Return every `step`th chunk, in the order of the text."""
        rows = await self._database.all(sql("spread"), *await self._filters(), max(1, step), most)
        return [row["id"] for row in rows]

    async def passages(self, numbers: Mapping[UUID, int]) -> list[Passage]:
        """Return chunks as passages with these numbers, in the order of `numbers`. Chunks that are gone are missing."""
        rows = {row["id"]: row for row in await self._database.all(sql("chunks"), list(numbers))}
        return [_passage(rows[chunk], number) for chunk, number in numbers.items() if chunk in rows]

    async def existing(self, chunks: Sequence[UUID]) -> set[UUID]:
        """Return which of these chunks are still there."""
        return {row["id"] for row in await self._database.all(sql("existing_chunks"), list(chunks))}

    async def _sections(self, documents: Sequence[UUID]) -> dict[UUID, list[str]]:
        found: dict[UUID, list[tuple[int, str]]] = {}
        for row in await self._database.all(sql("document_sections"), list(documents)):
            found.setdefault(row["document_id"], []).append((row["chunk_index"], restore(row["section"])))
        return {document: [name for _, name in sorted(named)[:SECTIONS]] for document, named in found.items()}

    async def _filters(self) -> tuple[object, ...]:
        if self._filter is None:
            ids = [await self._owners.find_ids(each.owner()) for each in self._target.owners]
            collections, documents = self._target.collections, self._target.documents
            self._filter = (
                [each.scope for each in ids],
                [each.id for each in ids],
                None if collections is None else [store(name) for name in collections],
                None if documents is None else list(documents),
            )
        return self._filter


async def owners_of_documents(database: Database, owners: Owners, documents: Sequence[UUID]) -> dict[UUID, Owner]:
    """Return whose documents these are. Missing ones are not in the result."""
    rows = await database.all(sql("document_owners"), list(documents))
    found = await owners.from_ids([OwnerIds(row["scope"], row["owner"], row["agent_id"], None) for row in rows])
    return {row["id"]: owner for row, owner in zip(rows, found, strict=True)}


def _passage(row: Any, number: int) -> Passage:
    return Passage(
        number=number,
        chunk=row["id"],
        document=row["document_id"],
        name=restore(row["name"]),
        title=None if row["title"] is None else restore(row["title"]),
        version=row["version"],
        index=row["chunk_index"],
        section=tuple(map(restore, row["section"])),
        page=row["first_page"],
        last_page=row["last_page"],
        start=row["char_start"],
        end=row["char_end"],
        text=restore(row["content"]),
    )


def _short(name: str) -> str:
    return one_line(name)[:LONGEST_NAME]
