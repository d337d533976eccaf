"""Gauges: how much is remembered, of one tenant or of all, for those who watch an installation."""

import time
from dataclasses import dataclass
from typing import ClassVar, get_args
from weakref import WeakKeyDictionary

from holdfast.core.ids import TenantId
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language
from holdfast.postgres.database import PooledStatements
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
    """Reads the numbers; without a tenant, of all of them. They may be a minute old."""

    # Whoever asks makes one of these: what was counted is kept as long as the connections it was counted on.
    _counted: ClassVar[WeakKeyDictionary[PooledStatements, dict[TenantId | None, Counted]]] = WeakKeyDictionary()

    def __init__(self, system: PooledStatements, embeddings: Embeddings, tenant: TenantId | None = None) -> None:
        self._system = system
        self._embeddings = embeddings
        self._tenant = tenant

    async def scopes(self) -> list[ScopeGauge]:
        """Of each tenant and scope that has any."""
        counted = self._counted.setdefault(self._system, {})
        at, gauges = counted.get(self._tenant, (-FRESH, list[ScopeGauge]()))
        if time.monotonic() - at < FRESH:
            return gauges
        models = {each: self._embeddings.model(each) for each in get_args(Language)}
        rows = await self._system.all(
            sql("scope_gauges"), self._tenant, MOST, list(models.keys()), list(models.values())
        )
        counted[self._tenant] = time.monotonic(), [ScopeGauge(**dict(row)) for row in rows]
        return counted[self._tenant][1]
