"""Stores documents as rows, without ingesting them: each text is a chunk."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from holdfast.core.ids import uuid7
from holdfast.core.words import terms
from holdfast.embeddings.language import language_of
from holdfast.engine import Engine
from holdfast.memory import Owner, organization
from holdfast.memory.graph.extraction import graph_of, key_of
from holdfast.memory.owners import Owners
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Transaction

DOCUMENTS = """
insert into document (
  tenant_id, id, scope, owner, collection, name, title, title_key, source, metadata, status, version, chunks,
  characters)
select $1, d.id, d.scope, d.owner, d.collection, d.name, d.title, d.title_key, d.source, d.metadata, 'ready', 1,
  d.chunks, d.characters
from json_populate_recordset(null::document, $2) d
"""
CHUNKS = """
insert into chunk (
  tenant_id, document_id, chunk_index, id, first_page, last_page, char_start, char_end, tokens, length, language,
  embedded, digest, passages, section, content)
select $1, c.document_id, c.chunk_index, c.id, c.first_page, c.last_page, c.char_start, c.char_end, c.tokens, c.length,
  c.language, c.embedded, c.id, c.passages, c.section, c.content
from json_populate_recordset(null::chunk, $2) c
"""
VECTORS = """
insert into chunk_vector (tenant_id, document_id, chunk_index, passage, dimensions, model, embedding)
select $1, v.document_id, v.chunk_index, v.passage, vector_dims(v.embedding), v.model, v.embedding
from unnest($2::uuid[], $3::int[], $4::int[], $5::text[], $6::halfvec[])
  as v (document_id, chunk_index, passage, model, embedding)
"""
TERMS = """
insert into chunk_term (tenant_id, term, document_id, chunks)
select $1, t.term, t.document_id, array_agg(t.chunk_index order by t.chunk_index)
from unnest($2::bigint[], $3::uuid[], $4::int[]) as t (term, document_id, chunk_index) group by t.term, t.document_id
"""
LINKS = """
select sum(holdfast.link_entities($1, l.scope, l.owner, l.id, l.items))
from unnest($2::text[], $3::uuid[], $4::uuid[], $5::json[]) as l (scope, owner, id, items)
"""
AT_ONCE = 2000  # chunks in one statement


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk. `passages` are the ranges that get a vector each; `vectors` are made up, or else the model's."""

    text: str
    section: tuple[str, ...] = ()
    page: int | None = None
    passages: tuple[tuple[int, int], ...] = ()
    vectors: Sequence[Sequence[float] | bytes] | None = None
    id: UUID = field(default_factory=uuid7)

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The ranges of its passages: all of it, if none are given."""
        return self.passages or ((0, len(self.text)),)


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document with its chunks; a text stands for a chunk."""

    name: str
    chunks: Sequence[StoredChunk | str]
    title: str | None = None
    collection: str = "default"
    owner: Owner = organization()  # noqa: RUF009 - a frozen value
    metadata: Mapping[str, Any] | None = None
    source: str | None = None


PlacedChunk = tuple[UUID, int, int, StoredChunk]  # with its document, its index and its first character


async def store(
    engine: Engine,
    *documents: StoredDocument,
    model: str | None = None,
    embed: bool = True,
    link: bool = True,
    tx: Transaction | None = None,
) -> list[UUID]:
    """Store documents, and return their ids. `model` is that of made-up vectors. Without `embed`, none has a vector,
    and without `link`, none has entities.
    """
    owners = Owners(engine.database, engine.identities)
    rows: list[dict[str, Any]] = []
    chunks: list[PlacedChunk] = []
    links: list[tuple[str, UUID, UUID, str]] = []
    for document in documents:
        ids = await owners.store_ids(document.owner)
        id, at = uuid7(), 0
        for index, each in enumerate(document.chunks):
            chunk = StoredChunk(each) if isinstance(each, str) else each
            chunks.append((id, index, at, chunk))
            at += len(chunk.text) + 2
        if link:
            items = [
                {"memory": str(chunk.id), **found}
                for _, index, _, chunk in chunks[-len(document.chunks) :]
                if (found := graph_of(chunk.text, title=document.title if index == 0 else None))
            ]
            links.append((ids.scope, ids.id, id, json.dumps(items)))
        rows.append({
            "id": id, "scope": ids.scope, "owner": ids.id, "collection": document.collection, "name": document.name,
            "title": document.title, "title_key": None if document.title is None else key_of(document.title),
            "source": document.source, "metadata": dict(document.metadata or {}), "chunks": len(document.chunks),
            "characters": max(0, at - 2),
        })  # fmt: skip
    if tx is None:
        async with engine.transaction() as own:
            await _store_rows(engine, own, rows, chunks, links, model, embed)
    else:
        await _store_rows(engine, tx, rows, chunks, links, model, embed)
    return [row["id"] for row in rows]


async def _store_rows(
    engine: Engine,
    tx: Transaction,
    rows: Sequence[dict[str, Any]],
    chunks: Sequence[PlacedChunk],
    links: Sequence[tuple[str, UUID, UUID, str]],
    model: str | None,
    embed: bool,
) -> None:
    await tx.run(DOCUMENTS, json.dumps(rows, default=str))
    for start in range(0, len(chunks), AT_ONCE):
        await _store_chunks(engine, tx, chunks[start : start + AT_ONCE], model, embed)
    if links:
        await tx.value(LINKS, *(list(column) for column in zip(*links, strict=True)))


async def _store_chunks(
    engine: Engine, tx: Transaction, chunks: Sequence[PlacedChunk], model: str | None, embed: bool
) -> None:
    rows: list[dict[str, Any]] = []
    vectors: list[tuple[UUID, int, int, str, bytes]] = []
    words: list[tuple[int, UUID, int]] = []
    for id, index, at, chunk in chunks:
        language, found = language_of(chunk.text), terms(chunk.text)
        given = chunk.vectors
        own = model or engine.embeddings.model(language)
        if given is None and embed:
            texts = [chunk.text[start:end] for start, end in chunk.ranges]
            made = await engine.embeddings.vectors(texts, [language for _ in texts])
            given = None if None in made else [each for each in made if each is not None]
        rows.append({
            "document_id": id, "chunk_index": index, "id": chunk.id, "first_page": chunk.page, "last_page": chunk.page,
            "char_start": at, "char_end": at + len(chunk.text), "tokens": len(chunk.text) // 4, "length": len(found),
            "language": language, "embedded": None if given is None else own,
            "passages": [each for span in chunk.ranges for each in span],
            "section": list(chunk.section), "content": chunk.text,
        })  # fmt: skip
        words += [(term, id, index) for term in found]
        if own is not None:
            vectors += [(id, index, n, own, encode_halfvec(each)) for n, each in enumerate(given or ())]
    await tx.run(CHUNKS, json.dumps(rows, default=str))
    if vectors:
        await tx.run(VECTORS, *(list(column) for column in zip(*vectors, strict=True)))
    if words:
        await tx.run(TERMS, *(list(column) for column in zip(*words, strict=True)))
