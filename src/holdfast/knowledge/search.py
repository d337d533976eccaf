"""Searches the chunks of documents."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from holdfast.core.errors import InvalidInput
from holdfast.core.memory_settings import KnowledgeScoringSettings
from holdfast.core.shares import Shares
from holdfast.core.text import restore
from holdfast.embeddings import Embeddings
from holdfast.knowledge.hits import PassageHit, PassageHits
from holdfast.memory.chunks import answering_range, asked_keys, chunk_weights, stored_collections
from holdfast.memory.drafts import check_metadata
from holdfast.memory.owners import Owner, OwnerIds, Owners, check_owner, organization
from holdfast.memory.query import PreparedQuery, QueryPreparer
from holdfast.memory.recall import ScoreParts
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

LIMIT = 10
MAX_LIMIT = 1000
MAX_NAMED = 10_000  # documents or owners that a search can be limited to
AT_ONCE = 100  # rows to convert before yielding to other tasks

sql = statements(__name__)


class KnowledgeSearch:
    """Searches the chunks of documents by meaning, words, titles and the entities that connect them."""

    def __init__(
        self,
        database: Database,
        *,
        owners: Owners,
        embeddings: Embeddings,
        settings: KnowledgeScoringSettings,
        places: Shares,
    ) -> None:
        self._database = database
        self._owners = owners
        self._settings = settings
        self._places = places  # shared with the searches of memories: each keeps a core of the database busy
        self._queries = QueryPreparer(database, embeddings)

    async def search(
        self,
        query: str,
        *,
        limit: int = LIMIT,
        owners: Sequence[Owner] | None = None,
        collections: Sequence[str] | None = None,
        documents: Sequence[UUID] | None = None,
        where: Mapping[str, Any] | None = None,
        explain: bool = False,
    ) -> PassageHits:
        """Find the chunks that match `query`, best first.

        By default, it searches the organization's documents. `collections` and `documents` limit it to these; an empty
        list means none. `where` must be contained in the metadata of the document.
        """
        _check_limit(limit)
        searched = _check_owners(owners)
        names, ids = stored_collections(collections), _check_documents(documents)
        if where is not None:
            check_metadata(where)
        spaces = [await self._owners.find_ids(owner) for owner in searched]
        prepared = await self._queries.prepare(query, tuple(each.id for each in spaces))
        async with self._places.hold():
            rows = await self._database.all(
                sql("search"),
                [each.scope for each in spaces],
                [each.id for each in spaces],
                names,
                ids,
                dict(where) if where else None,
                *arguments(prepared),
                chunk_weights(self._settings, limit),
                limit,
            )
        return await self._hits(
            rows, prepared.reduced, dict(zip(map(_key, spaces), searched, strict=True)), explain=explain
        )

    async def _hits(
        self, rows: Sequence[Row], reduced: str, owners: Mapping[tuple[str, UUID], Owner], *, explain: bool
    ) -> PassageHits:
        hits = PassageHits()
        hits.reduced = reduced
        least = rows[-1]["score"] if rows else 0.0
        for number, row in enumerate(rows, 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)  # let other tasks run
            hits.append(hit_of(row, owners[row["scope"], row["owner"]], least=least, explain=explain))
        return hits


def hit_of(row: Row, owner: Owner, *, least: float, explain: bool) -> PassageHit:
    """Convert a row of the search. `least` is the score of the worst of the hits."""
    parts = score_parts(row["parts"])
    text = restore(row["content"])
    start, end = answering_range(
        len(text), row["passages"], row["nearness"], least=least - (parts.total - parts.vector)
    )
    return PassageHit(
        id=row["id"],
        document=row["document_id"],
        name=restore(row["name"]),
        title=_restore_optional(row["title"]),
        collection=restore(row["collection"]),
        source=_restore_optional(row["source"]),
        owner=owner,
        metadata=row["metadata"],
        chunk=row["chunk_index"],
        section=tuple(map(restore, row["section"])),
        page=row["first_page"],
        last_page=row["last_page"],
        start=row["char_start"] + start,
        end=row["char_start"] + end,
        text=text[start:end],
        score=parts.total,
        parts=parts if explain else None,
    )


def score_parts(parts: Sequence[float]) -> ScoreParts:
    """Return the parts of a chunk's score: vector, words, and what titles and the hop add as `graph`."""
    vector, words, title, hop = parts
    return ScoreParts(vector, words, 0, 0, 0, 0, 0, 0, 0, graph=title + hop)


def arguments(prepared: PreparedQuery) -> tuple[object, ...]:
    """Return vectors, terms and keys of the query, in the order of the statement's parameters."""
    models = list(prepared.vectors)
    return (
        models,
        [prepared.vectors[model][0] for model in models],
        [prepared.unrelated[model] for model in models],
        prepared.terms,
        asked_keys(prepared.text),
    )


def _key(ids: OwnerIds) -> tuple[str, UUID]:
    return ids.scope, ids.id


def _check_limit(limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"the limit {limit!r:.100} is out of range", next=f"Use 1 to {MAX_LIMIT}.")


def _check_owners(owners: Sequence[Owner] | None) -> list[Owner]:
    if owners is None:
        return [organization()]
    if not isinstance(owners, Sequence) or isinstance(owners, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("the owners are not a list", next="Pass a list, such as [organization()].")
    for owner in owners:
        check_owner(owner)
        if owner.scope == "session":
            raise InvalidInput("a session has no documents", next="Pass a user, an agent or the organization.")
    if len(owners) > MAX_NAMED:
        raise InvalidInput(f"{len(owners)} owners are too many", next=f"Pass at most {MAX_NAMED}.")
    return list(dict.fromkeys(owners))


def _check_documents(documents: object) -> list[UUID] | None:
    if documents is None:
        return None
    if not isinstance(documents, list | tuple | set | frozenset):
        raise InvalidInput(f"the documents {documents!r:.100} are not a list", next="Pass a list of their ids.")
    ids = list(cast(Sequence[object], documents))
    if len(ids) > MAX_NAMED or not all(isinstance(id, UUID) for id in ids):
        raise InvalidInput(f"the documents {documents!r:.100} are invalid", next=f"Pass at most {MAX_NAMED} ids.")
    return [cast(UUID, id) for id in ids]


def _restore_optional(text: str | None) -> str | None:
    return None if text is None else restore(text)
