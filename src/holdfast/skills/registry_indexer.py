"""Indexes skills and tools in the background: adds missing terms and vectors."""

import asyncio
import contextlib
import re
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from holdfast.core.errors import HoldfastError
from holdfast.core.ids import TenantId, uuid7
from holdfast.core.text import restore
from holdfast.embeddings import Embeddings
from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.embeddings import WITH_PREVIOUS
from holdfast.embeddings.language import Language, language_of
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Database, Postgres, Row
from holdfast.postgres.each_tenant import in_turns
from holdfast.postgres.notified_job import NotifiedJob
from holdfast.postgres.sql import statements
from holdfast.skills.registry_terms import terms_of

NAME = "indexing of skills and tools"
FIRST = 2.5  # seconds before the first run: a process that ends earlier has nothing to index
EVERY = 60.0  # seconds between two runs without a notification
GATHER = 0.2  # seconds between a notification and a run, which also includes later changes
LEASE = timedelta(seconds=60)  # the longest that a tenant waits after a process died
READ_TOGETHER = 200  # texts whose terms are written in one batch
TOGETHER = 32  # texts embedded in one batch
REFUSED_FOR = 600.0  # seconds until a text that the model refused is tried again
MOST_REFUSED = 1000  # refused texts above which nothing is embedded until some are due again
NO_MODEL = ""  # value of `embedded` for a language without a model
CHANNEL = "holdfast_registry"  # functions/registry.sql notifies it at each revision
LANGUAGES: tuple[Language, ...] = ("en", "zh", "other")

Indexed = tuple[Row, str | None, Vector | None]  # an entry as it was read, the model of its vector, the vector

_JOINTS = re.compile(r"[_-]+|(?<=[a-z0-9])(?=[A-Z])")

sql = statements(__name__)


class RegistryIndexer(NotifiedJob):
    """Adds terms to skills and tools written by plain SQL, and vectors to all that have none.

    Each process has an indexer. One at a time holds the lease on a tenant. It takes no lock while it embeds a text, and
    writes the result only if the text is unchanged. The registry's own functions write terms with the row; vectors
    follow a moment later.
    """

    def __init__(self, postgres: Postgres, embeddings: Embeddings) -> None:
        super().__init__(NAME, postgres=postgres, channel=CHANNEL, pause=EVERY, first=FIRST, gather=GATHER)
        self._embeddings = embeddings
        self._id = uuid7()
        self._running = asyncio.Lock()
        self._next = EVERY  # seconds until the next run
        self._refused: dict[UUID, float] = {}  # by id: until when it is not tried again

    async def catch_up(self) -> int:
        """Index everything that is due, in batches, the tenants in turn. Return the number of entries.

        Tenants on which another process holds the lease are left out.
        """
        async with self._running:
            self._next = EVERY
            self._refused = {id: until for id, until in self._refused.items() if until > time.monotonic()}
            current_models = await self._current_models()
            rows = await self._postgres.system.all(sql("unindexed_registries"), self._can_embed(), current_models)
            leased = set[TenantId]()

            async def turn(tenant: TenantId) -> int:
                leased.add(tenant)
                return await self._index_batch(self._postgres.tenant(tenant), current_models)

            try:
                return await in_turns([row["id"] for row in rows], turn, name=NAME)
            finally:
                for tenant in leased:
                    with contextlib.suppress(HoldfastError):  # then the lease expires
                        await self._postgres.tenant(tenant).run(sql("release_registry_indexing"), self._id)

    async def step(self) -> float:
        """Index what is due."""
        await self.catch_up()
        return self._next

    def wake_events(self) -> Sequence[asyncio.Event]:
        """Return the event of a model that becomes available, unless it is set: the memory indexer clears it."""
        arrived = self._embeddings.model_available
        return [] if arrived.is_set() else [arrived]

    async def _index_batch(self, database: Database, current_models: list[str] | None) -> int:
        """Index a batch of a tenant. Return how many entries it settled; 0: there is nothing more to do now."""
        if not await database.run(sql("lease_registry_indexing"), self._id, LEASE):
            self._next = min(self._next, LEASE.total_seconds())
            return 0
        return await self._step(database, current_models)

    async def _step(self, database: Database, current_models: list[str] | None) -> int:
        rows = await database.all(sql("unanalyzed_entries"), READ_TOGETHER)
        if rows:  # terms first: there may be many rows, and vectors take longer
            return await self._write(database, [(row, None, None) for row in rows])
        if not self._can_embed() or len(self._refused) > MOST_REFUSED:
            return 0
        rows = await database.all(sql("unembedded_entries"), current_models, list(self._refused), TOGETHER)
        texts = [text_of(restore(row["name"]), restore(row["description"])) for row in rows]
        languages: list[Language] = [language_of(text) for text in texts]
        results: list[Indexed] = []
        refused = 0
        for row, language, vector in zip(
            rows, languages, await self._embeddings.vectors(texts, languages), strict=True
        ):
            model = self._embeddings.model(language)
            if vector is None and model is not None:
                pause = REFUSED_FOR if self._embeddings.ready(model) else EVERY
                self._refused[row["id"]] = time.monotonic() + pause
                refused += 1
            else:
                results.append((row, NO_MODEL if model is None else plain_model(model), vector))
        return refused + await self._write(database, results)

    async def _write(self, database: Database, results: Sequence[Indexed]) -> int:
        """Write the terms and vectors of entries that are unchanged. Return their number."""
        written = 0
        for kind in ("skill", "tool"):
            some = [each for each in results if each[0]["kind"] == kind]
            if some:
                written += len(await database.value(
                    sql("index_entries"), kind,
                    [row["name"] for row, _, _ in some],
                    [row["description"] for row, _, _ in some],
                    [_item(row, model) for row, model, _ in some],
                    [None if vector is None else encode_halfvec(vector) for _, _, vector in some],
                ))  # fmt: skip
        return written

    def _can_embed(self) -> bool:
        return any((model := self._embeddings.model(each)) and self._embeddings.ready(model) for each in LANGUAGES)

    async def _current_models(self) -> list[str] | None:
        """Return the models whose vectors are not replaced.

        None: no vectors are replaced, because another process wants other models or no model is available here.
        """
        rows = await self._postgres.system.all(sql("wanted_registry_models"))
        ours = {language: self._embeddings.model(language) for language in LANGUAGES}
        if {row["language"]: row["model"] for row in rows} != ours or not self._can_embed():
            return None
        return [NO_MODEL if model is None else plain_model(model) for model in ours.values()]


def text_of(name: str, description: str) -> str:
    """Return the text to embed: the name in words, and the description."""
    words = _JOINTS.sub(" ", name).strip()
    return f"{words}: {description}" if description.strip() else words


def plain_model(model: str) -> str:
    """Return a model's plain name: these vectors do not include a previous turn."""
    return model.removesuffix(WITH_PREVIOUS)


def _item(row: Row, model: str | None) -> dict[str, Any]:
    # An entry with a model already has terms.
    terms = terms_of(restore(row["name"]), restore(row["description"])) if model is None else None
    return {"id": row["id"], "terms": terms, "embedded": model}
