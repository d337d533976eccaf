"""The sweeper of executions: gives up direct calls whose caller is gone, and deletes those that ended long ago."""

import logging
from datetime import timedelta
from time import monotonic

from holdfast.core.background import PeriodicJob
from holdfast.core.settings import ExecutionSettings
from holdfast.core.text import loads, restore
from holdfast.execution.executions import MAX_OUTPUT_BYTES, stored_values
from holdfast.execution.outcomes import Outcome, outcome_of
from holdfast.execution.outputs import Outputs
from holdfast.execution.runner import Result
from holdfast.execution.worker_runner import failure_of, result_of
from holdfast.postgres.database import Database, Postgres, Row
from holdfast.postgres.each_tenant import for_each_tenant, in_batches
from holdfast.postgres.sql import statements
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

NAME = "sweep of executions"
LOOK = 15.0  # seconds between two checks for calls whose caller is gone
PAUSE = 3600.0  # and for calls that ended long ago
TOGETHER = 200  # executions per batch
READ = 30.0  # seconds that reading an answer may take

sql = statements(__name__)
log = logging.getLogger(__name__)


class ExecutionSweeper(PeriodicJob):
    """Sweeps the direct calls of all tenants."""

    def __init__(self, postgres: Postgres, settings: ExecutionSettings) -> None:
        super().__init__(NAME, pause=LOOK)
        self._postgres = postgres
        self._keep_for = timedelta(days=settings.keep_days)
        self._max_whole_bytes = settings.max_response_bytes
        self._due = monotonic() + LOOK

    async def lapse(self) -> int:
        """Give up calls whose lease has expired, and return how many. If a worker has answered, store the answer."""
        tenants = await self._postgres.system.all(sql("tenants_with_lapsed_executions"))
        return await for_each_tenant(self._postgres, tenants, self._lapse, name=NAME)

    async def sweep(self) -> int:
        """Delete calls that ended long ago and old records of the sandbox, and return how many."""
        count = 0
        for tenants_with, forget in (
            ("tenants_with_old_executions", self._forget),
            ("tenants_with_old_sandbox_executions", self._forget_sandbox),
        ):
            tenants = await self._postgres.system.all(sql(tenants_with), self._keep_for)
            count += await for_each_tenant(self._postgres, tenants, forget, name=NAME)
        return count

    async def step(self) -> None:
        """Give up calls whose lease has expired, and from time to time delete old ones."""
        if lapsed := await self.lapse():
            log.warning("gave up %d tool calls: their processes stopped", lapsed)
        if monotonic() >= self._due:
            self._due = monotonic() + PAUSE
            await self.sweep()

    async def _lapse(self, database: Database) -> int:
        lapsed: int = await database.value(sql("lapse_executions"))
        for row in await database.all(sql("answered_executions"), TOGETHER):
            outcome = (await self._outcome(database, row)).with_output_note(row["id"])
            await database.value(sql("end_execution"), row["id"], row["leased_until"], *stored_values(outcome))
        return lapsed

    async def _outcome(self, database: Database, row: Row) -> Outcome:
        """Return the outcome that a worker's answer would have been for its caller."""
        tool = Tool(restore(row["tool"]), "", {})
        call, command = restore(row["correlation_id"]), restore(row["command"])

        async def answer() -> Result:
            if row["error"] is not None:
                raise failure_of(loads(row["error"]))
            return await result_of(loads(row["result"]), command, Outputs(database), stored_under=call)

        run = Run(None, None, None, None, None, str(row["id"]), call)
        most = self._max_whole_bytes
        return await outcome_of(
            tool, run, answer, timeout=READ, max_output_bytes=MAX_OUTPUT_BYTES, max_whole_bytes=most
        )

    async def _forget(self, database: Database) -> int:
        return await in_batches(lambda: database.run(sql("forget_executions"), self._keep_for, TOGETHER), TOGETHER)

    async def _forget_sandbox(self, database: Database) -> int:
        statement = sql("forget_sandbox_executions")
        return await in_batches(lambda: database.run(statement, self._keep_for, TOGETHER), TOGETHER)
