"""What the engine and a reader process say to each other: frames of msgpack, each with its length before it."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from holdfast.embeddings.language import Language
from holdfast.knowledge.chunk import Chunk
from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits

SIZE = struct.Struct("!I")
MAX_FRAME = 64 * 1024 * 1024  # bytes; more than a unit of text can become


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How a file is read. The chunks of a document are equal only if they are read with equal options.

    `tokenizer` is the `tokenizer.json` of the embedding model; without it, tokens are estimated.
    """

    chunk_size: int = 512
    overlap: int = 50
    tokenizer: Path | None = None
    limits: ParseLimits = field(default_factory=lambda: DEFAULT_LIMITS)


class ReadChunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk, and all that is stored of it but its vectors.

    `terms` are those of its title, section and text, `length` is their number. `digest` stands for the texts of its
    passages, as they are embedded. `entities` are those of its text, as `holdfast.link_entities`
    takes them.
    """

    chunk: Chunk
    terms: list[int]
    length: int
    language: Language
    digest: UUID
    entities: dict[str, Any] | None = None


class ReadPart(msgspec.Struct, frozen=True, array_like=True, tag="part"):
    """The next chunks of a document, and how far it has been read.

    `position` is the place after these chunks: a read that continues there yields the chunks that an uninterrupted one
    would yield. `units` have been read, of `total_units`, if it is known. `characters` is the length of their text.
    `last`: nothing follows, and `units` and `characters` are those of the document.
    """

    chunks: list[ReadChunk]
    position: bytes
    units: int
    total_units: int | None
    characters: int
    media_type: str
    title: str | None
    pages: int | None
    last: bool = False


class Start(msgspec.Struct, frozen=True, array_like=True, tag="start"):
    """Prepare: limit the process, and load the tokenizer. `parsers` are functions by media type, as `module:name`."""

    memory_mb: int
    tokenizer: str | None
    parsers: dict[str, str]


class Read(msgspec.Struct, frozen=True, array_like=True, tag="read"):
    """Read a file. At most `window` parts are sent before the first of them is acknowledged."""

    path: str
    name: str
    media_type: str | None
    title: str | None
    position: bytes | None
    chunk_size: int
    overlap: int
    limits: ParseLimits
    seconds: float
    window: int


class Acknowledge(msgspec.Struct, frozen=True, array_like=True, tag="acknowledge"):
    """A part has arrived and is used."""


class Ready(msgspec.Struct, frozen=True, array_like=True, tag="ready"):
    """The process has started. `pid` is that of the reader, not of what started it."""

    pid: int


class End(msgspec.Struct, frozen=True, array_like=True, tag="end"):
    """The file is read. `peak_mb` is the most memory that the process has had."""

    peak_mb: int


class Failure(msgspec.Struct, frozen=True, array_like=True, tag="failure"):
    """The file cannot be read: the fields of a ParseError. `traceback` is of an error that no parser has foreseen."""

    code: str
    what: str
    why: str
    next: str
    traceback: str = ""


Request = Start | Read | Acknowledge
Reply = Ready | ReadPart | End | Failure

_encoder = msgspec.msgpack.Encoder()
request_decoder = msgspec.msgpack.Decoder(Request)
reply_decoder = msgspec.msgpack.Decoder(Reply)


def frame(message: Request | Reply) -> bytes:
    """Return a message as it is sent."""
    data = _encoder.encode(message)
    return SIZE.pack(len(data)) + data
