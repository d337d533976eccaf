"""Gauges: how much is remembered, of one tenant or of all, for those who watch an installation."""

import time
from dataclasses import dataclass
from typing import get_args

from holdfast.core.ids import TenantId
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language
from holdfast.postgres.database import Statements
from holdfast.postgres.sql import statements

MOST = 1000  # series: a monitoring system pays for each
FRESH = 60.0  # seconds: every memory is counted, which is not worth it for each who asks

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class ScopeGauge:
    """A scope of a tenant: how many memories it has, and how many of them still lack the vector of their model."""

    tenant: str
    scope: str
    memories: int
    unembedded: int


Counted = tuple[float, list[ScopeGauge]]  # when, and what


class MemoryGauges:
    """Counts memories. The numbers may be a minute old."""

    def __init__(self, system: Statements, embeddings: Embeddings) -> None:
        self._system = system
        self._embeddings = embeddings
        self._counted: dict[TenantId | None, Counted] = {}

    async def scopes(self, tenant: TenantId | None = None) -> list[ScopeGauge]:
        """Of each scope that a tenant has memories in; without one, of all tenants."""
        at, gauges = self._counted.get(tenant, (-FRESH, list[ScopeGauge]()))
        if time.monotonic() - at < FRESH:
            return gauges
        models = {each: self._embeddings.model(each) for each in get_args(Language)}
        rows = await self._system.all(sql("scope_gauges"), tenant, MOST, list(models.keys()), list(models.values()))
        gauges = [ScopeGauge(**dict(row)) for row in rows]
        if len(self._counted) >= MOST:
            self._counted.clear()
        self._counted[tenant] = time.monotonic(), gauges
        return gauges
