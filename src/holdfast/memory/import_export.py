"""Export and import of memories as a stream of JSON lines."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any, cast, get_args
from uuid import UUID

import msgspec

from holdfast.core.errors import Forbidden, HoldfastError, InvalidInput, TooLarge
from holdfast.core.memory_settings import MemorySettings
from holdfast.core.names import stored_name
from holdfast.core.pace import Pace
from holdfast.core.text import restore
from holdfast.core.threads import run_in_worker
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language
from holdfast.memory.drafts import item_of, take_graph
from holdfast.memory.export_format import (
    BOM,
    ExportLine,
    find_cycles,
    header,
    line_error,
    line_of,
    normalize,
    read_header,
    read_line,
)
from holdfast.memory.memory import memory_of, owner_ids
from holdfast.memory.owners import SCOPES, Owner, OwnerIds, Owners, Scope, agent
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Database, Transaction
from holdfast.postgres.sql import statements

PAGE = 500
BATCH_BYTES = 1024 * 1024
LITTLE = 4_000  # characters that are analyzed on the event loop; more go to the worker thread
GIVE_LINES = 'Pass lines of bytes, for example a file opened with "rb".'
FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)
LANGUAGES: tuple[Language, ...] = get_args(Language)

Lines = Iterable[bytes] | AsyncIterable[bytes]

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """How many memories were added, existed already (by id, key or words), and had expired."""

    added: int = 0
    folded: int = 0
    expired: int = 0

    def __add__(self, other: "ImportReport") -> "ImportReport":
        return ImportReport(self.added + other.added, self.folded + other.folded, self.expired + other.expired)


@dataclass(frozen=True, slots=True)
class ImportedLine:
    """A line to import, with its new owner and its row. The id of the row is not decided yet."""

    number: int
    line: ExportLine
    ids: OwnerIds
    item: dict[str, Any]
    revisions: Sequence[dict[str, Any]]
    vectors: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class IdMapping:
    """Decides which ids imported memories get. An id is kept if `keep` is set and no other memory has it."""

    owner: OwnerIds
    present: Mapping[UUID, bool]  # existing ids of the tenant, and whether each belongs to this owner
    keep: bool

    def id(self, original: UUID) -> UUID:
        """Return the given id if the owner has it already or it can be kept; otherwise one derived from it."""
        derived = derive_id(self.owner, original)
        if self.present.get(derived):
            return derived
        return original if self.present.get(original) or (self.keep and original not in self.present) else derived

    def is_present(self, original: UUID) -> bool:
        """Whether the owner already has the memory."""
        return self.present.get(self.id(original), False)


class MemoryTransfer:
    """Exports and imports any number of memories, one page at a time."""

    def __init__(self, database: Database, *, owners: Owners, embeddings: Embeddings, settings: MemorySettings) -> None:
        self._database = database
        self._owners = owners
        self._embeddings = embeddings
        self._settings = settings

    async def export(self, whose: Owner | Scope) -> AsyncGenerator[str]:
        """Yield the memories of an owner, or all of a scope, as JSON lines: a header, then one memory per line."""
        _check_selection(whose)
        first, last = FIRST, LAST
        if isinstance(whose, Owner):
            first = last = (await self._owners.find_ids(whose)).id
        scope = whose.scope if isinstance(whose, Owner) else whose
        yield header([model for each in LANGUAGES if (model := self._embeddings.model(each))])
        at = first, FIRST
        while True:
            rows = await self._database.all(sql("export"), scope, first, last, *at, PAGE)
            owners = await self._owners.from_ids([owner_ids(row) for row in rows])
            for row, owner in zip(rows, owners, strict=True):
                yield line_of(memory_of(row, owner), row)
            if len(rows) < PAGE:
                return
            at = rows[-1]["owner"], rows[-1]["id"]

    async def load(
        self, lines: Lines, *, into: Owner | None = None, by_admin: bool = True, first_line: int = 1
    ) -> ImportReport:
        """Import exported lines, as memories of their former owners, or all `into` one owner.

        A repeated import changes nothing. An admin's import keeps an id unless another memory has it. Other imports
        derive new ids, so that nobody can probe which ids exist. A vector is kept if its model is the configured one;
        otherwise, the Indexer embeds the memory later. An invalid line stops the import; earlier lines are stored.
        """
        _check_target(into, first_line)
        done, batch, size, has_header = ImportReport(), list[ImportedLine](), 0, False
        number = first_line - 1
        pace = Pace()
        async for text in _read_lines(lines):
            await pace.rest()
            number += 1
            if not text.strip():
                continue
            if not has_header:
                read_header(text, number)
                has_header = True
                continue
            await asyncio.sleep(0)  # parsing a line takes a while: let other tasks run
            try:
                imported = await self._parse_line(text, number, into, by_admin=by_admin)
            except HoldfastError:
                await self._store(batch, by_admin=by_admin)
                raise
            if batch and (len(batch) == PAGE or size > BATCH_BYTES or not _same_owner(batch[-1].ids, imported.ids)):
                done += await self._store(batch, by_admin=by_admin)
                batch, size = [], 0
            batch.append(imported)
            size += len(text)
        if not has_header:
            raise InvalidInput(
                "there is nothing to import", why="the input is empty", next="Pass the output of an export."
            )
        return done + await self._store(batch, by_admin=by_admin)

    async def _parse_line(self, text: bytes, number: int, into: Owner | None, *, by_admin: bool) -> ImportedLine:
        line = read_line(text, number)
        if line.trust == "system" and not by_admin:
            raise Forbidden(
                f"line {number} has the trust 'system'",
                why="importing it requires the scope 'admin'",
                next="Import it with a key that has this scope, or change the trust of the line.",
                line=number,
            )
        try:
            owner = _owner(line, into)
            ids = await self._owners.store_ids(owner)
            convert = partial(item_of, line.draft(), owner, ids)
            item = {
                **(convert() if len(line.content) <= LITTLE else await run_in_worker(convert)),
                **line.lifecycle_columns(),
            }
            revisions = line.revision_rows()
            all_vectors = {each.model: each.numbers() for each in line.vectors}
        except (InvalidInput, TooLarge) as error:
            raise line_error(number, error) from None
        model = self._embeddings.model(item["language"])
        vectors = self._usable_vectors(all_vectors, model)
        matching = [name for name in all_vectors if model in vectors and name.rstrip(" ") == model]
        item["embedded"] = matching[0] if matching else None
        return ImportedLine(number, line, ids, item, revisions, vectors)

    def _usable_vectors(self, vectors: Mapping[str, Sequence[float]], model: str | None) -> dict[str, Sequence[float]]:
        """Return the usable vectors: the client's own, and the one of the configured model, normalized.

        A zero vector is not usable; the Indexer computes a new one.
        """
        lengths = {} if model is None else {model: self._embeddings.dimensions(model)}
        by_model = {name.rstrip(" "): each for name, each in vectors.items() if any(each)}
        return {
            name: each if name == "" else normalize(each)
            for name, each in by_model.items()
            if name == "" or lengths.get(name) == len(each)
        }

    async def _store(self, batch: Sequence[ImportedLine], *, by_admin: bool) -> ImportReport:
        if not batch:
            return ImportReport()

        async def work(tx: Transaction) -> ImportReport:
            now = await tx.now()
            unexpired = [each for each in batch if each.item["expires_at"] is None or each.item["expires_at"] > now]
            mapping = await self._map_ids(tx, batch, keep=by_admin)
            lines = {mapping.id(each.line.id): each for each in unexpired if not mapping.is_present(each.line.id)}
            await self._check_successors(tx, lines, mapping)
            added = await self._add(tx, lines, mapping) if lines else 0
            return ImportReport(added, len(unexpired) - added, len(batch) - len(unexpired))

        try:
            return await self._database.atomically(work)
        except InvalidInput as error:
            line = cast(int, error.details.get("line", 0))
            await self._store([each for each in batch if each.number < line], by_admin=by_admin)
            raise

    async def _check_successors(self, tx: Transaction, lines: Mapping[UUID, ImportedLine], mapping: IdMapping) -> None:
        """Raise InvalidInput for a line that would close a cycle of supersessions, also through stored memories."""
        next = {id: mapping.id(each.line.superseded_by) for id, each in lines.items() if each.line.superseded_by}
        if not next:
            return
        rows = await tx.all(sql("successors"), mapping.owner.scope, mapping.owner.id, list(next.values()))
        for cycle in find_cycles({**{row["id"]: row["superseded_by"] for row in rows}, **next}):
            if numbers := [lines[id].number for id in cycle if id in lines]:
                raise line_error(max(numbers), InvalidInput("it would supersede itself"))

    async def _map_ids(self, tx: Transaction, batch: Sequence[ImportedLine], *, keep: bool) -> IdMapping:
        owner = batch[0].ids
        line_ids = {each.line.id for each in batch} | {other for each in batch if (other := each.line.superseded_by)}
        candidates = [*line_ids, *(derive_id(owner, id) for id in line_ids)]
        rows = await tx.all(sql("existing_ids"), owner.scope, owner.id, candidates)
        return IdMapping(owner, {row["id"]: row["own"] for row in rows}, keep)

    async def _add(self, tx: Transaction, lines: Mapping[UUID, ImportedLine], mapping: IdMapping) -> int:
        owner, short = mapping.owner, self._settings.short_term
        ttl = timedelta(minutes=short.ttl_minutes) if owner.scope == "session" else None
        items = [
            {
                **each.item,
                "id": id,
                "superseded_by": None if (next := each.line.superseded_by) is None else mapping.id(next),
            }
            for id, each in lines.items()
        ]
        graph = take_graph(items)
        rows = await tx.all(
            sql("remember"),
            short.max_memories,
            msgspec.json.encode(items).decode(),
            [ttl] * len(items),
            [None] * len(items),  # new memories get their vectors below
            graph,
        )
        new = {row["id"]: lines[row["id"]] for row in rows if row["is_new"]}
        vectors = [(id, model, numbers) for id, each in new.items() for model, numbers in each.vectors.items()]
        await tx.run(
            sql("insert_vectors"),
            owner.scope,
            owner.id,
            [id for id, _, _ in vectors],
            [model for _, model, _ in vectors],
            [encode_halfvec(numbers) for _, _, numbers in vectors],
        )
        revisions = [{**revision, "memory_id": id} for id, each in new.items() for revision in each.revisions]
        await tx.run(sql("insert_revisions"), owner.scope, owner.id, list(new), msgspec.json.encode(revisions).decode())
        if any(each.item["embedded"] not in each.vectors for each in new.values()):
            await tx.run(sql("wake_indexer"))
        return len(new)


def derive_id(owner: OwnerIds, original: UUID) -> UUID:
    """Derive an id from a given one that cannot be used: with the same timestamp, and the same every time."""
    digest = hashlib.blake2b(f"{owner.scope} {owner.id} {original}".encode(), digest_size=7).digest()
    return UUID(bytes=original.bytes[:9] + digest)


def _owner(line: ExportLine, into: Owner | None) -> Owner:
    if into is None:
        return line.owner.owner()
    if into.scope == "agent":
        return agent(into.name)
    return Owner(into.scope, into.name, into.agent or line.owner.agent, into.user or line.owner.user)


def _same_owner(one: OwnerIds, other: OwnerIds) -> bool:
    return (one.scope, one.id) == (other.scope, other.id)


async def _read_lines(lines: Lines) -> AsyncGenerator[bytes]:
    mark = BOM  # some editors write it at the start of a file
    async for line in lines if isinstance(lines, AsyncIterable) else _iterate(lines):
        if not isinstance(line, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{line!r:.100} is not a line", why="it is not of the type bytes", next=GIVE_LINES)
        yield line.removeprefix(mark)
        mark = b""


async def _iterate(lines: Iterable[bytes]) -> AsyncGenerator[bytes]:
    if isinstance(lines, bytes) or not isinstance(lines, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{lines!r:.100} is not an iterable of lines", next=GIVE_LINES)
    for line in lines:
        yield line


def _check_selection(whose: object) -> None:
    if not isinstance(whose, Owner) and whose not in SCOPES:
        raise InvalidInput(
            f"{whose!r:.100} is neither an owner nor a scope",
            next=f'Pass an owner, such as user("ann"), or, for all owners of a scope, one of {", ".join(SCOPES)}.',
        )


def _check_target(into: object, first_line: object) -> None:
    if into is not None and not isinstance(into, Owner):
        raise InvalidInput(f"{into!r:.100} is not an owner", next='Pass an owner, such as user("ann"), or omit it.')
    if not isinstance(first_line, int) or isinstance(first_line, bool) or first_line < 1:
        raise InvalidInput(f"the first line {first_line!r:.100} is invalid", next="Use an integer of at least 1.")


async def known_keys(database: Database, ids: OwnerIds, keys: Collection[str]) -> set[str]:
    """Return those of `keys` that a memory of the owner has, or that a deleted one had.

    A repeated import of a source skips them: stored memories need no new vector, and deleted ones stay deleted.
    """
    stored = [stored_name("key", key) for key in keys]
    hashes = [sha256(key.encode()).digest() for key in stored]
    return {restore(row["key"]) for row in await database.all(sql("existing_keys"), ids.scope, ids.id, stored, hashes)}
