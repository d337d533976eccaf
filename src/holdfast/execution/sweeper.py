"""The sweeper of executions: gives up direct calls whose caller is gone, and deletes those that ended long ago."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from time import monotonic
from typing import Self

from holdfast.core.errors import DatabaseAway, HoldfastError
from holdfast.core.settings import ExecutionSettings
from holdfast.core.text import loads, restore
from holdfast.execution.executions import MAX_OUTPUT_BYTES, written_of
from holdfast.execution.outcomes import Outcome, outcome_of
from holdfast.execution.outputs import Outputs
from holdfast.execution.runner import Result
from holdfast.execution.worker_runner import failure_of, result_of
from holdfast.postgres.database import Database, Postgres, Row
from holdfast.postgres.sql import statements
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

LOOK = 15.0  # seconds between two checks for calls whose caller is gone
PAUSE = 3600.0  # and for calls that ended long ago
TOGETHER = 200  # executions per batch
READ = 30.0  # seconds that reading an answer may take

sql = statements(__name__)
log = logging.getLogger(__name__)


class ExecutionSweeper:
    """Sweeps the direct calls of all tenants."""

    def __init__(self, postgres: Postgres, settings: ExecutionSettings) -> None:
        self._postgres = postgres
        self._kept = timedelta(days=settings.keep_days)
        self._max_whole_bytes = settings.max_response_bytes

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep(), name="holdfast execution sweeper")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def lapse(self) -> int:
        """Give up calls whose lease has expired, and return how many. If a worker has answered, store the answer."""
        return await self._each(await self._postgres.system.all(sql("tenants_with_lapsed_executions")), self._lapse)

    async def sweep(self) -> int:
        """Delete calls that ended long ago, and return how many."""
        due = await self._postgres.system.all(sql("tenants_with_old_executions"), self._kept)
        return await self._each(due, self._forget)

    async def _each(self, tenants: Sequence[Row], work: Callable[[Database], Awaitable[int]]) -> int:
        done = 0
        for row in tenants:
            try:
                done += await work(self._postgres.tenant(row["id"]))
            except DatabaseAway:
                raise
            except HoldfastError as error:
                log.warning("executions of %s could not be swept, trying again later: %s", row["id"], error)
        return done

    async def _lapse(self, database: Database) -> int:
        lapsed: int = await database.value(sql("lapse_executions"))
        for row in await database.all(sql("answered_executions"), TOGETHER):
            outcome = (await self._outcome(database, row)).kept_as(row["id"])
            await database.value(sql("end_execution"), row["id"], row["leased_until"], *written_of(outcome))
        return lapsed

    async def _outcome(self, database: Database, row: Row) -> Outcome:
        """Return the outcome that a worker's answer would have been for its caller."""
        tool = Tool(restore(row["tool"]), "", {})
        call, command = restore(row["correlation_id"]), restore(row["command"])

        async def answer() -> Result:
            if row["error"] is not None:
                raise failure_of(loads(row["error"]))
            return await result_of(loads(row["result"]), command, Outputs(database), kept_by=call)

        run = Run(None, None, None, None, None, str(row["id"]), call)
        most = self._max_whole_bytes
        return await outcome_of(
            tool, run, answer, timeout=READ, max_output_bytes=MAX_OUTPUT_BYTES, max_whole_bytes=most
        )

    async def _forget(self, database: Database) -> int:
        gone, swept = TOGETHER, 0
        while gone == TOGETHER:
            gone = await database.run(sql("forget_executions"), self._kept, TOGETHER)
            swept += gone
        return swept

    async def _keep(self) -> None:
        due = monotonic() + LOOK
        while True:
            await asyncio.sleep(LOOK * (0.9 + random.random() / 5))
            try:
                lapsed = await self.lapse()
                if lapsed:
                    log.warning("%d calls of tools were given up: their callers are gone", lapsed)
                if monotonic() >= due:
                    due = monotonic() + PAUSE
                    await self.sweep()
            except HoldfastError as error:
                log.warning("executions could not be swept, trying again later: %s", error)
            except Exception:
                log.exception("a defect: executions could not be swept, trying again later")
