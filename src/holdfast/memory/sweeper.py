"""Deletes expired and faded memories, on request and in the background."""

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal
from uuid import UUID

from holdfast.core.background import PeriodicJob
from holdfast.core.memory_settings import MemorySettings, RetentionSettings
from holdfast.memory.owners import Scope
from holdfast.postgres.database import Database, Postgres, Row
from holdfast.postgres.each_tenant import for_each_tenant, in_batches
from holdfast.postgres.sql import statements

FIRST = 60.0  # seconds before the first sweep: a short-lived process does not sweep
TOGETHER = 1000  # memories per batch
SHOWN = 100  # maximum number of ids in a result
TOMBSTONES = timedelta(days=90)  # how long a tombstone without a key is kept
LONGEST = timedelta(days=365_000)

Reason = Literal["expired", "faded"]

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The result of a sweep or a dry run: counts by scope and reason, and some of the ids."""

    counts: dict[tuple[Scope, Reason], int]
    ids: list[UUID] = field(default_factory=list[UUID])

    @property
    def total(self) -> int:
        """The number of all memories."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Fading:
    """When memories of users and agents have faded: after `halvings` half-lives, extended by importance and use."""

    half_life_days: float
    halvings: float

    @classmethod
    def by(cls, settings: RetentionSettings) -> "Fading":
        """Derive it from the settings."""
        return cls(settings.half_life_days, -math.log2(settings.faded_below) if settings.faded_below else math.inf)

    @property
    def shortest(self) -> timedelta | None:
        """The age before which no memory can have faded, even with importance 0; None if memories never fade."""
        days = self.half_life_days * 0.5 * self.halvings
        return timedelta(days=days) if days < LONGEST.days else None


async def sweep(database: Database, settings: RetentionSettings, *, dry_run: bool = False) -> SweepResult:
    """Delete expired and faded memories of a tenant; with `dry_run`, only report them."""
    fading = Fading.by(settings)
    counts: Counter[tuple[Scope, Reason]] = Counter()
    ids: list[UUID] = []
    for reason in ("expired", "faded"):
        while True:
            rows = await _find_removable(database, reason, fading, SHOWN if dry_run else TOGETHER)
            removed = await (_count(database, reason, fading) if dry_run else _delete(database, rows, reason, fading))
            counts.update({(scope, reason): count for scope, count in removed.items()})
            ids += [row["id"] for row in rows[: SHOWN - len(ids)]]
            if dry_run or len(rows) < TOGETHER or not removed.total():
                break
    return SweepResult(dict(counts), ids)


async def _find_removable(database: Database, reason: Reason, fading: Fading, limit: int) -> list[Row]:
    if reason == "expired":
        return await database.all(sql("expired"), limit)
    if fading.shortest is None:
        return []
    return await database.all(sql("fading"), fading.half_life_days, fading.halvings, fading.shortest, limit)


async def _count(database: Database, reason: Reason, fading: Fading) -> Counter[Scope]:
    rows: list[Row] = []
    if reason == "expired":
        rows = await database.all(sql("count_expired"))
    elif fading.shortest is not None:
        rows = await database.all(sql("count_fading"), fading.half_life_days, fading.halvings, fading.shortest)
    return Counter({row["scope"]: row["memories"] for row in rows})


async def _delete(database: Database, rows: Sequence[Row], reason: Reason, fading: Fading) -> Counter[Scope]:
    owners: defaultdict[tuple[Scope, UUID], list[UUID]] = defaultdict(list)
    for row in rows:
        owners[row["scope"], row["owner"]].append(row["id"])
    deleted: Counter[Scope] = Counter()
    for (scope, owner), ids in sorted(owners.items()):
        criteria = reason, fading.half_life_days, fading.halvings
        deleted[scope] += await database.value(sql("sweep"), scope, owner, ids, *criteria)
    return deleted


class Sweeper(PeriodicJob):
    """Sweeps all tenants at regular intervals."""

    def __init__(self, postgres: Postgres, settings: MemorySettings) -> None:
        pause = 60 * settings.retention.sweep_minutes
        super().__init__("sweep of memories", pause=pause, first=min(FIRST, pause))
        self._postgres = postgres
        self._settings = settings.retention

    async def sweep(self) -> int:
        """Delete expired and faded memories of all tenants, and old tombstones. Return how many memories."""
        system = self._postgres.system
        shortest = Fading.by(self._settings).shortest or LONGEST
        tenants = await system.all(sql("tenants_to_sweep"), shortest)
        count = await for_each_tenant(self._postgres, tenants, self._sweep, name="sweep of memories")
        await in_batches(lambda: system.run(sql("forget_tombstones"), TOMBSTONES, TOGETHER), TOGETHER)
        return count

    async def step(self) -> None:
        """Sweep."""
        if count := await self.sweep():
            log.info("deleted %d expired or faded memories", count)

    async def _sweep(self, database: Database) -> int:
        return (await sweep(database, self._settings)).total
