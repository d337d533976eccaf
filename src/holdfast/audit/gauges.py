"""Gauges for monitoring: for how long entries have waited to be sealed, of one tenant or of all."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core.ids import TenantId
from holdfast.postgres.database import Statements
from holdfast.postgres.sql import statements

MOST = 1000  # time series: each costs a monitoring system

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class SealingGauge:
    """For how many seconds the oldest entry of a tenant has waited, 0 if none waits."""

    tenant: str
    seconds: float


class AuditGauges:
    """Measures how far sealing is behind."""

    def __init__(self, system: Statements) -> None:
        self._system = system

    async def sealing(self, tenant: TenantId | None = None) -> Sequence[SealingGauge]:
        """Return the gauge of a tenant; without one, of those whose entries have waited longest."""
        rows = await self._system.all(sql("sealing_gauges"), tenant, MOST)
        return [SealingGauge(row["tenant"], row["seconds"]) for row in rows]
