"""Tools by event: a worker runs them, whichever it is; what they give is the same as here.

One command per call, for ever: its correlation id is the call's key, so that whoever resumes the caller waits for the
same command, and nothing is done twice.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast
from uuid import UUID

import msgspec

from holdfast.bus.commands import Commands
from holdfast.bus.skill_events import CANCELLED, MAX_NAME
from holdfast.bus.skills import CurrentCommand
from holdfast.bus.workers import FINAL, LOST, ONCE
from holdfast.core.errors import AlreadyExists, CommandFailed, InvalidInput, NotFound, TimedOut, TooLarge, Unavailable
from holdfast.core.text import MAX_STORED_VALUES, parse, render
from holdfast.core.threads import in_worker
from holdfast.execution.outputs import Outputs
from holdfast.execution.runner import IN_DOUBT, JSON, Result, Vanished
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

TRIES = 3  # workers that may be lost over a tool that may run again
PATIENCE = 3.0  # seconds that a worker has to begin a call that can also be made here
SLACK = 1.0  # seconds beyond a call's own: a worker that ends it in time can say what was under way
LONGEST_ID = MAX_NAME - 10  # characters of a correlation id, with room for what counts the tries

TIMEOUT = "holdfast-timeout"  # header: seconds that the caller waits
ASIDE = "application/vnd.holdfast.result"  # a result that waits beside the execution
_USER, _AGENT, _SESSION, _CONVERSATION, _RUN, _CALL, _KEY = (
    f"holdfast-{name}" for name in ("user", "agent", "session", "conversation", "run", "call", "key")
)


class Answer(msgspec.Struct, frozen=True):
    """A result on its way from a worker; `aside`: it is too large, and kept beside the execution.

    `holdfast` is the correlation id of the command: a result of a program's own does not have it.
    """

    holdfast: str
    value: Any = None
    failed: bool = False
    whole: bytes | None = None
    content_type: str = JSON
    aside: bool = False


class Untaken(Exception):
    """No worker has the call, nor will have it: it can be made here."""


class EventRunner:
    """Has workers run tools, and waits for what comes of it."""

    def __init__(self, commands: Commands, outputs: Outputs) -> None:
        self._commands = commands
        self._outputs = outputs

    async def run(
        self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float, needed: bool = True
    ) -> Result:
        """Have a worker run it; one that may run again is asked for again when a worker is lost over it.

        When the caller is cancelled the command is, too; that of a turn goes on, for whoever goes on with the turn.
        Where no worker is `needed`, `Untaken` says that none begins it, or that it is too large to be sent.
        """
        deadline = asyncio.get_running_loop().time() + timeout + SLACK
        for id in commands_of(run.key)[: TRIES if tool.idempotent else 1]:
            begin_by = None if needed else min(PATIENCE, timeout)
            try:
                return await self._ask(id, tool, arguments, run, deadline=deadline, timeout=timeout, begin_by=begin_by)
            except Untaken:
                await self._outputs.here(correlation_id(run.key))
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
            raise Vanished(f"the worker that ran {tool.name} stopped without a word")
        raise Unavailable(f"{TRIES} workers stopped in the middle of it")

    async def cancel(self, key: str) -> None:
        """Stop whatever worker has the call of this key."""
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
                    raise Untaken from None
                raise
            except TimedOut:
                if begin_by is None:
                    raise
                await self._refuse_untaken(id, tool)
                answer = await self._commands.result(id, timeout=left - begin_by)
            except AlreadyExists:  # the tool was changed since: what counts is what was asked for
                answer = await self._commands.result(id, timeout=left)
        except TimedOut:
            answer = await self._too_late(id, tool, timeout)
        return await result_of(answer, id, self._outputs, kept_by=correlation_id(run.key))

    async def _refuse_untaken(self, id: str, tool: Tool) -> None:
        """`Untaken` where no worker has begun a command, and none will."""
        command = await self._commands.get(id)
        if command.started_at is not None or command.finished_at is not None:
            return
        command = await self._commands.cancel(id)
        if command.state == CANCELLED and command.started_at is not None and not tool.idempotent:
            raise Vanished(f"a worker began {tool.name} as it was taken back")
        if command.state == CANCELLED:
            raise Untaken

    async def _too_late(self, id: str, tool: Tool, timeout: float) -> Any:
        """End a command that takes too long, unless it has just been answered."""
        command = await self._commands.cancel(id)
        if command.state != CANCELLED:
            return await self._commands.result(id, timeout=timeout)
        if command.started_at is None:
            raise Unavailable(
                f"no worker took it in the {timeout:g} seconds that it has", next="It was not run; try later."
            )
        next = "" if tool.idempotent else IN_DOUBT
        raise InvalidInput(f"it took longer than the {timeout:g} seconds that it has", next=next)

    async def _cancel(self, id: str) -> None:
        with suppress(NotFound):
            await self._commands.cancel(id)


def correlation_id(key: str) -> str:
    """The correlation id of the call that has this key."""
    if len(key) <= LONGEST_ID:
        return key
    return f"{key[: LONGEST_ID - 34]}:{hashlib.blake2s(key.encode(errors='surrogatepass'), digest_size=16).hexdigest()}"


def headers_of(run: Run) -> dict[str, str]:
    """What a worker is told of the run that a tool is called in."""
    given = {
        _USER: run.user,
        _AGENT: run.agent,
        _SESSION: run.session_id,
        _CONVERSATION: run.conversation_id,
        _RUN: run.run_id,
        _CALL: run.call_id,
        _KEY: run.key,
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def run_of(command: CurrentCommand) -> Run:
    """The run that a worker was told of; who invoked the command by itself is in none."""
    told = command.headers
    try:
        conversation, run = (UUID(told[name]) if name in told else None for name in (_CONVERSATION, _RUN))
    except ValueError:
        conversation = run = None
    id = command.correlation_id
    return Run(
        told.get(_USER),
        told.get(_AGENT),
        told.get(_SESSION),
        conversation,
        run,
        told.get(_CALL, id),
        told.get(_KEY, id),
    )


def answer_for(result: Result, id: str) -> Answer:
    """A result, to be sent as the answer to a command."""
    return Answer(id, result.value, result.failed, result.whole, result.content_type)


async def result_of(answer: Any, id: str, outputs: Outputs, *, kept_by: str) -> Result:
    """The result that a command was answered with; what is too large to be sent is kept by the call's own id."""
    if not isinstance(answer, dict) or cast(dict[str, Any], answer).get("holdfast") != id:
        return Result(answer)  # of a program's own
    told = msgspec.convert(answer, Answer)
    if told.aside:
        kept = await outputs.aside(kept_by)
        if kept is None:
            raise Unavailable("what it gave is no longer there")
        told = await in_worker(lambda: unpacked(kept))
    return Result(told.value, told.failed, told.whole, told.content_type, plain=True)


def packed(answer: Answer) -> bytes:
    """An answer as it is kept aside: its value as JSON, which may be what other forms cannot hold."""
    return msgspec.msgpack.encode(msgspec.structs.replace(answer, value=render(answer.value)))


def unpacked(kept: bytes) -> Answer:
    """The answer that was kept aside."""
    answer = msgspec.msgpack.decode(kept, type=Answer)
    return msgspec.structs.replace(answer, value=parse(answer.value, limit=len(kept), most_values=MAX_STORED_VALUES))


def commands_of(key: str) -> list[str]:
    """The ids that the commands of a call have, one after another, as `holdfast.stop_calls` knows them, too."""
    first = correlation_id(key)
    return [first, *(f"{first}#{attempt}" for attempt in range(2, TRIES + 1))]


def failure_of(error: Mapping[str, Any], *, next: str = "") -> InvalidInput:
    """What went wrong, in the words in which it would have been said here."""
    message = str(error.get("message", ""))
    return InvalidInput(message.removesuffix(": it said nothing more") or "it failed without a word", next=next)
