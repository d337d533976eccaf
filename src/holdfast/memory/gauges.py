"""Gauges: how much is remembered, of one tenant or of all, for those who watch an installation."""

from dataclasses import dataclass
from typing import get_args

from holdfast.core.ids import TenantId
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language
from holdfast.postgres.database import PooledStatements
from holdfast.postgres.sql import statements

MOST = 1000  # series: a monitoring system pays for each

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class ScopeGauge:
    """A scope of a tenant: how many memories it has, and how many of them still lack the vector of their model."""

    tenant: str
    scope: str
    memories: int
    unembedded: int


class MemoryGauges:
    """Reads the numbers; without a tenant, of all of them."""

    def __init__(self, system: PooledStatements, embeddings: Embeddings, tenant: TenantId | None = None) -> None:
        self._system = system
        self._embeddings = embeddings
        self._tenant = tenant

    async def scopes(self) -> list[ScopeGauge]:
        """Of each tenant and scope that has any."""
        models = {each: self._embeddings.model(each) for each in get_args(Language)}
        rows = await self._system.all(
            sql("scope_gauges"), self._tenant, MOST, list(models.keys()), list(models.values())
        )
        return [ScopeGauge(**dict(row)) for row in rows]
