"""The work on one job: its file is read, its passages are embedded, its chunks are staged and become the document's.

The three steps overlap. What they hand on is bounded, so that a large file needs no more memory than a small one.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import msgspec

from holdfast.core.errors import Unavailable
from holdfast.core.ids import uuid7
from holdfast.core.text import restore, store
from holdfast.core.threads import run_in_worker
from holdfast.embeddings import Embeddings
from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.language import Language
from holdfast.knowledge.chunk import Chunk
from holdfast.knowledge.chunker import passage_texts
from holdfast.knowledge.documents import stored_title, title_key
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.reader.protocol import ReadChunk, ReadOptions, ReadPart
from holdfast.knowledge.reader.readers import Readers
from holdfast.knowledge.uploads import PIECE
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

AHEAD = 2  # parts that wait between two steps
TOGETHER = 4_000  # chunks that become the document's in one statement
TERMS_TOGETHER = 16_000  # chunks whose words are stored in one statement
MAX_HEADING = 300  # characters

sql = statements(__name__)


class Lost(Exception):
    """The job was superseded, removed, or taken over by another process."""


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that this process holds."""

    id: UUID
    document: UUID
    epoch: int
    attempts: int
    position: bytes | None
    media_type: str | None
    size: int
    chunks: int
    name: str
    title: str | None
    is_new: bool  # no version of the document was ingested
    first_piece: bytes | None  # of the file

    @classmethod
    def of(cls, row: Row) -> "ClaimedJob":
        """Convert a row of `claim_ingest_job`."""
        return cls(
            id=row["id"],
            document=row["document_id"],
            epoch=row["epoch"],
            attempts=row["attempts"],
            position=row["position"],
            media_type=None if row["media_type"] is None else restore(row["media_type"]),
            size=row["size"],
            chunks=row["chunks"],
            name=restore(row["name"]),
            is_new=row["is_new"],
            first_piece=row["first_piece"],
            title=None if row["title"] is None else restore(row["title"]),
        )


@dataclass(frozen=True, slots=True)
class EmbeddedPart:
    """A part with its vectors: for each chunk its model and its vectors, or that they are there already."""

    part: ReadPart
    models: list[str | None]
    vectors: list[list[bytes]]
    reused: list[bool]


class Ingestion:
    """Works on one job. `progressed`: it has staged something."""

    def __init__(
        self,
        database: Database,
        job: ClaimedJob,
        *,
        readers: Readers,
        embeddings: Embeddings,
        options: ReadOptions,
    ) -> None:
        self._database = database
        self._job = job
        self._readers = readers
        self._embeddings = embeddings
        self._options = options
        self._title = job.title
        self._chunks = job.chunks  # that were read, in all
        self._collection: str | None = None  # of the document, once it is replaced
        self.progressed = False

    async def run(self) -> str:
        """Ingest the document, and return its collection. Raises ParseError if the file cannot be read, and Lost."""
        async with self._file() as path:
            await _pipeline(self._parts(path), self._embedded, self._stage)
        return restore(self._collection or await self._commit())

    @asynccontextmanager
    async def _file(self) -> AsyncGenerator[Path]:
        """Write the pieces to a private file, which is deleted afterwards."""
        if self._job.size and self._job.first_piece is None:
            raise Lost
        path = self._readers.folder / str(uuid7())
        try:
            try:
                with await run_in_worker(partial(_create, path, self._job.first_piece or b"")) as file:
                    for number in range(1, -(-self._job.size // PIECE)):
                        piece = await self._database.value(sql("piece"), self._job.id, number)
                        if piece is None:
                            raise Lost
                        await run_in_worker(partial(file.write, piece))
            except OSError as error:
                raise Unavailable(
                    "the file cannot be written for its parser",
                    why=error.strerror or str(error),
                    next=f"Make room in {path.parent}.",
                ) from None
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _parts(self, path: Path) -> AsyncGenerator[ReadPart]:
        job = self._job
        return self._readers.read(
            path,
            name=job.name,
            media_type=job.media_type,
            title=job.title,
            position=job.position,
            options=self._options,
        )

    async def _embedded(self, part: ReadPart) -> EmbeddedPart:
        """Embed the passages of a part. Those whose vectors are there already are left out."""
        chunks = part.chunks
        names = [self._embeddings.model(chunk.language) for chunk in chunks]
        reusable = await self._reusable(chunks, names)
        first: dict[tuple[UUID, str | None], int] = {}
        texts: list[str] = []
        ranges: dict[int, tuple[int, int]] = {}
        for place, (chunk, name) in enumerate(zip(chunks, names, strict=True)):
            key = (chunk.digest, name)
            if name is None or key in reusable or first.setdefault(key, place) != place:
                continue
            passages = passage_texts(chunk.chunk, part.title)
            ranges[place] = (len(texts), len(texts) + len(passages))
            texts += passages
        languages: list[Language] = [
            chunks[place].language for place, (start, end) in ranges.items() for _ in range(start, end)
        ]
        found = await self._embeddings.vectors(texts, languages) if texts else []
        own = {place: _encoded(found[start:end]) for place, (start, end) in ranges.items()}
        self._chunks += len(chunks)
        return EmbeddedPart(
            part,
            names,
            [own.get(first.get((chunk.digest, name), -1), []) for chunk, name in zip(chunks, names, strict=True)],
            [(chunk.digest, name) in reusable for chunk, name in zip(chunks, names, strict=True)],
        )

    async def _reusable(self, chunks: Sequence[ReadChunk], names: Sequence[str | None]) -> set[tuple[UUID, str | None]]:
        if self._job.is_new and not self._chunks:
            return set()
        asked = {(chunk.digest, name) for chunk, name in zip(chunks, names, strict=True) if name is not None}
        if not asked:
            return set()
        rows = await self._database.all(
            sql("reusable_digests"),
            self._job.id,
            self._job.document,
            [digest for digest, _ in asked],
            [name for _, name in asked],
        )
        return {(row["digest"], row["model"]) for row in rows}

    async def _stage(self, embedded: EmbeddedPart) -> None:
        """Store a part's chunks, and how far the job is. The last part of a short document also replaces it."""
        part = embedded.part
        terms: list[int] = []
        vectors: list[bytes] = []
        items: list[dict[str, Any]] = []
        for place, chunk in enumerate(part.chunks):
            item = _item(chunk, place)
            item["model"] = embedded.models[place]
            item["reuses"] = embedded.reused[place]
            item["terms_from"], item["vectors_from"] = len(terms) + 1, len(vectors) + 1
            terms += chunk.terms
            vectors += embedded.vectors[place]
            item["terms_to"], item["vectors_to"] = len(terms), len(vectors)
            items.append(item)
        self._title = stored_title(part.title)
        staged = (
            self._job.id,
            self._job.epoch,
            msgspec.json.encode(items).decode(),
            [store(chunk.chunk.text) for chunk in part.chunks],
            terms,
            vectors,
            part.position,
            part.units,
            part.total_units,
            part.characters,
            part.pages,
            self._title,
            store(part.media_type),
        )
        if part.last and 0 < self._chunks <= TOGETHER:
            self._collection = await self._database.value(sql("stage_and_commit"), *staged, title_key(self._title))
            is_ours = self._collection is not None
        else:
            is_ours = await self._database.value(sql("stage_chunks"), *staged)
        if not is_ours:
            raise Lost
        self.progressed = self.progressed or bool(part.chunks)

    async def _commit(self) -> str:
        """Make the staged chunks of a long document the document's, in one transaction of several statements."""
        job, key = self._job, title_key(self._title)

        async def work(tx: Transaction) -> str | None:
            begun = await tx.one(sql("begin_version"), job.id, job.epoch)
            if begun is None:
                return None
            chunks = begun["chunks"]
            for first in range(0, chunks, TOGETHER):
                await tx.run(sql("insert_chunks"), job.id, job.document, first, first + TOGETHER - 1)
            parts = -(-chunks // TERMS_TOGETHER)
            for part in range(parts):
                await tx.run(sql("insert_chunk_terms"), job.id, job.document, part, parts)
            return await tx.value(sql("end_version"), job.id, job.document, key)

        if not self._chunks:
            raise ParseError(
                "the document has no text",
                code="unsupported",
                why="it is empty, or it consists of images",
                next="Add a file with text; a scanned document needs text recognition first.",
            )
        collection = await self._database.atomically(work)
        if collection is None:
            raise Lost
        return collection


async def _pipeline(
    parts: AsyncGenerator[ReadPart],
    embed: Callable[[ReadPart], Awaitable[EmbeddedPart]],
    stage: Callable[[EmbeddedPart], Awaitable[None]],
) -> None:
    """Read, embed and stage at the same time. The first error stops all of it."""
    read: asyncio.Queue[ReadPart | None] = asyncio.Queue(AHEAD)
    embedded: asyncio.Queue[EmbeddedPart | None] = asyncio.Queue(AHEAD)

    async def read_all() -> None:
        async with aclosing(parts) as left:
            async for part in left:
                await read.put(part)
        await read.put(None)

    async def embed_all() -> None:
        while (part := await read.get()) is not None:
            await embedded.put(await embed(part))
        await embedded.put(None)

    async def stage_all() -> None:
        while (part := await embedded.get()) is not None:
            await stage(part)

    try:
        async with asyncio.TaskGroup() as group:
            for step in (read_all, embed_all, stage_all):
                group.create_task(step(), name="holdfast ingestion")
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def _create(path: Path, first: bytes) -> BinaryIO:
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
    try:
        file.write(first)
    except BaseException:
        file.close()
        raise
    return file


def _encoded(vectors: Sequence[Vector | None]) -> list[bytes]:
    """Return the vectors of a chunk, or none if one is missing: the model refused a passage, or is not available."""
    return [] if any(each is None for each in vectors) else [encode_halfvec(each) for each in vectors if each]


def _item(chunk: ReadChunk, place: int) -> dict[str, Any]:
    """Return the small columns of a chunk."""
    own: Chunk = chunk.chunk
    return {
        "place": place + 1,
        "chunk_index": own.index,
        "first_page": own.first_page,
        "last_page": own.last_page,
        "char_start": own.start,
        "char_end": own.end,
        "tokens": own.tokens,
        "length": chunk.length,
        "language": chunk.language,
        "digest": chunk.digest,
        "passages": [edge for passage in own.passages for edge in passage],
        "section": [store(each[:MAX_HEADING]) for each in own.section],
        "marks": _marks(own),
        "after": store(own.after),
        "entities": chunk.entities,
    }


def _marks(chunk: Chunk) -> list[list[Any]] | None:
    """Return where pages and headings begin in a chunk, as `chunk.marks`."""
    marks = [[start, page, 0, ""] for page, start in chunk.pages]
    marks += [[each.start, each.page, each.level, store(each.text[:MAX_HEADING])] for each in chunk.headings]
    return sorted(marks, key=lambda mark: (mark[0], mark[2])) or None
