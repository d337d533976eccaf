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
from holdfast.core.errors import AlreadyExists, CommandFailed, InvalidInput, NotFound, TimedOut, Unavailable
from holdfast.core.text import dumps, loads
from holdfast.execution.outputs import Outputs
from holdfast.execution.runner import JSON, Result, Vanished
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

TRIES = 3  # workers that may be lost over a tool that may run again
SLACK = 1.0  # seconds beyond a call's own: a worker that ends it in time can say what was under way
LONGEST_ID = MAX_NAME - 10  # characters of a correlation id, with room for what counts the tries

TIMEOUT = "holdfast-timeout"  # header: seconds that the caller waits
ASIDE = "application/vnd.holdfast.result"  # a result that waits beside the execution
_USER, _AGENT, _SESSION, _CONVERSATION, _RUN, _CALL, _KEY = (
    f"holdfast-{name}" for name in ("user", "agent", "session", "conversation", "run", "call", "key")
)


class Answer(msgspec.Struct, frozen=True):
    """A result on its way from a worker; `aside`: it is too large, and kept beside the execution."""

    holdfast: str = "result"
    value: Any = None
    failed: bool = False
    whole: bytes | None = None
    content_type: str = JSON
    aside: bool = False


class EventRunner:
    """Has workers run tools, and waits for what comes of it."""

    def __init__(self, commands: Commands, outputs: Outputs) -> None:
        self._commands = commands
        self._outputs = outputs

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Have a worker run it; one that may run again is asked for again when a worker is lost over it.

        When the caller is cancelled the command is, too; that of a turn goes on, for whoever goes on with the turn.
        """
        deadline = asyncio.get_running_loop().time() + timeout + SLACK
        for id in _ids(run.key, TRIES if tool.idempotent else 1):
            try:
                return await self._ask(id, tool, arguments, run, deadline=deadline, timeout=timeout)
            except asyncio.CancelledError:
                if run.run_id is None:
                    await self._cancel(id)
                raise
            except CommandFailed as failed:
                error = cast(dict[str, Any], failed.details["error"])
                if error.get("code") != LOST:
                    raise _failure(error) from None
        if not tool.idempotent:
            raise Vanished(f"the worker that ran {tool.name} stopped without a word")
        raise Unavailable(f"{TRIES} workers stopped in the middle of it")

    async def cancel(self, key: str) -> None:
        """Stop whatever worker has the call of this key."""
        for id in _ids(key, TRIES):
            await self._cancel(id)

    async def _ask(
        self, id: str, tool: Tool, arguments: Mapping[str, Any], run: Run, *, deadline: float, timeout: float
    ) -> Result:
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        headers = {**headers_of(run), FINAL: "true", TIMEOUT: f"{timeout:g}"}
        if not tool.idempotent:
            headers[ONCE] = "true"
        try:
            answer = await self._commands.invoke(
                tool.name, arguments, timeout=left, correlation_id=id, max_attempts=1, headers=headers
            )
        except AlreadyExists:  # the tool was changed since: what counts is what was asked for
            answer = await self._commands.result(id, timeout=left)
        except TimedOut:
            answer = await self._too_late(id, timeout)
        return await self._result(id, answer)

    async def _too_late(self, id: str, timeout: float) -> Any:
        """End a command that takes too long, unless it has just been answered."""
        command = await self._commands.cancel(id)
        if command.state != CANCELLED:
            return await self._commands.result(id, timeout=timeout)
        if command.started_at is None:
            raise Unavailable(
                f"no worker took it in the {timeout:g} seconds that it has", next="It was not run; try later."
            )
        raise InvalidInput(f"it took longer than the {timeout:g} seconds that it has")

    async def _result(self, id: str, answer: Any) -> Result:
        told = answer_of(answer)
        if told is None:
            return Result(answer)
        if told.aside:
            kept = await self._outputs.aside(id)
            if kept is None:
                raise Unavailable("what it gave is no longer there")
            told = unpacked(kept)
        return Result(told.value, told.failed, told.whole, told.content_type)

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


def answer_for(result: Result) -> Answer:
    """A result, to be sent."""
    return Answer(value=result.value, failed=result.failed, whole=result.whole, content_type=result.content_type)


def answer_of(told: Any) -> Answer | None:
    """What a worker of ours sent; None where it is a bare result."""
    if not isinstance(told, dict) or cast(dict[str, Any], told).get("holdfast") != "result":
        return None
    return msgspec.convert(told, Answer)


def packed(answer: Answer) -> bytes:
    """An answer as it is kept aside: its value as text, which may be what other forms cannot hold."""
    return msgspec.msgpack.encode(msgspec.structs.replace(answer, value=dumps(answer.value)))


def unpacked(kept: bytes) -> Answer:
    """The answer that was kept aside."""
    answer = msgspec.msgpack.decode(kept, type=Answer)
    return msgspec.structs.replace(answer, value=loads(answer.value))


def _ids(key: str, number: int) -> list[str]:
    """The ids that a call's commands have, one after another."""
    first = correlation_id(key)
    return [first, *(f"{first}#{attempt}" for attempt in range(2, number + 1))]


def _failure(error: Mapping[str, Any]) -> InvalidInput:
    """What went wrong, in the words in which it would have been said here."""
    message = str(error.get("message", ""))
    return InvalidInput(message.removesuffix(": it said nothing more") or "it failed without a word")
