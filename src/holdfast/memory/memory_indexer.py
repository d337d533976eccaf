"""The background indexer: computes missing terms and vectors of memories."""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, Protocol, cast
from uuid import UUID

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.core.ids import TenantId, uuid7
from holdfast.core.memory_settings import MemorySettings
from holdfast.core.pace import slices
from holdfast.core.text import restore
from holdfast.core.threads import run_in_worker
from holdfast.embeddings import Embeddings
from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.language import Language, language_of
from holdfast.memory.drafts import analyze, digest_of, named_by, take_graph
from holdfast.memory.memory import owner_ids
from holdfast.memory.previous_turns import stored_texts, text_of
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Database, Postgres, Row, Statements, Transaction
from holdfast.postgres.each_tenant import in_turns
from holdfast.postgres.notified_job import NotifiedJob
from holdfast.postgres.sql import statements

NAME = "indexing of memories"
FIRST = 2.0  # seconds before the first run: a short-lived process does no indexing
EVERY = 60.0  # seconds between two runs without a notification
GATHER = 0.3  # seconds between a notification and the run, to batch what arrives meanwhile
SOON = 1.0  # seconds until the next run if memories changed while they were embedded
LEASE = timedelta(seconds=60)  # the longest time that a tenant waits after the holder has died
TOGETHER = 32  # memories per batch
SLICE = 50_000  # characters that are analyzed in one call
FIRST_PAUSE = 60.0  # seconds until a refused text is retried; doubled after each refusal
LONGEST_PAUSE = 3600.0
CHANNEL = "holdfast_memory"  # notified by sql/wake_indexer.sql and several files in functions/
LANGUAGES: tuple[Language, ...] = ("en", "zh", "other")

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexRefusal:
    """A memory whose text the model refused: its version, when to retry, and the current back-off."""

    version: int
    until: float
    pause: float


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The result for a memory, computed outside of a transaction: the memory may have changed since `row` was read."""

    row: Row
    item: dict[str, Any]
    text: str
    vector: Vector | None


class FurtherTexts(Protocol):
    """Texts beside memories that the Indexer embeds."""

    async def tenants(self, models: Mapping[Language, str | None]) -> Sequence[TenantId]:
        """Return the tenants with texts that have no vector of the model of their language.

        If that model is None, with texts that have no vector at all.
        """
        ...

    async def count(self, database: Database, models: Mapping[Language, str | None]) -> int:
        """Count these texts of a tenant."""
        ...

    async def embed(self, database: Database, models: Mapping[Language, str | None]) -> int:
        """Embed a batch of a tenant's texts. Return how many are settled; 0 if there is nothing left to do."""
        ...


class Indexer(NotifiedJob):
    """Analyzes memories inserted by plain SQL, and embeds memories without a vector of the current model.

    Every process has an indexer. By a lease per tenant, one process at a time works on a tenant. No lock is held while
    texts are embedded: vector and terms are written in one transaction, and only if the memory is unchanged.

    If the settings of processes name different models, the process that opened last wins. The others embed memories
    without a vector, and replace none. While a model is replaced, search finds a memory by its new vector, by its
    words, and by its old vector as long as the old model is available.
    """

    def __init__(self, postgres: Postgres, embeddings: Embeddings, settings: MemorySettings) -> None:
        super().__init__(NAME, postgres=postgres, channel=CHANNEL, pause=EVERY, first=FIRST, gather=GATHER)
        self._embeddings = embeddings
        self._settings = settings
        self._id = uuid7()
        self._opened_at: datetime | None = None
        self._stored_models: dict[Language, str | None] = {}
        self._wanted: dict[Language, str | None] = {}
        self._lock = asyncio.Lock()
        self._next_check = -math.inf
        self._left: dict[TenantId, int] = {}
        self._held: set[TenantId] = set()
        self._next = EVERY  # seconds until the next run
        self._refused: dict[TenantId, dict[UUID, IndexRefusal]] = {}
        self._further: list[FurtherTexts] = []

    def add(self, texts: FurtherTexts) -> None:
        """Embed these texts, too."""
        self._further.append(texts)

    @property
    def state(self) -> tuple[Literal["ok", "reduced"], str]:
        """Whether all memories were indexed at the last run; if not, how many were left."""
        left = self.left()
        return ("reduced", f"{left:,} texts still to embed") if left else ("ok", "all memories are indexed")

    def left(self, tenant: TenantId | None = None) -> int:
        """Return how many memories of a tenant, or of all, the last run left to index."""
        return sum(self._left.values()) if tenant is None else self._left.get(tenant, 0)

    async def catch_up(self) -> int:
        """Index all pending memories, tenants in turn, except for tenants that others have leased. Return how many."""
        async with self._lock:
            self._next_check = time.monotonic() + 0.9 * EVERY
            await self._agree_on_models()
            models = self._models()
            tenants = await self._unindexed_tenants(models)
            self._left = {tenant: await self._count(tenant) for tenant in tenants}
            self._refused = {tenant: self._refused[tenant] for tenant in tenants if tenant in self._refused}
            return await self._index_all(tenants)

    async def _index_unread(self) -> int:
        """Index only memories that were inserted by plain SQL and not read yet. Return how many."""
        async with self._lock:
            return await self._index_all(await self._unindexed_tenants({}), embed=False)

    async def _unindexed_tenants(self, models: Mapping[Language, str | None]) -> list[TenantId]:
        found = await self._postgres.system.all(sql("unindexed_tenants"), list(models), list(models.values()))
        tenants = [row["id"] for row in found]
        for texts in self._further if models else ():
            tenants += await texts.tenants(models)
        return list(dict.fromkeys(tenants))

    async def _index_all(self, tenants: Sequence[TenantId], *, embed: bool = True) -> int:
        self._next = EVERY
        try:
            return await in_turns(tenants, partial(self._index_batch, embed=embed), name=NAME)
        finally:
            for tenant in tuple(self._held):
                await self._release(tenant)

    async def step(self) -> float:
        """Index what is pending."""
        self._embeddings.model_available.clear()
        # Without a model, missing vectors cannot be computed. They are only counted, once in a while.
        if self._can_embed() or time.monotonic() >= self._next_check:
            await self.catch_up()
        else:
            await self._index_unread()
        return self._next

    def wake_events(self) -> Sequence[asyncio.Event]:
        """Return the event of a model that becomes available."""
        return [self._embeddings.model_available]

    async def _agree_on_models(self) -> None:
        """Store the models of this process, if they are new or changed, and read which models are wanted."""
        system = self._postgres.system
        self._opened_at = self._opened_at or await system.now()
        own_models: dict[Language, str | None] = {language: self._embeddings.model(language) for language in LANGUAGES}
        if own_models != self._stored_models:
            await system.run(sql("store_wanted_models"), list(own_models), list(own_models.values()), self._opened_at)
            self._stored_models = own_models
        self._wanted = {row["language"]: row["model"] for row in await system.all(sql("wanted_models"))}

    async def _index_batch(self, tenant: TenantId, *, embed: bool) -> int:
        """Index a batch of a tenant's memories. Return how many are settled; 0 if there is nothing left to do."""
        database, settled = self._postgres.tenant(tenant), 0
        is_first = tenant not in self._held
        self._held.add(tenant)
        try:
            if not await database.run(sql("lease_indexing"), self._id, LEASE):
                self._next = min(self._next, LEASE.total_seconds())
                self._held.discard(tenant)
                return 0
            if is_first:
                await self._forget_refusals(tenant)
            settled = await self._step(tenant, embed=embed)
            self._left[tenant] = max(0, self.left(tenant) - settled) if settled else await self._count(tenant)
        finally:
            if not settled and tenant in self._held:
                await self._release(tenant)
        return settled

    async def _release(self, tenant: TenantId) -> None:
        self._held.discard(tenant)
        with contextlib.suppress(HoldfastError):  # then the lease expires
            await self._postgres.tenant(tenant).run(sql("release_indexing"), self._id)

    async def _step(self, tenant: TenantId, *, embed: bool) -> int:
        database = self._postgres.tenant(tenant)
        rows = await database.all(sql("unanalyzed"), TOGETHER)
        if rows:
            items: dict[UUID, dict[str, Any]] = {}
            for batch in slices(rows, lambda row: len(row["content"]), SLICE):
                items |= await run_in_worker(partial(_analyze_all, batch))
            return await self._index(tenant, items, rows)
        for language, model in self._models().items() if embed else ():
            rows = await database.all(sql("unembedded"), language, model, self._postponed_ids(tenant), TOGETHER)
            settled = await self._index(tenant, {row["id"]: _identity(row) for row in rows}, rows)
            if settled:
                return settled
        for texts in self._further if embed else ():
            settled = await texts.embed(database, self._models())
            if settled:
                return settled
        return 0

    async def _index(self, tenant: TenantId, items: Mapping[UUID, dict[str, Any]], rows: Sequence[Row]) -> int:
        """Embed and write items. Return how many are settled: written, or refused by the model."""
        results = await self._embed(self._postgres.tenant(tenant), items, rows)
        settled: set[UUID] = set()
        for one in results:
            model = self._embeddings.model(one.item["language"])
            if one.vector is None and model is not None and self._embeddings.ready(model):
                self._refuse(tenant, one.row, model)
                settled.add(one.row["id"])
        changed = [one for one in results if one.vector is not None or _has_changes(one)]
        if changed:
            written = await self._write(self._postgres.tenant(tenant), changed)
            settled |= written
            if len(written) < len(changed):
                self._next = SOON
        for one in changed:
            if one.vector is not None:
                self._refused.get(tenant, {}).pop(one.row["id"], None)
        return len(settled)

    async def _embed(
        self, database: Database, items: Mapping[UUID, dict[str, Any]], rows: Sequence[Row]
    ) -> list[IndexResult]:
        texts = await self._texts(database, rows)
        languages: list[Language] = [language_of(text_of(row)) for row in rows]
        vectors = await self._embeddings.vectors(texts, languages)
        results: list[IndexResult] = []
        for row, text, language, vector in zip(rows, texts, languages, vectors, strict=True):
            embedded = None if vector is None else self._embeddings.model(language)
            results.append(
                IndexResult(row, {**items[row["id"]], "language": language, "embedded": embedded}, text, vector)
            )
        return results

    async def _write(self, database: Database, results: Sequence[IndexResult]) -> set[UUID]:
        """Write the results of memories that are unchanged, and return their ids."""
        rows = [one.row for one in results]

        async def work(tx: Transaction) -> set[UUID]:
            # A change of the previous turn also marks this memory. If it came before this lock, the text differs below.
            # If it comes later, it waits for the lock and marks the memory afterwards.
            await tx.all(sql("lock_memories"), [row["id"] for row in rows])
            texts = await self._texts(tx, rows)
            same = [one for one, text in zip(results, texts, strict=True) if one.text == text]
            given = [dict(one.item) for one in same]
            graph = take_graph(given)
            items = msgspec.json.encode(given).decode()
            vectors = [None if one.vector is None else encode_halfvec(one.vector) for one in same]
            written = await tx.value(sql("index"), items, [one.row["embedded"] for one in same], vectors, graph)
            await self._trim(tx, [one.row for one in same if "terms" in one.item])
            return set(written)

        return await database.atomically(work)

    async def _texts(self, run: Statements, rows: Sequence[Row]) -> list[str]:
        if self._settings.embedding.with_previous_turn:
            return await stored_texts(run, rows)
        return [text_of(row) for row in rows]

    async def _trim(self, tx: Transaction, rows: Sequence[Row]) -> None:
        for owner in sorted({row["owner"] for row in rows if row["scope"] == "session"}):
            await tx.run(sql("trim_session"), owner, self._settings.short_term.max_memories)

    async def _count(self, tenant: TenantId) -> int:
        models = self._models()
        database = self._postgres.tenant(tenant)
        count = cast(int, await database.value(sql("count_unembedded"), list(models), list(models.values())))
        return count + sum([await texts.count(database, models) for texts in self._further])

    def _can_embed(self) -> bool:
        names = {self._embeddings.model(language) for language in LANGUAGES}
        return any(name is not None and self._embeddings.ready(name) for name in names)

    def _models(self) -> dict[Language, str | None]:
        """Return the model of each language that has one. None if another is wanted: then no vector is replaced."""
        own_models: dict[Language, str] = {
            language: model for language in LANGUAGES if (model := self._embeddings.model(language))
        }
        return {
            language: model if self._wanted.get(language) == model else None for language, model in own_models.items()
        }

    def _refuse(self, tenant: TenantId, row: Row, model: str) -> None:
        refused = self._refused.setdefault(tenant, {})
        id, before = row["id"], refused.get(row["id"])
        if before is None:
            log.warning(
                "the model %s returned no vector for the memory %s: search finds it only by its words", model, id
            )
        pause = FIRST_PAUSE if before is None else min(2 * before.pause, LONGEST_PAUSE)
        refused[id] = IndexRefusal(row["version"], time.monotonic() + pause, pause)

    async def _forget_refusals(self, tenant: TenantId) -> None:
        """Forget the refusals of memories that were deleted or changed."""
        refused = self._refused.pop(tenant, {})
        if refused:
            rows = await self._postgres.tenant(tenant).all(sql("memory_versions"), list(refused))
            self._refused[tenant] = {
                row["id"]: refused[row["id"]] for row in rows if refused[row["id"]].version == row["version"]
            }

    def _postponed_ids(self, tenant: TenantId) -> list[UUID]:
        now = time.monotonic()
        return [id for id, refusal in self._refused.get(tenant, {}).items() if refusal.until > now]


def _identity(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("scope", "owner", "id", "version", "content")}


def _has_changes(results: IndexResult) -> bool:
    """Whether there is something to write without a vector: its terms, or a changed language."""
    return "terms" in results.item or results.item["language"] != results.row["language"]


def _analyze_all(rows: Sequence[Row]) -> dict[UUID, dict[str, Any]]:
    return {row["id"]: _analyze_row(row) for row in rows}


def _analyze_row(row: Row) -> dict[str, Any]:
    """Analyze a memory inserted by plain SQL: return its terms, language and digest."""
    author = None if row["author"] is None else restore(row["author"])
    content = restore(row["content"])
    analysis = {**analyze(content, author), "graph": named_by(content, row["scope"])}
    return {**analysis, **_identity(row), "digest": digest_of(owner_ids(row), dict(row))}
