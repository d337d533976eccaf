"""The call recorder: makes the calls of the gateway, and records each as an execution.

kind of call                                     its row is written
of a tool that may run again, or only reads      behind the answer, many in one commit
of any other tool, or by a worker                before the call, with a lease; its end behind the answer
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID

import msgspec

from holdfast.core.batching import Batcher
from holdfast.core.text import dumps
from holdfast.execution.call_records import CallRecord, CallRecords
from holdfast.execution.executor import MARGIN, Executor
from holdfast.execution.outcomes import GRACE, Outcome, cut
from holdfast.execution.running_calls import RunningCalls
from holdfast.execution.worker_runner import correlation_id
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements
from holdfast.skills.client import InputRequired
from holdfast.skills.run import Run
from holdfast.skills.tool import Mode, Tool

GRANTED = timedelta(seconds=10 + MARGIN + GRACE)  # from a call's time limit to the end of its lease
MAX_OUTPUT_BYTES = 64_000  # of an output in its row; the caller gets more
BEGUN_TOGETHER = 200  # calls that are recorded before they begin, per commit
DISCONNECTED = "its caller disconnected; it may have taken effect"
NOT_BEGUN = "its caller disconnected before it began; it did not run"

sql = statements(__name__)


class BegunCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The row of a call that is about to begin. `lease` is in seconds."""

    id: UUID
    tool: str
    lease: float
    tool_id: UUID | None = None
    input_params: Any = None
    user_name: str | None = None
    agent: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that the gateway has checked. `timeout` is how many seconds its caller waits."""

    tool: Tool
    arguments: Mapping[str, Any]
    run: Run
    timeout: float
    max_output_bytes: int
    mode: Mode
    began: float

    @property
    def id(self) -> UUID:
        """The id of the execution."""
        return UUID(self.run.call_id)


class CallRecorder:
    """Makes and records calls of one tenant's gateway."""

    def __init__(self, database: Database, executor: Executor, records: CallRecords, running: RunningCalls) -> None:
        self._database = database
        self._executor = executor
        self._records = records
        self._running = running
        self._begin = Batcher(self._begin_all, most=BEGUN_TOGETHER)

    async def run(
        self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float, max_output_bytes: int
    ) -> Outcome:
        """Make a call that the gateway has checked, and return its outcome. `run.call_id` is the execution's id.

        A call that stops to ask its client (`InputRequired`) has no row. The client makes it again with the answers.
        """
        limit = timeout if tool.timeout is None else min(timeout, tool.timeout)
        mode = await self._executor.mode(tool)
        call = RecordedCall(tool, arguments, run, limit, max_output_bytes, mode, monotonic())
        # The engine's own tools write to this database only, where their effects can be seen.
        repeatable = tool.idempotent or tool.access == "read" or tool.id is None
        if mode == "inline" and repeatable:
            return await self._make(call)
        return await self._begin_and_make(call)

    async def _make(self, call: RecordedCall) -> Outcome:
        """Make a call that needs no row before it begins."""
        try:
            outcome = await self._run(call)
        except asyncio.CancelledError:
            self._records.add(self._database, _ended(call, None, None))
            raise
        self._records.add(self._database, _ended(call, outcome, None))
        return outcome

    async def _begin_and_make(self, call: RecordedCall) -> Outcome:
        """Make a call that has a row before it begins, so that nobody repeats it unasked after a crash."""
        leased_until = await self._begin_call(call)
        try:
            work = await self._running.make(call.id, self._run(call))
        except asyncio.CancelledError:
            self._records.add(self._database, _ended(call, None, leased_until))
            raise
        if work.cancelled():  # its row already says so
            text = f"{call.tool.name} failed: the call was cancelled, and may have taken effect"
            return replace(Outcome.refusal(text), refused=False)
        error = work.exception()
        if isinstance(error, InputRequired):
            await self._database.run(sql("withdraw_call"), call.id, leased_until)
            raise error from None
        outcome = work.result() if error is None else Outcome.refusal(str(error))
        self._records.add(self._database, _ended(call, outcome, leased_until))
        if error is not None:
            raise error
        return outcome

    async def _begin_call(self, call: RecordedCall) -> datetime:
        """Write the row of a call, and return the end of its lease."""
        begun = self._begin.submit(_begin_of(call))
        try:
            return await asyncio.shield(begun)
        except asyncio.CancelledError:
            # Its row may be on its way into the database. Without an end, it would become `unknown`.
            begun.add_done_callback(lambda _: self._end_unmade(call, begun))
            raise

    def _end_unmade(self, call: RecordedCall, begun: "asyncio.Future[datetime]") -> None:
        """Record the end of a call whose caller disconnected before it began."""
        if not begun.cancelled() and begun.exception() is None:
            self._records.add(self._database, _ended(call, None, begun.result(), NOT_BEGUN))

    async def _run(self, call: RecordedCall) -> Outcome:
        return await self._executor.run(
            call.tool,
            call.arguments,
            call.run,
            timeout=call.timeout,
            max_output_bytes=call.max_output_bytes,
            mode=call.mode,
            admitted=True,
        )

    async def _begin_all(self, calls: Sequence[BegunCall]) -> Sequence[datetime]:
        """Record calls in one commit, and return the ends of their leases."""
        rows = await self._database.all(sql("begin_calls"), dumps(calls))
        leases: dict[UUID, datetime] = {row["id"]: row["leased_until"] for row in rows}
        return [leases[call.id] for call in calls]


def _begin_of(call: RecordedCall) -> BegunCall:
    """Return the row of a call that is about to begin."""
    tool, run = call.tool, call.run
    return BegunCall(
        id=call.id,
        tool=tool.name,
        tool_id=tool.id,
        lease=call.timeout + GRANTED.total_seconds(),
        input_params=None if tool.id is None else call.arguments,
        user_name=run.user,
        agent=run.agent,
        correlation_id=correlation_id(run.key) if call.mode == "event" else None,
    )


def _ended(
    call: RecordedCall, outcome: Outcome | None, leased_until: datetime | None, error: str = DISCONNECTED
) -> CallRecord:
    """Return the record of a call that has ended; without an outcome, with the `error` that its caller disconnected.

    What the engine's own tools take and give is left out: memories, notes and messages. A record would outlive them.
    """
    tool, run = call.tool, call.run
    return CallRecord(
        id=call.id,
        tool=tool.name,
        tool_id=tool.id,
        status="cancelled" if outcome is None else outcome.status,
        began=call.began,
        ended=monotonic(),
        input_params=None
        if tool.id is None or leased_until is not None
        else call.arguments,  # a row that exists has them
        user_name=run.user,
        agent=run.agent,
        output_result=None if tool.id is None or outcome is None else _stored_output(outcome),
        error=error if outcome is None else outcome.error,
        latency_ms=None if outcome is None else outcome.latency_ms,
        leased_until=leased_until,
    )


def _stored_output(outcome: Outcome) -> Mapping[str, Any]:
    """Return the output for the row: all of it, or a part. The caller gets all of it."""
    text = cut(outcome.text, MAX_OUTPUT_BYTES)
    is_whole = text == outcome.text and not outcome.shortened and outcome.whole is None
    return {"text": text, "result": outcome.result if is_whole else text}
