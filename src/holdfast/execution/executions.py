"""Executions: tool calls, each stored as a row, and the API for direct calls, which are outside of any turn.

    execution = await engine.executions.call("get_customers_by_id", {"id": 7}, user="ann")

A tool that is not idempotent does not run twice. If its caller dies during the call, the execution is `unknown` until a
person decides what became of it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Literal, cast, get_args
from uuid import UUID

from holdfast.core.errors import AlreadyExists, Busy, Conflict, HoldfastError, InvalidInput, NotFound, Unavailable
from holdfast.core.ids import uuid7
from holdfast.core.names import stored_name
from holdfast.core.request_context import current_request
from holdfast.core.text import render, restore, store
from holdfast.execution.call_recorder import GRANTED
from holdfast.execution.executor import Executor
from holdfast.execution.outcomes import TEXT, Outcome
from holdfast.execution.outputs import Outputs
from holdfast.execution.runner import JSON
from holdfast.execution.running_calls import RunningCalls
from holdfast.execution.worker_runner import ASIDE, correlation_id, unpack_answer
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.arguments import ArgumentRefusal, check
from holdfast.skills.run import Run
from holdfast.skills.tool import LONGEST_TIMEOUT, Tool
from holdfast.skills.tools import Tools

Status = Literal["running", "done", "failed", "cancelled", "unknown"]
Finding = Literal["done", "failed", "again"]
STATUSES: tuple[Status, ...] = get_args(Status)
FINDINGS: tuple[Finding, ...] = get_args(Finding)
MAX_LISTED = 1000
LAST = UUID(int=2**128 - 1)
TIMEOUT = 120.0  # seconds; the default time limit of a call
MAX_OUTPUT_BYTES = 64_000  # of an output's text
AGAIN = 0.5  # seconds between two attempts to store an outcome

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Execution:
    """A tool call as it was carried out. `text` is its output as a model reads it, `result` the output as JSON.

    `has_output`: the whole output is stored separately; get it with `output`. `unknown`: the process that made the call
    stopped before its end, and the call may have taken effect.
    """

    id: UUID
    tool: str
    tool_id: UUID | None
    arguments: Any
    status: Status
    text: str
    result: Any
    error: str | None
    latency_ms: float | None
    user: str | None
    agent: str | None
    run_id: UUID | None
    step: int | None
    key: str | None
    created_at: datetime
    finished_at: datetime | None
    has_output: bool


@dataclass(frozen=True, slots=True)
class StartedExecution:
    """An execution that this process carries out. If it is begun again, its lease ends at another time."""

    id: UUID
    tool: Tool
    arguments: Mapping[str, Any]
    run: Run
    mode: Literal["inline", "event"]
    timeout: float
    leased_until: datetime


class Executions:
    """Calls tools of one tenant, and lists executions."""

    def __init__(
        self,
        database: Database,
        executor: Executor,
        tools: Tools,
        *,
        running: RunningCalls,
        timeout: float = TIMEOUT,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> None:
        self._database = database
        self._executor = executor
        self._tools = tools
        self._outputs = Outputs(database)
        self._timeout = timeout
        self._max_output_bytes = max_output_bytes
        self._running = running

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        key: str | None = None,
        timeout: float | None = None,
        token: str | None = None,
        begun: Callable[[], None] = lambda: None,
    ) -> Execution:
        """Call a tool and wait for its outcome. A failed call is an outcome, too.

        With `agent`, the agent's permissions apply. A second call with the same `key` returns the first execution.
        `token` is the caller's token of an issuer, for back ends that exchange it. It is not stored. `begun` is called
        before the call is made: not if it is refused, nor if the result is that of an earlier call.
        """
        tool = (await self._tools.get(name)).tool
        given: dict[str, Any] = {} if arguments is None else dict(arguments)
        checked = check(tool, given)
        if isinstance(checked, ArgumentRefusal):
            raise InvalidInput(checked.text)
        limit = self._limit(tool, timeout)
        id = uuid7()
        request = current_request().request_id
        run = Run(user, agent, None, None, None, str(id), f"execution:{id}", request_id=request, token=token)
        mode = await self._executor.mode(tool)
        row = await self._database.one(
            sql("begin_execution"), id, tool.id, store(tool.name), checked, None if key is None else given,
            _store_optional(user), _store_optional(agent), None if key is None else stored_name("key", key),
            timedelta(seconds=limit) + GRANTED, correlation_id(run.key) if mode == "event" else None,
        )  # fmt: skip
        assert row is not None
        if row["outcome"] == "begun":
            begun()
            return await self._make(StartedExecution(id, tool, checked, run, mode, limit, row["leased_until"]))
        _check_known(row, str(key))
        return await self.get(row["id"])

    async def get(self, id: UUID) -> Execution:
        """Return an execution, of a turn or of a direct call."""
        row = await self._database.one(sql("execution"), id)
        if row is None:
            raise unknown_execution(id)
        return _execution(row)

    async def list(
        self,
        *,
        tool: str | None = None,
        status: Status | None = None,
        run: UUID | None = None,
        user: str | None = None,
        limit: int = 100,
        before: UUID | None = None,
    ) -> list[Execution]:
        """List executions, newest first: all, of a tool, of a run, or the calls of a user outside of turns.

        `before` is the last id of the previous page.
        """
        if status is not None and status not in STATUSES:
            raise InvalidInput(
                f"{status!r:.100} is not a status of an execution", next=f"Use one of {', '.join(STATUSES)}."
            )
        if not 0 < limit <= MAX_LISTED:
            raise InvalidInput(f"the limit cannot be {limit}", next=f"Use 1 to {MAX_LISTED}.")
        args = (before or LAST, limit, status)
        if run is not None:
            tool_name = None if tool is None else store(tool)
            rows = await self._database.all(sql("list_executions_of_run"), *args, run, tool_name)
            return [_execution(row) for row in rows]
        id = None if tool is None else (await self._tools.get(tool)).id
        if user is not None:
            rows = await self._database.all(sql("list_executions_of_user"), *args, store(user), id)
            return [_execution(row) for row in rows]
        if id is not None:
            return [_execution(row) for row in await self._database.all(sql("list_executions_of_tool"), *args, id)]
        statement = "list_open_executions" if status in ("running", "unknown") else "list_executions"
        return [_execution(row) for row in await self._database.all(sql(statement), *args)]

    async def output(self, id: UUID) -> tuple[str, bytes]:
        """Return the content type and the whole output of an execution."""
        stored = await self._outputs.of(id)
        if stored is not None and stored[0] == ASIDE:  # stored by a worker
            answer = unpack_answer(stored[1])
            stored = answer.content_type, answer.whole if answer.whole is not None else render(answer.value)
        if stored is not None:
            return stored
        result = (await self.get(id)).result
        if isinstance(result, str):
            return TEXT, result.encode(errors="surrogatepass")
        return JSON, render(result)

    async def cancel(self, id: UUID, *, by: str = "") -> Execution:
        """Cancel a call. The process that makes it stops within a second."""
        who = f" by {by}" if by else ""
        error = store(f"it was cancelled{who}, and may have taken effect")
        row = await self._database.one(sql("cancel_execution"), id, error)
        if row is None:
            found = await self.get(id)
            if found.run_id is not None and found.status == "running":
                raise _part_of_run_error(found, "Cancel the run.")
            return found
        self._running.cancel([id])
        if row["correlation_id"] is not None:  # the process that waits for the worker may be gone
            await self._executor.cancel(restore(row["correlation_id"]))
        return await self.get(id)

    async def decide(self, id: UUID, finding: Finding, *, by: str, comment: str = "") -> Execution:
        """Decide what became of a call with an unknown outcome, or make it again."""
        if finding not in FINDINGS:
            raise InvalidInput(f"{finding!r:.100} is not a valid decision", next=f"Use one of {', '.join(FINDINGS)}.")
        if finding == "again":
            return await self._repeat(await self.get(id))
        verdict = f"{by} found out that it {'took effect' if finding == 'done' else 'did not take effect'}"
        text = f"{verdict}: {comment}" if comment else verdict
        error = None if finding == "done" else store(text)
        args = (id, finding, {"text": text, "result": None, "decided_by": by}, error)
        if not await self._database.run(sql("decide_execution"), *args):
            raise _no_decision_error(await self.get(id))
        return await self.get(id)

    async def _repeat(self, found: Execution) -> Execution:
        """Make a call again, under a new idempotency key: it is another call than the first."""
        tool = None if found.tool_id is None else await self._tools.current(found.tool_id)
        if tool is None:
            raise NotFound(f"the tool {found.tool} no longer exists", next="Decide `done` or `failed`.")
        checked = check(tool, found.arguments)
        if isinstance(checked, ArgumentRefusal):
            raise InvalidInput(checked.text)
        run = Run(found.user, found.agent, None, None, None, str(found.id), f"execution:{found.id}:{uuid7()}")
        limit, mode = self._limit(tool, None), await self._executor.mode(tool)
        correlation = correlation_id(run.key) if mode == "event" else None
        lease = timedelta(seconds=limit) + GRANTED
        leased_until = await self._database.value(sql("begin_anew"), found.id, lease, correlation)
        if leased_until is None:
            raise _no_decision_error(await self.get(found.id))
        return await self._make(StartedExecution(found.id, tool, checked, run, mode, limit, leased_until))

    async def _make(self, call: StartedExecution) -> Execution:
        """Make a recorded call, and store its outcome."""
        try:
            work = await self._running.make(call.id, self._run(call))
        except asyncio.CancelledError:
            await self._end(call, None)
            raise
        if work.cancelled():  # its row already says so
            return await self.get(call.id)
        error = work.exception()
        if error is not None:  # the tool was not run
            await self._end(call, Outcome.refusal(str(error)))
            raise error
        await self._end(call, work.result().with_output_note(call.id))
        return await self.get(call.id)

    async def _run(self, call: StartedExecution) -> Outcome:
        return await self._executor.run(
            call.tool,
            call.arguments,
            call.run,
            timeout=call.timeout,
            max_output_bytes=self._max_output_bytes,
            mode=call.mode,
        )

    async def _end(self, call: StartedExecution, outcome: Outcome | None) -> None:
        """Store the outcome of a call; None: it was cancelled. Retry while the database is away and the lease lasts."""
        if outcome is None:
            values = ("cancelled", None, "its caller disconnected; it may have taken effect", None, None, None)
        else:
            values = stored_values(outcome)
        until = monotonic() + GRANTED.total_seconds()
        while True:
            try:
                await self._database.value(sql("end_execution"), call.id, call.leased_until, *values)
                return
            except Unavailable as error:
                if monotonic() > until:
                    raise
                log.warning("could not store the outcome of a call; retrying: %s", error)
                await asyncio.sleep(AGAIN)

    def _limit(self, tool: Tool, timeout: float | None) -> float:
        seconds = self._timeout if timeout is None else timeout
        if not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST_TIMEOUT:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"the timeout cannot be {seconds!r:.100}", next=f"Pass seconds, above 0 and up to {LONGEST_TIMEOUT:g}."
            )
        return seconds if tool.timeout is None else min(seconds, tool.timeout)


def stored_values(outcome: Outcome) -> tuple[object, ...]:
    """Return the values of an outcome that `end_execution` stores."""
    error = None if outcome.error is None else store(outcome.error)
    kind = None if outcome.whole is None else outcome.content_type
    output = {"text": outcome.text, "result": outcome.result}
    return outcome.status, output, error, outcome.latency_ms, kind, outcome.whole


def unknown_execution(id: UUID) -> NotFound:
    """Return the error for an execution that does not exist."""
    return NotFound(
        f"the execution {id} does not exist", why="it never existed, or it ended so long ago that it was deleted"
    )


def _execution(row: Row) -> Execution:
    output: object = row["output_result"]
    fields = cast(dict[str, Any], output) if isinstance(output, dict) else {}
    return Execution(
        row["id"],
        restore(row["tool"]),
        row["tool_id"],
        row["input_params"],
        row["status"],
        str(fields.get("text", "")),
        fields.get("result"),
        _restore_optional(row["error"]),
        row["latency_ms"],
        _restore_optional(row["user_name"]),
        _restore_optional(row["agent"]),
        row["run_id"],
        row["step"],
        _restore_optional(row["key"]),
        row["created_at"],
        row["finished_at"],
        row["has_output"],
    )


def _check_known(row: Row, key: str) -> None:
    """Raise an error if the key belongs to another call, or if its call is running or has an unknown outcome."""
    details = {"execution_id": str(row["id"])}
    if row["outcome"] == "another":
        raise AlreadyExists(
            f"the key {key!r:.100} is already used",
            why="a call of another tool, or with other arguments, has it",
            next="Use a different key for each call.",
            **details,
        )
    if row["status"] == "running":
        raise Busy(
            f"the call with the key {key!r:.100} is running",
            next=f"Try again when the execution {row['id']} has ended.",
            **details,
        )
    if row["status"] == "unknown":
        raise Conflict(
            f"the call with the key {key!r:.100} is not repeated",
            expected=0,
            current=1,
            why="its outcome is unknown: its process stopped, and it may have taken effect",
            next=f"Have a person decide about the execution {row['id']}: done, failed or again.",
            **details,
        )


def _no_decision_error(found: Execution) -> HoldfastError:
    if found.run_id is not None:
        return _part_of_run_error(found, "Decide it as an approval: see `holdfast approvals`.")
    return Conflict(
        f"the execution {found.id} needs no decision",
        expected=0,
        current=1,
        why=f"it is {found.status}",
        next="Decide only executions with the status `unknown`.",
    )


def _part_of_run_error(found: Execution, next: str) -> InvalidInput:
    return InvalidInput(f"the execution {found.id} is part of the run {found.run_id}", next=next)


def _store_optional(name: str | None) -> str | None:
    return None if name is None else store(name)


def _restore_optional(stored: str | None) -> str | None:
    return None if stored is None else restore(stored)
