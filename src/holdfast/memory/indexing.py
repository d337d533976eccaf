"""Indexing: words and vectors for the memories that lack them, made behind everyone's back."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, cast
from uuid import UUID

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.core.ids import TenantId
from holdfast.core.settings import MemorySettings
from holdfast.core.text import restore
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language, language_of
from holdfast.memory.drafts import digest_of, reading, spoken
from holdfast.memory.memory import owner_ids
from holdfast.memory.turns import stored_texts
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Database, Postgres, Row, Transaction
from holdfast.postgres.sql import statements

FIRST = 2.0  # seconds: a process that ends before has nothing to index
EVERY = 60.0  # seconds between two looks when nobody wakes it
TOGETHER = 32  # memories held at once: nobody waits long for one of them
FIRST_PAUSE = 60.0  # seconds after which a text that the model refused is tried again; then twice as long
LONGEST_PAUSE = 3600.0
CHANNEL = "holdfast_memory"  # functions/spec_names.sql notifies it
LANGUAGES: tuple[Language, ...] = ("en", "zh", "other")

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A text that the model refused: when it is tried again, and how long the pause before was."""

    until: float
    pause: float


class Indexer:
    """Reads what came by plain SQL, and embeds what was missed or has another model's vector.

    Every process has one. They share the work: each holds the memories that it is at, and what it has made is written
    together with the note that it is made. While a model is replaced, every memory is found by the old vector or by
    the new one.
    """

    def __init__(self, postgres: Postgres, embeddings: Embeddings, settings: MemorySettings) -> None:
        self._postgres = postgres
        self._embeddings = embeddings
        self._settings = settings
        self._left: dict[TenantId, int] = {}
        self._refused: dict[UUID, Refusal] = {}

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep(), name="holdfast memory indexer")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def state(self) -> tuple[Literal["ok", "reduced"], str]:
        """Whether all memories could be found by meaning when it last looked; else how many could not."""
        left = self.left()
        return ("reduced", f"{left:,} memories still to embed") if left else ("ok", "every memory is indexed")

    def left(self, tenant: TenantId | None = None) -> int:
        """How many memories of a tenant, or of all, were still to be indexed when it last looked."""
        return sum(self._left.values()) if tenant is None else self._left.get(tenant, 0)

    async def catch_up(self) -> int:
        """Index what there is to index now, the tenants in turn; how many memories that were."""
        models = self._models()
        tenants: list[TenantId] = [
            row["id"]
            for row in await self._postgres.system.all(sql("unindexed_tenants"), list(models), list(models.values()))
        ]
        self._left = {tenant: await self._count(tenant) for tenant in tenants}
        done = 0
        while tenants:
            for tenant in tuple(tenants):
                some = await self._step(self._postgres.tenant(tenant))
                done += some
                self._left[tenant] = max(0, self._left[tenant] - some)
                if not some:
                    tenants.remove(tenant)
                    self._left[tenant] = await self._count(tenant)
        return done

    async def _keep(self) -> None:
        await asyncio.sleep(FIRST * (1 + random.random() / 4))
        async with self._postgres.listen(CHANNEL) as notified:
            while True:
                notified.clear()
                self._embeddings.arrived.clear()
                try:
                    await self.catch_up()
                except HoldfastError as error:
                    log.warning("memories could not be indexed, trying again later: %s", error)
                except Exception:
                    log.exception("a defect: memories could not be indexed, trying again later")
                await self._rest(notified, self._embeddings.arrived)

    async def _rest(self, *wakes: asyncio.Event) -> None:
        waits = [asyncio.create_task(wake.wait()) for wake in wakes]
        try:
            await asyncio.wait(waits, timeout=EVERY * (0.9 + random.random() / 5), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await wait

    async def _step(self, database: Database) -> int:
        """Index some memories of a tenant, all of them or none; how many are settled by that."""

        async def work(tx: Transaction) -> int:
            rows = await tx.all(sql("unread"), TOGETHER)
            if rows:
                await self._index(tx, rows, [_read(row) for row in rows])
                await self._trim(tx, rows)
                return len(rows)
            for language, model in self._models().items():
                rows = await tx.all(sql("unembedded"), language, model, self._not_now(), TOGETHER)
                settled = await self._index(tx, rows, [_identity(row) for row in rows])
                if settled:
                    return settled
            return 0

        return await database.atomically(work)

    async def _index(self, tx: Transaction, rows: Sequence[Row], items: Sequence[dict[str, Any]]) -> int:
        """Write the items and the vectors of their texts; how many have a vector now, or cannot have one."""
        if not rows:
            return 0
        with_previous = self._settings.embedding.with_previous_turn
        texts = await stored_texts(tx, rows) if with_previous else [_said(row) for row in rows]
        vectors = await self._embeddings.vectors(texts, [language_of(_said(row)) for row in rows])
        settled = 0
        for row, item, vector in zip(rows, items, vectors, strict=True):
            item["language"] = language_of(_said(row))
            model = self._embeddings.model(item["language"])
            item["embedded"] = None if vector is None else model
            settled += vector is not None
            if vector is None and model is not None and self._embeddings.ready(model):
                self._refuse(item["id"], model)
                settled += 1
        encoded = [None if vector is None else encode_halfvec(vector) for vector in vectors]
        await tx.run(sql("index"), msgspec.json.encode(items).decode(), encoded)
        return settled

    async def _trim(self, tx: Transaction, rows: Sequence[Row]) -> None:
        for owner in sorted({row["owner"] for row in rows if row["scope"] == "session"}):
            await tx.run(sql("trim_session"), owner, self._settings.short_term.max_memories)

    async def _count(self, tenant: TenantId) -> int:
        models = self._models()
        database = self._postgres.tenant(tenant)
        return cast(int, await database.value(sql("count_unembedded"), list(models), list(models.values())))

    def _models(self) -> dict[Language, str]:
        return {language: model for language in LANGUAGES if (model := self._embeddings.model(language))}

    def _refuse(self, id: UUID, model: str) -> None:
        before = self._refused.get(id)
        if before is None:
            log.warning("the model %s makes no vector of the memory %s: it is found by its words alone", model, id)
        pause = FIRST_PAUSE if before is None else min(2 * before.pause, LONGEST_PAUSE)
        self._refused[id] = Refusal(time.monotonic() + pause, pause)

    def _not_now(self) -> list[UUID]:
        now = time.monotonic()
        return [id for id, refusal in self._refused.items() if refusal.until > now]


def _identity(row: Row) -> dict[str, Any]:
    return {"scope": row["scope"], "owner": row["owner"], "id": row["id"]}


def _read(row: Row) -> dict[str, Any]:
    """What a memory that came by plain SQL says, and what stands for it."""
    author = None if row["author"] is None else restore(row["author"])
    read = reading(restore(row["content"]), author)
    return {**_identity(row), **read, "digest": digest_of(owner_ids(row), dict(row))}


def _said(row: Row) -> str:
    author = row["author"]
    return spoken(restore(row["content"]), None if author is None else restore(author))
