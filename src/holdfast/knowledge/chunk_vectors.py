"""Embeds chunks that have no vector of the current model: they were stored without a model, or it has changed."""

import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import cast
from uuid import UUID

from holdfast.core.ids import TenantId
from holdfast.core.text import restore
from holdfast.embeddings import Embeddings
from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.language import Language
from holdfast.knowledge.chunk import Chunk
from holdfast.knowledge.chunker import passage_texts
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Database, Row, Statements
from holdfast.postgres.sql import statements

TOGETHER = 32  # chunks per batch
PAUSE = 600.0  # seconds until a refused chunk is tried again
MOST_REFUSED = 10_000  # chunks that are remembered as refused

sql = statements(__name__)


class ChunkVectors:
    """The chunks that the Indexer of memories embeds beside these."""

    def __init__(self, system: Statements, embeddings: Embeddings) -> None:
        self._system = system
        self._embeddings = embeddings
        self._refused: dict[UUID, float] = {}  # and when to try again

    async def tenants(self, models: Mapping[Language, str | None]) -> Sequence[TenantId]:
        """Return the tenants with chunks that have no vector of the model of their language."""
        rows = await self._system.all(sql("tenants_with_unembedded_chunks"), list(models), list(models.values()))
        return [row["id"] for row in rows]

    async def count(self, database: Database, models: Mapping[Language, str | None]) -> int:
        """Count these chunks of a tenant."""
        return cast(int, await database.value(sql("count_unembedded_chunks"), list(models), list(models.values())))

    async def embed(self, database: Database, models: Mapping[Language, str | None]) -> int:
        """Embed a batch of a tenant's chunks. Return how many are settled: written, or refused by the model."""
        now = time.monotonic()
        self._refused = {id: until for id, until in self._refused.items() if until > now}
        for language, model in models.items():
            rows = await database.all(sql("unembedded_chunks"), language, model, list(self._refused), TOGETHER)
            own_model = self._embeddings.model(language)
            if rows and own_model is not None:
                settled = await self._embed(database, rows, language, own_model)
                if settled:
                    return settled
        return 0

    async def _embed(self, database: Database, rows: Sequence[Row], language: Language, model: str) -> int:
        texts = [passage_texts(_chunk(row), None if row["title"] is None else restore(row["title"])) for row in rows]
        flat = [text for each in texts for text in each]
        languages: list[Language] = [language] * len(flat)
        found = await self._embeddings.vectors(flat, languages)
        written: list[tuple[Row, Sequence[Vector]]] = []
        refused = 0
        start = 0
        for row, each in zip(rows, texts, strict=True):
            vectors = [vector for vector in found[start : start + len(each)] if vector is not None]
            start += len(each)
            if len(vectors) == len(each):
                written.append((row, vectors))
            elif self._embeddings.ready(model) and len(self._refused) < MOST_REFUSED:
                self._refused[row["id"]] = time.monotonic() + PAUSE
                refused += 1
        if written:
            await database.run(
                sql("embed_chunks"),
                [row["document_id"] for row, _ in written],
                [row["chunk_index"] for row, _ in written],
                [row["digest"] for row, _ in written],
                [model] * len(written),
                [len(vectors) for _, vectors in written],
                [encode_halfvec(vector) for _, vectors in written for vector in vectors],
            )
        return len(written) + refused


def _chunk(row: Row) -> Chunk:
    edges: Sequence[int] = row["passages"]
    return Chunk(
        index=row["chunk_index"],
        text=restore(row["content"]),
        start=0,
        end=0,
        section=tuple(map(restore, row["section"])),
        passages=tuple(pairwise(edges))[::2],
    )
