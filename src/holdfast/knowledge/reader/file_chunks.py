"""Reads a file to finished chunks: detects its format, parses, splits, and analyses each chunk."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import UUID

import msgspec

from holdfast.core.words import terms
from holdfast.embeddings.language import language_of
from holdfast.knowledge.chunk import Chunk
from holdfast.knowledge.chunker import JOINT, Chunker, passage_texts, searchable_text
from holdfast.knowledge.parsing.detect import Parse, find_media_type, find_parser
from holdfast.knowledge.reader.protocol import Read, ReadChunk, ReadPart
from holdfast.knowledge.tokenizer import Tokenizer
from holdfast.memory.graph.extraction import graph_of

FULL = 32  # chunks after which a part is sent
PAUSE = 1.0  # seconds after which a part is sent with fewer chunks: it tells how far the file is read


class Position(msgspec.Struct, array_like=True):
    """A place between two units of a file, and what is known about the document there."""

    media_type: str
    units: int = 0  # that have been read
    total_units: int | None = None
    characters: int = 0
    pages: int | None = None
    title: str | None = None
    chunker: bytes | None = None
    ended: bool = False


def read(request: Read, tokenizer: Tokenizer, parsers: Mapping[str, str]) -> Iterator[ReadPart]:
    """Read a file from the position of the request on. The last part says so. Raises ParseError."""
    path = Path(request.path)
    if request.position is None:
        at = Position(find_media_type(path, name=path.name, declared=request.media_type, parsers=parsers))
        at.title = request.title
    else:
        at = msgspec.msgpack.decode(request.position, type=Position)
    if at.ended:
        yield _part(at, [], last=True)
        return
    parse = find_parser(at.media_type, parsers)
    yield from _FileChunks(request, at, tokenizer).parts(path, parse)


class _FileChunks:
    """One read of a file."""

    def __init__(self, request: Read, at: Position, tokenizer: Tokenizer) -> None:
        self._request = request
        self._at = at
        if at.chunker is None:
            self._chunker = Chunker(tokenizer, size=request.chunk_size, overlap=request.overlap, title=at.title)
        else:
            self._chunker = Chunker.restore(tokenizer, at.chunker)

    def parts(self, path: Path, parse: Parse) -> Iterator[ReadPart]:
        """Yield the parts that are left."""
        at, chunker = self._at, self._chunker
        found: list[ReadChunk] = []
        sent = time.monotonic()
        for unit in parse(path, first=at.units + 1, limits=self._request.limits):
            if unit.number == 1:
                at.pages = unit.pages
                at.title = at.title or unit.title
            at.total_units = unit.total or at.pages or at.total_units
            chunks = chunker.feed(unit)
            found += map(self._analysed, chunks)
            at.characters += len(unit.text) + (len(JOINT) if at.units else 0)
            at.units = unit.number
            if len(found) >= FULL or time.monotonic() - sent >= PAUSE:
                at.chunker = chunker.state()
                yield _part(at, found)
                found, sent = [], time.monotonic()
        found += map(self._analysed, chunker.finish())
        at.chunker, at.total_units, at.ended = None, at.units, True
        yield _part(at, found, last=True)

    def _analysed(self, chunk: Chunk) -> ReadChunk:
        title = self._chunker.title
        text = searchable_text(chunk, title)
        words = terms(text)
        return ReadChunk(
            chunk,
            words,
            len(words),
            language_of(chunk.text),
            _digest(passage_texts(chunk, title)),
            graph_of(chunk.text, title=title if chunk.index == 0 else None),
        )


def _part(at: Position, chunks: list[ReadChunk], *, last: bool = False) -> ReadPart:
    return ReadPart(
        chunks=chunks,
        position=msgspec.msgpack.encode(at),
        units=at.units,
        total_units=at.total_units,
        characters=at.characters,
        media_type=at.media_type,
        title=at.title,
        pages=at.pages,
        last=last,
    )


def _digest(texts: list[str]) -> UUID:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        data = text.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return UUID(bytes=digest.digest())
