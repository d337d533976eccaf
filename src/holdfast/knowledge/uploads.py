"""Brings documents in: stores a file in pieces while it is hashed, and makes a job of it.

The whole file is never in memory. An unchanged document costs one look.
"""

import asyncio
import hashlib
import stat
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge
from holdfast.core.ids import uuid7
from holdfast.core.memory_settings import KnowledgeSettings
from holdfast.core.names import stored_name
from holdfast.core.text import store
from holdfast.core.threads import run_in_worker
from holdfast.knowledge.documents import KnowledgeDocuments, stored_collection, stored_title, title_key
from holdfast.memory import Owner
from holdfast.memory.drafts import check_metadata
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

PIECE = 1024 * 1024  # bytes
AT_ONCE = 4  # pieces that are stored together with the job
MEGABYTE = 1024 * 1024
MAX_MEDIA_TYPE = 200  # characters

sql = statements(__name__)

Content = Path | str | bytes | AsyncIterable[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What a caller says about a document."""

    name: str
    collection: str
    owner: Owner | None
    metadata: Mapping[str, Any] | None
    source: str | None
    media_type: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class Added:
    """A row of `document`, and the job that ingests it; None if the document is unchanged."""

    row: Row
    job: UUID | None


class Uploads:
    """Stores files."""

    def __init__(self, database: Database, *, documents: KnowledgeDocuments, settings: KnowledgeSettings) -> None:
        self._database = database
        self._documents = documents
        self._limit = settings.max_file_mb * MEGABYTE
        self._splitting = f"{settings.chunk_size}/{settings.overlap}"

    async def add(self, content: Content, upload: Upload) -> Added:
        """Store a file. If the document is new or has changed, this makes a job of it."""
        key = await self._key(upload)
        if isinstance(content, str | Path):
            path = Path(content)
            small = await _read_small(path)
            if small is not None:
                return await self._add_bytes(small, key, upload)
            if (row := await self._unchanged(key, upload, await self._hash(path, upload.name))) is not None:
                return Added(row, None)
            return await self._store(_pieces_of_file(path), key, upload)
        if isinstance(content, bytes):
            return await self._add_bytes(content, key, upload)
        if not isinstance(content, AsyncIterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"the content is of the type {type(content).__name__}",
                next="Pass a path, bytes, or an asynchronous iterable of bytes.",
            )
        return await self._store(_pieces_of_stream(content), key, upload)

    async def _add_bytes(self, content: bytes, key: tuple[object, ...], upload: Upload) -> Added:
        self._check_size(len(content), upload.name)
        if (row := await self._unchanged(key, upload, hashlib.sha256(content).digest())) is not None:
            return Added(row, None)
        return await self._store(_pieces_of_bytes(content), key, upload)

    async def _key(self, upload: Upload) -> tuple[object, ...]:
        collection, name = stored_collection(upload.collection), stored_name("document", upload.name)
        ids = await self._documents.owner_ids(upload.owner)
        if upload.metadata is not None:
            check_metadata(upload.metadata)
        return ids.scope, ids.id, collection, name, ids.agent

    async def _unchanged(self, key: tuple[object, ...], upload: Upload, digest: bytes) -> Row | None:
        """Return the document if it is ready and has this content, and the caller says nothing new about it."""
        scope, owner, collection, name, _ = key
        return await self._database.one(
            sql("unchanged"),
            scope,
            owner,
            collection,
            name,
            digest,
            self._splitting_of(upload),
            *_properties(upload)[:-1],
        )

    async def _store(self, pieces: AsyncGenerator[bytes], key: tuple[object, ...], upload: Upload) -> Added:
        """Store pieces. The last ones are stored with the document and the job, in one transaction."""
        job, number, size, hashed = uuid7(), 0, 0, hashlib.sha256()
        waiting: list[bytes] = []
        try:
            async with aclosing(pieces) as parts:
                async for piece in parts:
                    size += len(piece)
                    self._check_size(size, upload.name)
                    if size <= PIECE:
                        hashed.update(piece)
                    else:
                        await run_in_worker(partial(hashed.update, piece))
                    waiting.append(piece)
                    if len(waiting) > AT_ONCE:
                        first = waiting.pop(0)
                        await self._database.run(sql("store_piece"), job, number, first)
                        number += 1
            scope, owner, collection, name, agent = key
            row = await self._database.one(
                sql("add_document"),
                job,
                scope,
                owner,
                collection,
                name,
                agent,
                *_properties(upload),
                hashed.digest(),
                size,
                self._splitting_of(upload),
                number,
                waiting,
            )
        except BaseException:
            if number:
                await self._discard(job)
            raise
        assert row is not None
        return Added(row, row["job_id"])

    def _splitting_of(self, upload: Upload) -> str:
        """Return how the document will be split: the same file is split again if this changes."""
        return f"{self._splitting} {media_type}" if (media_type := _media_type(upload)) else self._splitting

    async def _discard(self, job: UUID) -> None:
        """Delete the pieces of an upload that was broken off. If that fails, too, they are swept later."""
        with suppress(HoldfastError):
            await asyncio.shield(self._database.run(sql("discard_upload"), job))

    async def _hash(self, path: Path, name: str) -> bytes:
        hashed, size = hashlib.sha256(), 0
        async with aclosing(_pieces_of_file(path)) as pieces:
            async for piece in pieces:
                size += len(piece)
                self._check_size(size, name)
                await run_in_worker(partial(hashed.update, piece))
        return hashed.digest()

    def _check_size(self, size: int, name: str) -> None:
        if size > self._limit:
            raise TooLarge(
                f"the document {name[:200]!r} is too large",
                why=f"the limit is {self._limit // MEGABYTE:,} MB",
                next="Split it, or raise memory.knowledge.max_file_mb.",
                limit=self._limit,
            )


def _properties(upload: Upload) -> tuple[object, ...]:
    """Return what the caller says about the document, each None if it is omitted: columns of `document`."""
    return (
        None if upload.metadata is None else dict(upload.metadata),
        stored_title(upload.title),
        title_key(upload.title),
        None if upload.source is None else stored_name("source", upload.source),
        _media_type(upload),
    )


def _media_type(upload: Upload) -> str | None:
    """Return the media type that the caller gave, without parameters."""
    if upload.media_type is None:
        return None
    if not isinstance(upload.media_type, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"the media type {upload.media_type!r:.100} is not a string", next="Pass a string.")
    return store(upload.media_type.partition(";")[0].strip().lower()[:MAX_MEDIA_TYPE]) or None


async def _pieces_of_bytes(content: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(content), PIECE):
        yield content[start : start + PIECE]


async def _pieces_of_file(path: Path) -> AsyncGenerator[bytes]:
    with _readable(path), await run_in_worker(partial(_open, path)) as file:
        while piece := await run_in_worker(partial(file.read, PIECE)):
            yield piece


async def _read_small(path: Path) -> bytes | None:
    """Return the content of a file of one piece; None if it is larger."""

    def read() -> bytes | None:
        with _open(path) as file:
            found = file.read(PIECE + 1)
        return found if len(found) <= PIECE else None

    with _readable(path):
        return await run_in_worker(read)


@contextmanager
def _readable(path: Path) -> Generator[None]:
    """Say what to do if the file cannot be read."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: no path of a file is like this
        raise InvalidInput(
            f"the file {str(path)[:500]!r} cannot be read",
            why=getattr(error, "strerror", None) or str(error),
            next="Check the path and its permissions. Pass text as text=.",
        ) from None


def _open(path: Path) -> BinaryIO:
    """Open a regular file: to open a pipe could block."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInput(f"{str(path)[:500]!r} is not a file", next="Pass the path of a file.")
    return path.open("rb")


async def _pieces_of_stream(content: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    waiting = bytearray()
    async for part in content:
        if not isinstance(part, bytes | bytearray | memoryview):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{part!r:.100} is not of the type bytes", next="Pass an iterable of bytes.")
        waiting += part
        while len(waiting) >= PIECE:
            yield bytes(waiting[:PIECE])
            del waiting[:PIECE]
    if waiting:
        yield bytes(waiting)
