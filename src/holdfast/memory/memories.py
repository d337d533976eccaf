"""The service for memories: store, search, edit, supersede and delete them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal
from uuid import UUID

import msgspec

from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.core.errors import AlreadyExists, Conflict, HoldfastError, InvalidInput, NotFound
from holdfast.core.memory_settings import MemorySettings
from holdfast.core.names import stored_name
from holdfast.core.pace import slices
from holdfast.core.text import dumps, restore
from holdfast.core.threads import run_in_worker
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language
from holdfast.memory.drafts import (
    Draft,
    analyze,
    check_importance,
    check_metadata,
    check_moment,
    digest_of,
    items_of,
    length_of,
    named_by,
    parse_ttl,
    stored_importance,
    take_graph,
    text_with_author,
    with_time_zone,
)
from holdfast.memory.memory import TRUSTS, Memory, Trust, memory_of, owner_ids
from holdfast.memory.owner_counts import OwnerMemories, count_by_owner, list_owners
from holdfast.memory.owners import ExactOwner, Owner, OwnerIds, Owners, Scope, check_owner, exact_owner
from holdfast.memory.previous_turns import draft_texts
from holdfast.memory.recall import Filters, Hits, Recall
from holdfast.memory.sweeper import SweepResult, sweep
from holdfast.memory.why_not import WhyNot
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Database, Row, Statements, Transaction
from holdfast.postgres.sql import statements

MAX_AT_ONCE = 10_000
MAX_PAGE = 1000
MAX_CHAIN = 100
MAX_VERSION = 2**31 - 1
LITTLE = 4_000  # characters that are analyzed on the event loop; more go to the worker thread
SLICE = 50_000  # characters that are analyzed, or stored, in one call
Operation = Literal["remember", "edit", "supersede", "pin", "unpin", "bury", "unbury"]

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class MemoryRevision:
    """A version of a memory, and the operation that created it."""

    version: int
    operation: str
    at: datetime
    content: str
    type: str
    importance: float
    trust: Trust
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PreparedMemories:
    """Memories, ready to store: the owner, row, lifetime and vector of each."""

    owners: list[Owner]
    items: list[dict[str, Any]]
    lifetimes: list[timedelta | None]
    vectors: list[bytes | None]


class Memories:
    """Stores, finds and changes memories."""

    def __init__(
        self, database: Database, *, owners: Owners, embeddings: Embeddings, recall: Recall, settings: MemorySettings
    ) -> None:
        self._database = database
        self._owners = owners
        self._embeddings = embeddings
        self._recall = recall
        self._settings = settings

    async def remember(
        self,
        owner: Owner,
        content: str,
        *,
        type: str | None = None,
        importance: float = 1.0,
        ttl: timedelta | float | None = None,
        trust: Trust = "user",
        metadata: Mapping[str, Any] | None = None,
        source: UUID | str | None = None,
        key: str | None = None,
        conversation: str | None = None,
        seq: int | None = None,
        author: str | None = None,
        at: datetime | None = None,
        tx: Transaction | None = None,
    ) -> Memory:
        """Store a memory. Search finds it as soon as this returns, or with `tx`, when that commits.

        If a memory with the same `key`, or with the same words in the same place, exists, it is returned instead.
        """
        metadata_map: Mapping[str, Any] = {} if metadata is None else metadata
        draft = Draft(content, type, importance, ttl, trust, metadata_map, source, key, conversation, seq, author, at)
        return (await self.remember_many(owner, [draft], tx=tx))[0]

    async def remember_many(
        self, owner: Owner, drafts: Sequence[Draft | Mapping[str, Any] | str], *, tx: Transaction | None = None
    ) -> list[Memory]:
        """Store memories of one owner, all or none."""
        check_owner(owner)
        if not isinstance(drafts, Sequence) or isinstance(drafts, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput("the memories are not in a list", next="Pass a list of memories.")
        return await self.remember_all([(owner, draft) for draft in drafts], tx=tx)

    async def remember_all(
        self,
        given: Sequence[tuple[Owner, Draft | Mapping[str, Any] | str]],
        *,
        tx: Transaction | None = None,
    ) -> list[Memory]:
        """Store memories of several owners, all or none."""
        if len(given) > MAX_AT_ONCE:
            raise InvalidInput(
                f"cannot store {len(given)} memories in one call", next=f"Pass at most {MAX_AT_ONCE} per call."
            )
        checked = [(owner, Draft.of(draft)) for owner, draft in given]
        if not checked:
            return []
        prepared = await self._prepare(checked, tx=tx)
        return await self._store(prepared, tx)

    async def get(self, id: UUID, *, tx: Transaction | None = None) -> Memory:
        """Return a memory, also if it is superseded, expired or buried. A chunk of a document is a memory, too."""
        run = await self._database.within(tx)
        row = await run.one(sql("get"), id)
        if row is None and (chunk := await run.one(sql("chunk"), id)) is not None:
            return replace(await self._memory(chunk, tx), document=chunk["document_id"])
        return await self._memory(await self._row(id, tx) if row is None else row, tx)

    async def search(
        self,
        owner: Owner,
        query: str,
        *,
        limit: int | None = None,
        where: Mapping[str, Any] | None = None,
        types: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        as_of: datetime | None = None,
        min_importance: float | None = None,
        collections: Sequence[str] | None = None,
        explain: bool = False,
    ) -> Hits:
        """Find the memories of an owner that match `query`, best first. Chunks of its documents are among them.

        `where` must be contained in the metadata. `since` and `until` limit when it was said. `as_of` finds what was
        valid at that time. The default of `min_importance` is `memory.long_term.min_importance`; for sessions it is 0.
        `collections` limits the documents to these collections; an empty list leaves them out. A chunk has the type
        `knowledge`, the time when its document was added, and the metadata of the document.
        """
        filters = Filters(where, types, since, until, as_of, min_importance, collections)
        limit = self._settings.long_term.max_results if limit is None else limit
        return await self._recall.search(owner, query, filters, limit=limit, explain=explain)

    async def context(
        self,
        query: str,
        *,
        session: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        conversation: UUID | None = None,
        limits: Mapping[Scope, int] | None = None,
        where: Mapping[str, Any] | None = None,
        types: Sequence[str] | None = None,
        collections: Sequence[str] | None = None,
        explain: bool = False,
    ) -> Hits:
        """Find the memories of all four scopes that match `query`, in one ranking.

        By default: at most 10 of the session, 5 of the user, 3 of the agent and 5 of the organization. `conversation`
        is the one of the session, if known. Otherwise, `session` names the user's own session, or one without a user.
        Chunks of documents count as memories of their owners; `collections` limits them, as in `search`.
        """
        return await self._recall.context(
            query,
            of_session=None if session is None else Owner("session", session, None, user, conversation),
            user_name=user,
            agent_name=agent,
            limits=limits,
            filters=Filters(where, types, collections=collections),
            explain=explain,
        )

    async def why_not(
        self,
        id: UUID,
        owner: Owner,
        query: str,
        *,
        limit: int | None = None,
        where: Mapping[str, Any] | None = None,
        types: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        as_of: datetime | None = None,
        min_importance: float | None = None,
        collections: Sequence[str] | None = None,
    ) -> WhyNot:
        """Explain why `search` with the same arguments does not return a memory, or that it does."""
        filters = Filters(where, types, since, until, as_of, min_importance, collections)
        try:
            memory = await self.get(id)
        except NotFound as error:
            return WhyNot("deleted" if error.why else "unknown", error.why or "there is no such memory")
        limit = self._settings.long_term.max_results if limit is None else limit
        return await self._recall.why_not(memory, owner, query, filters, limit=limit)

    async def edit(
        self,
        id: UUID,
        *,
        content: str | None = None,
        type: str | None = None,
        importance: float | None = None,
        trust: Trust | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | float | None = None,
        version: int | None = None,
        tx: Transaction | None = None,
    ) -> Memory:
        """Edit a memory. Omitted fields are unchanged. Raises Conflict if `version` is given and not current."""
        changes: dict[str, object] = {}
        if type is not None:
            changes["type"] = stored_name("type", type)
        if importance is not None:
            check_importance(importance)
            changes["importance"] = stored_importance(importance)
        if trust is not None:
            if trust not in TRUSTS:
                raise InvalidInput(f"the trust {trust!r:.100} is unknown", next=f"Use one of {', '.join(TRUSTS)}.")
            changes["trust"] = trust
        if metadata is not None:
            check_metadata(metadata)
            changes["metadata"] = msgspec.Raw(dumps(dict(metadata)).encode())
        if ttl is not None:
            changes["expires_at"] = await (await self._database.within(tx)).now() + (parse_ttl(ttl) or timedelta(0))
        if content is None and not changes:
            raise InvalidInput("no change was given", next="Pass at least one field to change.")
        return await self._change(id, "edit", changes, version=version, content=content, tx=tx)

    async def supersede(
        self,
        id: UUID,
        content: str,
        *,
        at: datetime | None = None,
        version: int | None = None,
        tx: Transaction | None = None,
    ) -> Memory:
        """Supersede a memory that is no longer true by a new one, valid from now or from `at` on.

        Only a search as of the time when the old memory was valid still finds it.
        """

        check_moment(at)
        old = await self._memory(await self._row(id, tx), tx)
        draft = Draft(content, old.type, old.importance, None, old.trust, old.metadata, old.source, at=at)
        prepared = await self._prepare([(old.owner, draft)], tx=tx)

        async def work(tx: Transaction) -> Memory:
            current = await self.get(id, tx=tx)
            moment = (
                await tx.now() if at is None else with_time_zone(at).astimezone(UTC)
            )  # PostgreSQL knows fewer zones
            successor = None if current.superseded_by is None else await tx.one(sql("get"), current.superseded_by)
            _check_supersede(current, moment, has_successor=successor is not None)
            prepared.items[0]["valid_from"] = moment
            [new] = await self._store(prepared, tx, trim=False)  # the number of current memories does not grow
            if new.id == current.id:
                raise InvalidInput("the memory already has this content", next="Pass the new content.")
            changes: dict[str, object] = {"valid_to": moment, "superseded_by": new.id}
            await self._change(id, "supersede", changes, version=version or current.version, tx=tx)
            return new

        return await work(tx) if tx is not None else await self._database.atomically(work)

    async def pin(self, id: UUID, *, pinned: bool = True, tx: Transaction | None = None) -> Memory:
        """Pin or unpin a memory. A pinned memory does not fade, and the session limit does not delete it."""
        return await self._change(id, "pin" if pinned else "unpin", {"pinned": bool(pinned)}, tx=tx)

    async def bury(self, id: UUID, *, buried: bool = True, tx: Transaction | None = None) -> Memory:
        """Bury or unbury a memory. A buried memory is kept, but not recalled."""
        return await self._change(id, "bury" if buried else "unbury", {}, tx=tx)

    async def forget(self, id: UUID, *, tx: Transaction | None = None) -> None:
        """Delete a memory and its history. A tombstone records when and why."""
        if not await (await self._database.within(tx)).value(sql("forget"), id):
            raise await self._not_found_error(id, tx)

    async def sweep(self, *, dry_run: bool = False) -> SweepResult:
        """Delete expired and faded memories, as the Sweeper does; with `dry_run`, only report them."""
        return await sweep(self._database, self._settings.retention, dry_run=dry_run)

    async def history(self, id: UUID, *, before: int | None = None, limit: int | None = None) -> list[MemoryRevision]:
        """Return the versions of a memory, newest first: those before a version, at most `limit`."""
        rows = await self._database.all(sql("history"), id, MAX_VERSION if before is None else before, limit)
        if not rows and before is None:
            raise await self._not_found_error(id, None)
        return [
            MemoryRevision(
                row["version"],
                row["operation"],
                row["at"],
                restore(row["content"]),
                restore(row["type"]),
                row["importance"],
                row["trust"],
                row["metadata"],
            )
            for row in rows
        ]

    async def chain(self, id: UUID) -> list[Memory]:
        """Return the chain of supersessions of a memory, oldest first; at most 100 memories."""
        row = await self._row(id, None)
        rows = await self._database.all(sql("supersession_chain"), row["scope"], row["owner"], id, MAX_CHAIN)
        owners = await self._owners.from_ids([owner_ids(each) for each in rows])
        return [memory_of(each, owner) for each, owner in zip(rows, owners, strict=True)]

    async def _prepare(self, drafts: Sequence[tuple[Owner, Draft]], *, tx: Transaction | None) -> "PreparedMemories":
        """Convert drafts to rows and embed them. Stores no memory. Without `tx`, no connection is held meanwhile."""
        ids: dict[ExactOwner, OwnerIds] = {}
        items: list[dict[str, Any]] = []
        for owner, _ in drafts:
            check_owner(owner)
            if exact_owner(owner) not in ids:
                ids[exact_owner(owner)] = await self._owners.store_ids(owner, tx=tx)
        for batch in slices(drafts, length_of, SLICE):
            convert = partial(items_of, batch, ids)
            items += convert() if sum(map(length_of, batch)) <= LITTLE else await run_in_worker(convert)
        texts = [text_with_author(draft.content, draft.author) for _, draft in drafts]
        if self._settings.embedding.with_previous_turn:
            run = await self._database.within(tx)
            for owner, owner_id in ids.items():
                places = [place for place, (each, _) in enumerate(drafts) if exact_owner(each) == owner]
                texts_with_previous = await draft_texts(run, owner_id, [drafts[place][1] for place in places])
                for place, text in zip(places, texts_with_previous, strict=True):
                    texts[place] = text
        vectors = await self._embeddings.vectors(texts, [item["language"] for item in items])
        models: dict[Language, str | None] = {
            language: self._embeddings.model(language)
            for language in {
                item["language"] for item, vector in zip(items, vectors, strict=True) if vector is not None
            }
        }
        for item, vector in zip(items, vectors, strict=True):
            item["embedded"] = None if vector is None else models[item["language"]]
        session = timedelta(minutes=self._settings.short_term.ttl_minutes)
        lifetimes = [
            session if draft.ttl is None and owner.scope == "session" else parse_ttl(draft.ttl)
            for owner, draft in drafts
        ]
        encoded = [None if each is None else encode_halfvec(each) for each in vectors]
        owners = [_with_conversation(owner, ids[exact_owner(owner)]) for owner, _ in drafts]
        return PreparedMemories(owners, items, lifetimes, encoded)

    async def _store(self, prepared: "PreparedMemories", tx: Transaction | None, *, trim: bool = True) -> list[Memory]:
        """Store memories, ordered by digest, so that concurrent calls with equal memories do not deadlock."""
        order = sorted(range(len(prepared.items)), key=lambda place: prepared.items[place]["digest"])
        parts = list(slices(order, lambda place: len(prepared.items[place]["content"]), SLICE))

        async def work(run: Statements) -> dict[int, Memory]:
            stored: dict[int, Memory] = {}
            for part in parts:
                stored |= await self._store_part(prepared, part, run, trim=trim)
            return stored

        if tx is None and len(parts) > 1:
            stored = await self._database.atomically(work)
        else:
            stored = await work(await self._database.within(tx))
        return [stored[place] for place in range(len(order))]

    async def _store_part(
        self, prepared: "PreparedMemories", order: Sequence[int], run: Statements, *, trim: bool
    ) -> dict[int, Memory]:
        items = [dict(prepared.items[place]) for place in order]  # copies: a transaction may be repeated
        graph = take_graph(items)
        rows = await run.all(
            sql("remember"),
            self._settings.short_term.max_memories if trim else None,
            msgspec.json.encode(items).decode(),
            [prepared.lifetimes[place] for place in order],
            [prepared.vectors[place] for place in order],
            graph,
        )
        return {place: memory_of(row, prepared.owners[place]) for place, row in zip(order, rows, strict=True)}

    async def _change(
        self,
        id: UUID,
        operation: Operation,
        changes: dict[str, object],
        *,
        content: str | None = None,
        version: int | None = None,
        tx: Transaction | None = None,
    ) -> Memory:
        """Change a memory. Digest and vector depend on the read version: if it has changed, compute them again."""
        is_derived = content is not None or "type" in changes
        while True:
            row, model, vector = None, None, None
            if is_derived:
                row = await self._row(id, tx)
                model, vector = await self._revise(row, changes, content)
            expected = row["version"] if version is None and row is not None else version
            encoded = msgspec.json.encode(changes).decode()
            try:
                changed = await (await self._database.within(tx)).one(
                    sql("change"), id, expected, operation, encoded, model, vector
                )
            except AlreadyExists:
                raise AlreadyExists("another memory already has this content", next="Delete one of them.") from None
            if changed is None:
                raise await self._not_found_error(id, tx)
            if changed["id"] is not None:
                return await self._memory(changed, tx)
            if version is not None:
                raise Conflict(f"the memory {id} has changed", expected=version, current=changed["current_version"])

    async def _revise(
        self, row: Row, changes: dict[str, object], content: str | None
    ) -> tuple[str | None, bytes | None]:
        """Add the derived columns of new content or a new type to `changes`; return model and vector of the content."""
        model, vector = None, None
        if content is not None:
            author = None if row["author"] is None else restore(row["author"])
            analyze_content = partial(analyze, Draft(content).content, author)
            analysis = analyze_content() if len(content) <= LITTLE else await run_in_worker(analyze_content)
            # A vector that includes the previous turn is left to the Indexer, which looks that turn up.
            if not self._settings.embedding.with_previous_turn or row["conversation"] is None:
                [vector] = await self._embeddings.vectors([text_with_author(content, author)], [analysis["language"]])
            model = None if vector is None else self._embeddings.model(analysis["language"])
            changes |= analysis
            if (graph := named_by(content, row["scope"])) is not None:
                changes["graph"] = {"memory": row["id"], "scope": row["scope"], "owner": row["owner"], **graph}
        changes["digest"] = digest_of(owner_ids(row), {**row, **changes})
        return model, None if vector is None else encode_halfvec(vector)

    async def _row(self, id: UUID, tx: Transaction | None) -> Row:
        row = await (await self._database.within(tx)).one(sql("get"), id)
        if row is None:
            raise await self._not_found_error(id, tx)
        return row

    async def _memory(self, row: Row, tx: Transaction | None) -> Memory:
        return memory_of(row, await self._owners.owner(owner_ids(row), tx=tx))

    async def _not_found_error(self, id: UUID, tx: Transaction | None) -> HoldfastError:
        run = await self._database.within(tx)
        row = await run.one(sql("chunk"), id)
        if row is not None:
            return InvalidInput(
                f"the memory {id} is a part of the document {restore(row['name'])[:200]!r}",
                why="parts of documents change with them",
                next="Change or remove the document.",
                document=str(row["document_id"]),
            )
        row = await run.one(sql("tombstone"), id)
        if row is None:
            return NotFound(f"there is no memory {id}", next="Search for the memory to get its id.")
        why = f"it was deleted at {row['deleted_at']:%Y-%m-%d %H:%M} ({row['reason']})"
        return NotFound(f"there is no memory {id}", why=why)

    # Listing. These methods are last: after `list`, the name means the method in this class.

    async def count_by_owner(self, scope: Scope, owners: Sequence[str | Owner]) -> list[OwnerMemories]:
        """Return the holdings of these owners of a scope, in their order, without owners that have no memories."""
        return await count_by_owner(self._database, self._owners, scope, owners)

    async def owners(self, scope: Scope, *, limit: int = 50, cursor: str | None = None) -> Page[OwnerMemories]:
        """Return a page of the owners that have memories in a scope: sessions by newest memory, others by id.

        A session that gets a memory between two pages moves to the front, so it may be missing from the later pages.
        """
        _check_limit(limit)
        return await list_owners(self._database, self._owners, scope, limit=limit, cursor=cursor)

    async def list(
        self, owner: Owner, *, also_past: bool = False, limit: int = 50, cursor: str | None = None
    ) -> Page[Memory]:
        """Return an owner's memories, newest first; with `also_past`, also superseded, expired and buried ones."""
        _check_limit(limit)
        ids = await self._owners.find_ids(owner)
        before, _ = read_cursor(cursor)
        rows = await self._database.all(sql("list"), ids.scope, ids.id, before, ids.agent, also_past, limit + 1)
        owners = await self._owners.from_ids([owner_ids(row) for row in rows[:limit]])
        found = [memory_of(row, owner) for row, owner in zip(rows, owners, strict=False)]
        return Page(found, write_cursor(found[-1].id) if len(rows) > limit else None)


def _with_conversation(owner: Owner, ids: OwnerIds) -> Owner:
    return replace(owner, conversation=ids.id) if owner.scope == "session" else owner


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"the limit {limit!r:.100} is out of range", next=f"Use 1 to {MAX_PAGE}.")


def _check_supersede(old: Memory, moment: datetime, *, has_successor: bool) -> None:
    if has_successor:
        raise InvalidInput(
            "the memory is already superseded", why=f"{old.superseded_by} superseded it", next="Supersede that memory."
        )
    if moment < old.valid_from:
        raise InvalidInput(
            "the memory is not valid yet at that time",
            why=f"it is valid from {old.valid_from.isoformat()} on",
            next="Pass a later time.",
        )
