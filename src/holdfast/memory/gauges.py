"""Gauges for monitoring: the number of memories, of one tenant or of all."""

import time
from dataclasses import dataclass
from typing import get_args

from holdfast.core.ids import TenantId
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language
from holdfast.postgres.database import Statements
from holdfast.postgres.sql import statements

MOST = 1000  # time series: each costs a monitoring system
FRESH = 60.0  # seconds to cache the counts: a count reads all index entries

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class ScopeGauge:
    """The number of memories in a scope of a tenant, and how many of them have no vector of the current model."""

    tenant: str
    scope: str
    memories: int
    unembedded: int


CachedGauges = tuple[float, list[ScopeGauge]]  # time of the count, and its result


class MemoryGauges:
    """Counts memories. The counts are cached for a minute."""

    def __init__(self, system: Statements, embeddings: Embeddings) -> None:
        self._system = system
        self._embeddings = embeddings
        self._cache: dict[TenantId | None, CachedGauges] = {}

    async def scopes(self, tenant: TenantId | None = None) -> list[ScopeGauge]:
        """Return the gauges of each scope that has memories, of one tenant or of all."""
        at, gauges = self._cache.get(tenant, (-FRESH, list[ScopeGauge]()))
        if time.monotonic() - at < FRESH:
            return gauges
        models = {each: self._embeddings.model(each) for each in get_args(Language)}
        rows = await self._system.all(sql("scope_gauges"), tenant, MOST, list(models.keys()), list(models.values()))
        gauges = [ScopeGauge(**dict(row)) for row in rows]
        if len(self._cache) >= MOST:
            self._cache.clear()
        self._cache[tenant] = time.monotonic(), gauges
        return gauges
