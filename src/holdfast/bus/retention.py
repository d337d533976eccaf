"""Retention of the log: creates daily partitions in advance, and drops old ones that no group needs."""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Self, cast

from holdfast.core.errors import HoldfastError
from holdfast.core.settings import BusSettings
from holdfast.postgres.database import OwnerConnection, Row
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


class Retention:
    """Runs `tend` periodically."""

    def __init__(
        self, owner: Callable[[], AbstractAsyncContextManager[OwnerConnection]], settings: BusSettings
    ) -> None:
        self._owner = owner
        self._settings = settings

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep(), name="holdfast retention")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _keep(self) -> None:
        await asyncio.sleep(FIRST * (1 + random.random()))
        while True:
            pause = EVERY
            try:
                async with self._owner() as owner:
                    tended = await tend(owner, self._settings)
                if tended.dropped:
                    log.info("%d days of the log were dropped", tended.dropped)
                if tended.skipped:
                    pause = SOON
            except HoldfastError as error:
                log.warning("the log could not be tended, trying again later: %s", error)
            await asyncio.sleep(pause * (0.9 + random.random() / 5))
