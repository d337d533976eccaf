"""Commands: requests that a worker carries out, in this process or another one.

    result = await engine.commands.invoke("translate", {"text": "hello"}, timeout=30)

A command is stored as a row and published as a record in one transaction. It waits for a worker as long as necessary.
Any process can fetch its result by its correlation id, also after a restart.
"""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from holdfast.bus.command_events import CANCELLED, SkillInvocationEvent, check_name
from holdfast.bus.command_queue import CommandQueue
from holdfast.bus.completions import Completion, Completions
from holdfast.bus.ingest import Ingest
from holdfast.bus.topics import EVENTS
from holdfast.bus.waiters import AnswerFuture, Waiters
from holdfast.core.errors import CommandFailed, InvalidInput, NotFound, TimedOut
from holdfast.core.ids import uuid7
from holdfast.core.text import loads, restore, store
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

State = Literal["queued", "running", "done", "failed", "cancelled", "dead"]
STATES: tuple[State, ...] = get_args(State)
FOREVER = 1e9  # seconds

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its state. `error` is the error of the last attempt.

    `failed`: it failed for good, and a retry cannot help. `dead`: all attempts failed, and it is a dead letter.
    """

    correlation_id: str
    skill: str
    arguments: dict[str, Any]
    reply_to: str
    headers: dict[str, str]
    priority: int
    state: State
    run_at: datetime
    attempts: int
    max_attempts: int | None
    worker: str | None
    leased_until: datetime | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Commands:
    """Submits commands, waits for their results, and shows their state."""

    def __init__(
        self, database: Database, *, queue: CommandQueue, completions: Completions, waiters: Waiters, ingest: Ingest
    ) -> None:
        self._database = database
        self._queue = queue
        self._completions = completions
        self._waiters = waiters
        self._ingest = ingest

    async def invoke(
        self,
        skill: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        correlation_id: str | None = None,
        reply_to: str = EVENTS,
        priority: int = 0,
        max_attempts: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Submit a command and wait up to `timeout` seconds for its result. Raise CommandFailed if it finally fails."""
        deadline = _deadline(timeout)
        id = str(uuid7()) if correlation_id is None else correlation_id
        command = self._queue.encode(
            _event(id, skill, arguments, reply_to),
            headers={} if headers is None else headers,
            priority=priority,
            max_attempts=max_attempts,
        )
        with self._waiters.expect(id) as answer:
            created = await self._queue.submit(command)
            self._ingest.start(reply_to)
            if not created:  # its result may exist already
                await self._waiters.query_answers()
            return await _result(id, answer, deadline)

    async def submit(
        self,
        skill: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        correlation_id: str | None = None,
        reply_to: str = EVENTS,
        priority: int = 0,
        max_attempts: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        headers: Mapping[str, str] | None = None,
        tx: Transaction | None = None,
    ) -> str:
        """Submit a command, now or when `tx` commits. Return its correlation id, with which `result` finds the answer.

        Submitting the same skill and arguments with the same id again changes nothing. Commands with the highest
        priority run first. In a transaction, submit last: other callers that submit may have to wait for the commit.
        """
        id = str(uuid7()) if correlation_id is None else correlation_id
        command = self._queue.encode(
            _event(id, skill, arguments, reply_to),
            headers={} if headers is None else headers,
            priority=priority,
            max_attempts=max_attempts,
            run_at=run_at,
            delay=delay,
        )
        await self._queue.submit(command, tx=tx)
        return id

    async def result(self, correlation_id: str, *, timeout: float | None = None) -> Any:
        """Wait up to `timeout` seconds for the result of a command. Any process may have submitted it."""
        deadline = _deadline(timeout)
        with self._waiters.expect(check_name("correlation id", correlation_id)) as answer:
            command = await self.get(correlation_id)
            if command.finished_at is None:
                await self._queue.prepare()
                self._ingest.start(command.reply_to)
            await self._waiters.query_answers()
            return await _result(correlation_id, answer, deadline)

    async def get(self, correlation_id: str) -> Command:
        """Return a command."""
        row = await self._database.one(sql("command"), store(check_name("correlation id", correlation_id)))
        if row is None:
            raise _unknown(correlation_id)
        return _command(row)

    async def completions(self, correlation_id: str) -> "list[Completion]":
        """Return all completions of a command, in order of arrival. Late and duplicate ones are not applied."""
        return await self._completions.of(check_name("correlation id", correlation_id))

    async def cancel(self, correlation_id: str) -> Command:
        """Cancel a command that is not finished, and stop its handler. Return the command."""
        if await self._completions.cancel(check_name("correlation id", correlation_id)) is None:
            raise _unknown(correlation_id)
        return await self.get(correlation_id)

    async def list(
        self, *, state: State | None = None, skill: str | None = None, limit: int = 100, before: str | None = None
    ) -> list[Command]:
        """List commands, newest first. `before` is the correlation id of the last one of the previous page."""
        if state is not None and state not in STATES:
            raise InvalidInput(f"{state!r:.100} is not a state of a command", next=f"Use one of {', '.join(STATES)}.")
        rows = await self._database.all(
            sql("commands"),
            state,
            None if skill is None else store(check_name("skill's name", skill)),
            None if before is None else store(check_name("correlation id", before)),
            limit,
        )
        if before is not None and not rows:
            await self.get(before)  # raises NotFound if the id is unknown
        return [_command(row) for row in rows]


def _event(id: str, skill: str, arguments: Mapping[str, Any] | None, reply_to: str) -> SkillInvocationEvent:
    given_arguments: Any = {} if arguments is None else arguments
    return SkillInvocationEvent(id, skill, given_arguments, reply_to)


def _deadline(timeout: float | None) -> float | None:
    """Return the deadline by the clock of the event loop."""
    if timeout is None:
        return None
    if not isinstance(timeout, int | float) or math.isnan(seconds := min(timeout, FOREVER)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"{timeout!r:.100} is not a valid timeout",
            next="Pass a number of seconds, or None to wait without a limit.",
        )
    return asyncio.get_running_loop().time() + seconds


async def _result(id: str, answer: AnswerFuture, deadline: float | None) -> Any:
    try:
        async with asyncio.timeout_at(deadline):
            completion = await answer
    except TimeoutError:
        raise TimedOut(
            f"the command {id} is not finished",
            why="no worker completed it within the timeout",
            next=f"It stays queued or running: wait for it with `result({id!r})`, or end it with `cancel({id!r})`.",
            correlation_id=id,
        ) from None
    error = completion.error
    if error is None:
        return completion.result
    if error.get("code") == CANCELLED:
        raise CommandFailed(f"the command {id} was cancelled", correlation_id=id, error=error)
    raise CommandFailed(
        f"the command {id} failed",
        why=str(error.get("message", "")),
        next=f"List its completions with `completions({id!r})`; redrive it if it is a dead letter.",
        correlation_id=id,
        error=error,
    )


def _command(row: Row) -> Command:
    fields = dict(row)
    for name in ("correlation_id", "skill", "error"):
        fields[name] = None if row[name] is None else restore(row[name])
    fields.update(arguments=loads(row["arguments"]), headers=loads(row["headers"]))
    return Command(**fields)


def _unknown(correlation_id: str) -> NotFound:
    return NotFound(
        f"the command {correlation_id:.200} does not exist",
        why="it was never submitted, or it finished so long ago that it was deleted",
        next="List the commands with `holdfast commands ls`.",
    )
