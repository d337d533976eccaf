"""Retention of the audit: creates monthly partitions in advance, and drops old ones with a checkpoint of each chain."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from holdfast.core.audit_settings import AuditSettings
from holdfast.core.background import PeriodicJob
from holdfast.postgres.database import OpenOwner, OwnerConnection, Row
from holdfast.postgres.sql import statements

FIRST = 90.0  # seconds before the first run: a process that ends earlier does none
EVERY = 3600.0
SOON = 60.0  # seconds until months that were locked are tried again
MONTHS_AHEAD = 2

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuditMonths:
    """How many months were created, dropped, and skipped because other sessions held locks."""

    made: int
    dropped: int
    skipped: int


async def tend_audit(owner: OwnerConnection, settings: AuditSettings) -> AuditMonths:
    """Create the coming months. Drop those in which everything is past retention."""
    async with owner.transaction():
        row = cast(Row, await owner.one(sql("tend"), MONTHS_AHEAD, timedelta(days=settings.retention_days)))
    return AuditMonths(row["made"], row["dropped"], row["skipped"])


class AuditRetention(PeriodicJob):
    """Tends the partitions of the audit periodically."""

    def __init__(self, owner: OpenOwner, settings: AuditSettings) -> None:
        super().__init__("maintenance of the audit", pause=EVERY, first=FIRST)
        self._owner = owner
        self._settings = settings

    async def step(self) -> float | None:
        """Create and drop monthly partitions."""
        async with self._owner() as owner:
            found = await tend_audit(owner, self._settings)
        if found.dropped:
            log.info("dropped %d months of the audit", found.dropped)
        return SOON if found.skipped else None
