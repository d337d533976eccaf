"""Commands: work for the tenant's workers; for who administers the tenant.

Correlation ids are whatever their invokers chose, slashes included. A path is decoded before it is taken apart, so
a slash in an id, and with it the percent sign, is encoded twice: as %252F and %2525.
"""

from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec

from holdfast.bus.commands import Command, State
from holdfast.bus.completions import Completion
from holdfast.bus.skill_events import LARGEST, MAX_NAME
from holdfast.bus.topics import EVENTS
from holdfast.core.errors import AlreadyExists, CommandFailed, NotFound, TimedOut
from holdfast.server.fields import TopicName
from holdfast.server.operations import Call, Operations
from holdfast.server.pages import listed
from holdfast.server.routes.topics import Headers, traced

operations = Operations("commands")

MAX_PAGE = 100  # each comes with its arguments
SHARE = 0.8  # of the time that a request has, for waiting

CorrelationId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
SkillName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
Priority = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Attempts = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Wait = Annotated[float, msgspec.Meta(ge=0)]


class NewCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command to submit; the same one under the same id once more changes nothing.

    `wait`: seconds to wait for the answer, as far as the time of a request allows.
    """

    skill: SkillName
    arguments: dict[str, Any] = {}
    correlation_id: CorrelationId | None = None
    reply_to: TopicName = EVENTS
    priority: Priority = 0
    max_attempts: Attempts | None = None
    headers: Headers = {}
    wait: Wait = 0


class CommandState(msgspec.Struct, frozen=True):
    """A command, and the completion that counts once it is there: its result, or what it failed with."""

    command: Command
    completion: Completion | None


class CommandPage(msgspec.Struct, frozen=True):
    """Commands, the newest first, and what the next page is asked for `before`; null: there is none."""

    commands: list[Command]
    cursor: str | None


class CompletionList(msgspec.Struct, frozen=True):
    """What came back for a command, in the order it came; what came late or twice is not applied."""

    completions: list[Completion]


@operations.declare("GET", "/api/commands", needs="admin", errors=[NotFound])
async def list_commands(
    call: Call,
    state: State | None = None,
    skill: SkillName | None = None,
    limit: Limit = 50,
    before: CorrelationId | None = None,
) -> CommandPage:
    """Commands, the newest first."""

    async def read(most: int, before: str | None) -> list[Command]:
        return await call.engine.commands.list(state=state, skill=skill, limit=most, before=before)

    return CommandPage(*await listed(read, lambda found: found.correlation_id, limit=limit, start=before))


@operations.declare("POST", "/api/commands", needs="admin", status=201, errors=[AlreadyExists])
async def submit_command(call: Call, body: NewCommand) -> CommandState:
    """Have a skill done by a worker, and wait a while for what comes of it."""
    id = await call.engine.commands.submit(
        body.skill,
        body.arguments,
        correlation_id=body.correlation_id,
        reply_to=body.reply_to,
        priority=body.priority,
        max_attempts=body.max_attempts,
        headers=traced(call, body.headers),
    )
    return await _state(call, id, body.wait)


@operations.declare("GET", "/api/commands/{id}", needs="admin", errors=[NotFound])
async def get_command(call: Call, id: str, wait: Wait = 0) -> CommandState:
    """A command and its answer, after a while if there is none yet."""
    return await _state(call, unquote(id), wait)


@operations.declare("GET", "/api/commands/{id}/completions", needs="admin", errors=[NotFound])
async def list_completions(call: Call, id: str) -> CompletionList:
    """Everything that came back for a command, also what came late or twice."""
    command = await call.engine.commands.get(unquote(id))
    return CompletionList(await call.engine.commands.completions(command.correlation_id))


@operations.declare("POST", "/api/commands/{id}/cancel", needs="admin", errors=[NotFound])
async def cancel_command(call: Call, id: str) -> CommandState:
    """End a command that is not finished, and stop its worker; one that is finished stays as it is."""
    command = await call.engine.commands.cancel(unquote(id))
    return await _state(call, command.correlation_id, 0)


async def _state(call: Call, id: str, wait: float) -> CommandState:
    commands = call.engine.commands
    if wait:
        # That it failed is part of the answer, and so is that it takes longer.
        with suppress(CommandFailed, TimedOut):
            await commands.result(id, timeout=min(wait, SHARE * call.engine.config.server.request_timeout))
    command = await commands.get(id)
    applied = [completion for completion in await commands.completions(id) if completion.applied]
    return CommandState(command, applied[0] if applied else None)
