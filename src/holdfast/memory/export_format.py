"""The file format of exported memories: a header line, then one JSON object per line and memory."""

import base64
import binascii
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

import msgspec

from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.names import stored_name
from holdfast.core.text import dumps, parse, render, restore, store
from holdfast.memory.drafts import Draft, check_moment, stored_importance, with_time_zone
from holdfast.memory.memory import Memory, Trust
from holdfast.memory.owners import Owner, Scope
from holdfast.postgres.database import Row

FORMAT = "holdfast.memories"
VERSION = 1
BOM = b"\xef\xbb\xbf"
MAX_DIMENSIONS = 16_000  # maximum of a halfvec
ROUNDING = 0.01  # rounding to 16 bits changes the length of a unit vector by less

MOST = 2**30  # leaves room for increments in 32 bits

Whole = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
Version = Annotated[int, msgspec.Meta(ge=1, le=MOST)]


class Header(msgspec.Struct, frozen=True):
    """The first line: format, version, and the embedding models of the exporting engine."""

    format: Literal["holdfast.memories"]
    version: Literal[1]
    models: list[str] = []


class LineOwner(msgspec.Struct, frozen=True):
    """The owner of an exported memory."""

    scope: Scope
    name: str = ""
    agent: str | None = None
    user: str | None = None

    def owner(self) -> Owner:
        """Return it as an `Owner`."""
        return Owner(self.scope, self.name, self.agent, self.user)


class LineVector(msgspec.Struct, frozen=True):
    """A vector and its model: 16-bit floats, little-endian, in base64. The model of a client's own vector is ''.

    A space at the end of the model name means that the vector has to be recomputed, as in the table `memory`.
    """

    model: str
    data: str

    def numbers(self) -> tuple[float, ...]:
        """Decode the vector."""
        try:
            packed = base64.b64decode(self.data, validate=True)
            numbers = struct.unpack(f"<{len(packed) // 2}e", packed)
        except (binascii.Error, struct.error, ValueError) as error:
            raise InvalidInput("the vector cannot be decoded", why=str(error)) from None
        if not 0 < len(numbers) <= MAX_DIMENSIONS or not all(map(math.isfinite, numbers)):
            raise InvalidInput("the vector is invalid", why="it is empty, too long, or has a number that is not finite")
        return numbers


class LineRevision(msgspec.Struct, frozen=True):
    """A version of an exported memory."""

    version: Version
    operation: str
    at: datetime
    content: str
    type: str
    importance: float
    trust: Trust
    metadata: dict[str, Any]

    def row(self) -> dict[str, Any]:
        """Return it by the columns of `memory_revision`."""
        draft = Draft(self.content, self.type, self.importance, trust=self.trust, metadata=self.metadata)
        return {
            "version": self.version,
            "operation": stored_name("operation", self.operation),
            "at": _moment(self.at),
            "content": store(draft.content),
            "type": stored_name("type", self.type),
            "importance": stored_importance(draft.importance),
            "trust": draft.trust,
            "metadata": msgspec.Raw(dumps(draft.metadata).encode()),
        }


class ExportLine(msgspec.Struct, frozen=True, kw_only=True):
    """An exported memory, with everything that an import needs to restore it."""

    id: UUID
    owner: LineOwner
    content: str
    type: str
    importance: float = 1.0
    trust: Trust = "user"
    metadata: dict[str, Any] = {}
    source: str | None = None
    key: str | None = None
    conversation: str | None = None
    seq: int | None = None
    author: str | None = None
    at: datetime | None = None
    created_at: datetime
    valid_from: datetime
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    superseded_by: UUID | None = None
    pinned: bool = False
    buried_at: datetime | None = None
    access_count: Whole = 0
    last_accessed: datetime
    version: Version = 1
    vectors: list[LineVector] = []
    revisions: list[LineRevision] = []

    def draft(self) -> Draft:
        """Return the fields that a caller can set, as a draft."""
        return Draft(
            self.content,
            type=self.type,
            importance=self.importance,
            trust=self.trust,
            metadata=self.metadata,
            source=self.source,
            key=self.key,
            conversation=self.conversation,
            seq=self.seq,
            author=self.author,
            at=_moment(self.at),
        )

    def lifecycle_columns(self) -> dict[str, Any]:
        """Return the fields that the engine has set since, by the columns of `memory`."""
        return {
            "version": self.version,
            "created_at": _moment(self.created_at),
            "valid_from": _moment(self.valid_from),
            "valid_to": _moment(self.valid_to),
            "expires_at": _moment(self.expires_at),
            "pinned": self.pinned,
            "buried_at": _moment(self.buried_at),
            "access_count": self.access_count,
            "last_accessed": _moment(self.last_accessed),
        }

    def revision_rows(self) -> list[dict[str, Any]]:
        """Return its versions, by the columns of `memory_revision`."""
        versions = {revision.version for revision in self.revisions}
        if len(versions) < len(self.revisions):
            raise InvalidInput("two revisions have the same version")
        if versions and max(versions) > self.version:
            raise InvalidInput(
                f"a revision has the version {max(versions)}", why=f"the memory is at version {self.version}"
            )
        return [revision.row() for revision in self.revisions]


def header(models: Sequence[str]) -> str:
    """Return the header line."""
    return render(Header(FORMAT, VERSION, list(models))).decode()


def line_of(memory: Memory, row: Row) -> str:
    """Return a memory as a line, with the vectors and revisions of its row."""
    models: Sequence[str] = row["models"] or []
    embeddings: Sequence[Sequence[float]] = row["embeddings"] or []
    fields = {name: getattr(memory, name) for name in ExportLine.__struct_fields__ if hasattr(memory, name)}
    return render(
        {
            **fields,
            "buried_at": row["buried_at"],
            "vectors": [
                {"model": model, "data": base64.b64encode(struct.pack(f"<{len(numbers)}e", *numbers)).decode()}
                for model, numbers in zip(models, embeddings, strict=True)
            ],
            "revisions": [
                {**revision, "content": restore(revision["content"]), "type": restore(revision["type"])}
                for revision in cast(Sequence[Mapping[str, Any]], row["revisions"] or ())
            ],
        }
    ).decode()


def read_header(text: bytes, number: int) -> Header:
    """Parse the header line."""
    try:
        return msgspec.convert(parse(text), Header)
    except (HoldfastError, msgspec.ValidationError) as error:
        raise InvalidInput(
            f"line {number} is not the header of a memory export",
            why=str(error),
            next=f'Begin the file with {{"format": "{FORMAT}", "version": {VERSION}}}, as an export does.',
            line=number,
        ) from None


def read_line(text: bytes, number: int) -> ExportLine:
    """Parse the line of a memory."""
    try:
        return msgspec.convert(parse(text), ExportLine)
    except (HoldfastError, msgspec.ValidationError, UnicodeEncodeError) as error:
        raise line_error(number, error) from None


def normalize(numbers: Sequence[float]) -> Sequence[float]:
    """Normalize a vector to length one, unless it differs only by rounding."""
    length = math.hypot(*numbers)
    return numbers if abs(length - 1) < ROUNDING else [each / length for each in numbers]


def find_cycles(successors: Mapping[UUID, UUID]) -> Iterator[Sequence[UUID]]:
    """Yield the cycles in a mapping of memories to their successors."""
    seen = set[UUID]()
    for id in successors:
        path, at = list[UUID](), id
        while at in successors and at not in seen:
            seen.add(at)
            path.append(at)
            at = successors[at]
        if at in path:
            yield path[path.index(at) :]


def line_error(number: int, error: Exception) -> InvalidInput:
    """Return the error for a line that cannot be imported."""
    return InvalidInput(
        f"line {number} cannot be imported",
        why=str(error),
        next="Correct the line and import the file again. The lines before it were imported.",
        line=number,
    )


def _moment(moment: datetime | None) -> datetime | None:
    check_moment(moment)
    return None if moment is None else with_time_zone(moment).astimezone(UTC)  # PostgreSQL knows fewer zones
