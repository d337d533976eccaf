"""Running calls: the recorded calls that this process makes for a tenant. Any process can cancel them."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any
from uuid import UUID

from holdfast.core.background import Background
from holdfast.core.errors import HoldfastError
from holdfast.execution.outcomes import GRACE, Outcome
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

LOOK = 0.5  # seconds between two polls for cancelled calls

sql = statements(__name__)
log = logging.getLogger(__name__)


class RunningCalls:
    """Makes calls in tasks of their own, and stops those whose row says that they are cancelled."""

    def __init__(self, database: Database, background: Background) -> None:
        self._database = database
        self._background = background
        self._running: dict[UUID, asyncio.Task[Outcome]] = {}

    async def make(self, execution: UUID, work: Coroutine[Any, Any, Outcome]) -> "asyncio.Task[Outcome]":
        """Make the call of an execution, and return its task when it has ended.

        If the caller is cancelled, the call is stopped first. If the row is cancelled, the task is.
        """
        task = self._running[execution] = asyncio.create_task(work, name=f"execution {execution}")
        self._background.start(("executions", id(self)), self._stop_unwanted)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task}, timeout=2 * GRACE)
            raise
        finally:
            self._running.pop(execution, None)
        return task

    def cancel(self, executions: Iterable[UUID]) -> None:
        """Stop those of these calls that this process makes."""
        for execution in executions:
            if (task := self._running.get(execution)) is not None:
                task.cancel()

    async def _stop_unwanted(self) -> None:
        """Poll for cancelled executions and stop their tasks, as long as any call is in progress."""
        while True:
            await asyncio.sleep(LOOK)
            running = list(self._running)
            if not running:
                return
            try:
                rows = await self._database.all(sql("still_wanted"), running)
            except HoldfastError as error:
                log.warning("could not look for cancelled calls; retrying: %s", error)
                continue
            self.cancel({*running} - {row["id"] for row in rows})
