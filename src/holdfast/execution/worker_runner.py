"""Runs tools in workers, by commands on the log. The result is the same as in this process.

Each attempt of a call has one command, for ever. Its correlation id is derived from the call's key, so that a process
that resumes the caller waits for the same command, and nothing is done twice.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast
from uuid import UUID

import msgspec

from holdfast.bus.command_events import CANCELLED, MAX_NAME
from holdfast.bus.commands import Commands
from holdfast.bus.handlers import CurrentCommand
from holdfast.bus.workers import FINAL, LOST, ONCE
from holdfast.core.errors import AlreadyExists, CommandFailed, InvalidInput, NotFound, TimedOut, TooLarge, Unavailable
from holdfast.core.text import MAX_STORED_VALUES, parse, render
from holdfast.core.threads import run_in_worker
from holdfast.execution.outputs import Outputs
from holdfast.execution.runner import IN_DOUBT, JSON, OutcomeUnknown, Result
from holdfast.mcp.content import Block
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

TRIES = 3  # attempts of an idempotent tool when workers are lost
PATIENCE = 3.0  # seconds that a worker has to begin a call that can also run here
SLACK = 1.0  # seconds beyond a call's time limit: the worker ends the call first, and can say what was in progress
LONGEST_ID = MAX_NAME - 10  # characters of a correlation id, with room for the suffix of an attempt

TIMEOUT = "holdfast-timeout"  # header: seconds that the caller waits
ASIDE = "application/vnd.holdfast.result"  # type of a result that a worker stored with the execution
_USER, _AGENT, _SESSION, _CONVERSATION, _RUN, _CALL, _KEY = (
    f"holdfast-{name}" for name in ("user", "agent", "session", "conversation", "run", "call", "key")
)


class WorkerAnswer(msgspec.Struct, frozen=True):
    """A result as a worker sends it. `aside`: it is too large to send, and stored with the execution.

    `holdfast` is the correlation id of the command. The result of an app's own handler does not have it. `content` and
    `mcp` are those of a `Result`.
    """

    holdfast: str
    value: Any = None
    failed: bool = False
    whole: bytes | None = None
    content_type: str = JSON
    aside: bool = False
    content: tuple[Block, ...] | None = None
    mcp: Any = None


class NotTaken(Exception):
    """No worker has begun the call, and none will: it can run in this process."""


class WorkerRunner:
    """Sends calls to workers, and waits for the results."""

    def __init__(self, commands: Commands, outputs: Outputs) -> None:
        self._commands = commands
        self._outputs = outputs

    async def run(
        self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float, needed: bool = True
    ) -> Result:
        """Have a worker run a tool, and return the result. If a worker is lost, an idempotent tool is retried.

        When the caller is cancelled, so is the command, unless it belongs to a turn: the process that resumes the turn
        needs it. If no worker is `needed`, raise `NotTaken` when none begins the call or it is too large to send.
        """
        deadline = asyncio.get_running_loop().time() + timeout + SLACK
        for id in commands_of(run.key)[: TRIES if tool.idempotent else 1]:
            begin_by = None if needed else min(PATIENCE, timeout)
            try:
                return await self._ask(id, tool, arguments, run, deadline=deadline, timeout=timeout, begin_by=begin_by)
            except NotTaken:
                await self._outputs.mark_local(correlation_id(run.key))
                raise
            except asyncio.CancelledError:
                if run.run_id is None:
                    await self._cancel(id)
                raise
            except CommandFailed as failed:
                error = cast(dict[str, Any], failed.details["error"])
                if error.get("code") != LOST:
                    in_doubt = error.get("code") == CANCELLED and not tool.idempotent
                    raise failure_of(error, next=IN_DOUBT if in_doubt else "") from None
        if not tool.idempotent:
            raise OutcomeUnknown(f"the worker that ran {tool.name} stopped responding")
        raise Unavailable(f"{TRIES} workers stopped while they ran it")

    async def cancel(self, key: str) -> None:
        """Cancel the commands of the call with this key."""
        for id in commands_of(key):
            await self._cancel(id)

    async def _ask(
        self,
        id: str,
        tool: Tool,
        arguments: Mapping[str, Any],
        run: Run,
        *,
        deadline: float,
        timeout: float,
        begin_by: float | None,
    ) -> Result:
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        headers = {**headers_of(run), FINAL: "true", TIMEOUT: f"{timeout:g}"}
        if not tool.idempotent:
            headers[ONCE] = "true"
        try:
            try:
                answer = await self._commands.invoke(
                    tool.name,
                    arguments,
                    timeout=left if begin_by is None else begin_by,
                    correlation_id=id,
                    max_attempts=1,
                    headers=headers,
                )
            except TooLarge:
                if begin_by is not None:
                    raise NotTaken from None
                raise
            except TimedOut:
                if begin_by is None:
                    raise
                await self._refuse_untaken(id, tool)
                answer = await self._commands.result(id, timeout=left - begin_by)
            except AlreadyExists:  # the tool was changed since: the command that was sent counts
                answer = await self._commands.result(id, timeout=left)
        except TimedOut:
            answer = await self._cancel_late(id, tool, timeout)
        return await result_of(answer, id, self._outputs, stored_under=correlation_id(run.key))

    async def _refuse_untaken(self, id: str, tool: Tool) -> None:
        """If no worker has begun a command, cancel it, and raise `NotTaken`."""
        command = await self._commands.get(id)
        if command.started_at is not None or command.finished_at is not None:
            return
        command = await self._commands.cancel(id)
        if command.state == CANCELLED and command.started_at is not None and not tool.idempotent:
            raise OutcomeUnknown(f"a worker started {tool.name} while it was cancelled")
        if command.state == CANCELLED:
            raise NotTaken

    async def _cancel_late(self, id: str, tool: Tool, timeout: float) -> Any:
        """Cancel a command that takes too long, and raise an error. If it has just been answered, return the answer."""
        command = await self._commands.cancel(id)
        if command.state != CANCELLED:
            return await self._commands.result(id, timeout=timeout)
        if command.started_at is None:
            raise Unavailable(
                f"no worker started it within its timeout of {timeout:g} seconds",
                next="It did not run. Try again when a worker serves it.",
            )
        next = "" if tool.idempotent else IN_DOUBT
        raise InvalidInput(f"it exceeded its timeout of {timeout:g} seconds", next=next)

    async def _cancel(self, id: str) -> None:
        with suppress(NotFound):
            await self._commands.cancel(id)


def correlation_id(key: str) -> str:
    """Return the correlation id of the call with this key."""
    if len(key) <= LONGEST_ID:
        return key
    return f"{key[: LONGEST_ID - 34]}:{hashlib.blake2s(key.encode(errors='surrogatepass'), digest_size=16).hexdigest()}"


def headers_of(run: Run) -> dict[str, str]:
    """Return the headers that describe the run of a call to a worker."""
    values = {
        _USER: run.user,
        _AGENT: run.agent,
        _SESSION: run.session_id,
        _CONVERSATION: run.conversation_id,
        _RUN: run.run_id,
        _CALL: run.call_id,
        _KEY: run.key,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def run_of(command: CurrentCommand) -> Run:
    """Return the run that a command's headers describe. A command that no executor sent belongs to no run."""
    headers = command.headers
    try:
        conversation, run = (UUID(headers[name]) if name in headers else None for name in (_CONVERSATION, _RUN))
    except ValueError:
        conversation = run = None
    id = command.correlation_id
    return Run(
        headers.get(_USER),
        headers.get(_AGENT),
        headers.get(_SESSION),
        conversation,
        run,
        headers.get(_CALL, id),
        headers.get(_KEY, id),
    )


def answer_for(result: Result, id: str) -> WorkerAnswer:
    """Return a result as the answer to a command."""
    return WorkerAnswer(
        id, result.value, result.failed, result.whole, result.content_type, content=result.content, mcp=result.mcp
    )


async def result_of(answer: Any, id: str, outputs: Outputs, *, stored_under: str) -> Result:
    """Return the result of a command's answer. If it was too large to send, read it by the call id `stored_under`."""
    if not isinstance(answer, dict) or cast(dict[str, Any], answer).get("holdfast") != id:
        return Result(answer)  # of an app's own handler
    worker_answer = msgspec.convert(answer, WorkerAnswer)
    if worker_answer.aside:
        content = await outputs.read_aside(stored_under)
        if content is None:
            raise Unavailable("its result no longer exists")
        worker_answer = await run_in_worker(lambda: unpack_answer(content))
    return Result(
        worker_answer.value,
        worker_answer.failed,
        worker_answer.whole,
        worker_answer.content_type,
        plain=True,
        content=worker_answer.content,
        mcp=worker_answer.mcp,
    )


def pack_answer(answer: WorkerAnswer) -> bytes:
    """Encode an answer that is stored separately. Its values are JSON, because MessagePack cannot hold all of JSON."""
    mcp = None if answer.mcp is None else render(answer.mcp)
    return msgspec.msgpack.encode(msgspec.structs.replace(answer, value=render(answer.value), mcp=mcp))


def unpack_answer(content: bytes) -> WorkerAnswer:
    """Decode an answer that was stored separately."""
    answer = msgspec.msgpack.decode(content, type=WorkerAnswer)
    value, mcp = (
        None if each is None else parse(each, limit=len(content), most_values=MAX_STORED_VALUES)
        for each in (answer.value, answer.mcp)
    )
    return msgspec.structs.replace(answer, value=value, mcp=mcp)


def commands_of(key: str) -> list[str]:
    """Return the ids of a call's commands, in the order of the attempts. `holdfast.stop_calls` uses the same ids."""
    first = correlation_id(key)
    return [first, *(f"{first}#{attempt}" for attempt in range(2, TRIES + 1))]


def failure_of(error: Mapping[str, Any], *, next: str = "") -> InvalidInput:
    """Return a worker's error, in the words that it would have in this process."""
    message = str(error.get("message", ""))
    return InvalidInput(message.removesuffix(": no message") or "it failed without a message", next=next)
