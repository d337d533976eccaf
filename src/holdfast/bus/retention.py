"""Retention of the log: creates daily partitions in advance, and drops old ones that no group needs."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from holdfast.core.background import PeriodicJob
from holdfast.core.settings import BusSettings
from holdfast.postgres.database import OpenOwner, OwnerConnection, Row
from holdfast.postgres.sql import statements

FIRST = 60.0  # seconds before the first run: a process that ends earlier does none
EVERY = 3600.0
SOON = 60.0  # seconds until days that were locked are tried again
DAYS_AHEAD = 3

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """How many days were created, dropped, and skipped because other sessions held locks."""

    made: int
    dropped: int
    skipped: int = 0


async def tend(owner: OwnerConnection, settings: BusSettings) -> RetentionReport:
    """Create the coming days. Drop those that are past retention and that every active group has read."""
    retention = timedelta(days=settings.retention_days)
    forget = timedelta(days=settings.forget_groups_after_days)
    async with owner.transaction():
        row = cast(Row, await owner.one(sql("tend_log"), DAYS_AHEAD, retention, forget))
    return RetentionReport(row["made"], row["dropped"], row["skipped"])


class Retention(PeriodicJob):
    """Runs `tend` periodically."""

    def __init__(self, owner: OpenOwner, settings: BusSettings) -> None:
        super().__init__("maintenance of the log", pause=EVERY, first=FIRST)
        self._owner = owner
        self._settings = settings

    async def step(self) -> float | None:
        """Create and drop daily partitions."""
        async with self._owner() as owner:
            report = await tend(owner, self._settings)
        if report.dropped:
            log.info("dropped %d days of the log", report.dropped)
        return SOON if report.skipped else None
