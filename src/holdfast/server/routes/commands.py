"""Commands: work for the tenant's workers. Needs the scope `admin`.

Callers choose correlation ids, which can contain slashes.
"""

from contextlib import suppress
from typing import Annotated, Any

import msgspec

from holdfast.bus.command_events import LARGEST, MAX_NAME
from holdfast.bus.commands import Command, State
from holdfast.bus.completions import Completion
from holdfast.bus.topics import EVENTS
from holdfast.core.errors import AlreadyExists, CommandFailed, NotFound, TimedOut
from holdfast.server.fields import TWICE_ENCODED, TopicName, about
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import page_of_items
from holdfast.server.routes.topics import Headers, with_trace_headers

operations = ApiOperations("commands")

MAX_PAGE = 100  # each includes its arguments
SHARE = 0.8  # of the request timeout, to wait for a result

CommandId = Annotated[str, TWICE_ENCODED]
CorrelationId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
SkillName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
Priority = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Attempts = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE, description="Maximum number of commands.")]
Wait = Annotated[float, msgspec.Meta(ge=0)]


class NewCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command to submit. Submitting the same command with the same id again changes nothing.

    `wait`: seconds to wait for the result, limited by the request timeout.
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
    """A command and, once it is finished, the applied completion: its result or its error."""

    command: Command
    completion: Completion | None


class CommandPage(msgspec.Struct, frozen=True):
    """Commands, newest first. Pass `cursor` as `before` to get the next page; it is null on the last page."""

    commands: list[Command]
    cursor: str | None


class CompletionList(msgspec.Struct, frozen=True):
    """Completions of a command, in the order of their arrival. Late and duplicate ones are not applied."""

    completions: list[Completion]


@operations.declare("GET", "/api/commands", needs="admin", errors=[NotFound])
async def list_commands(
    call: ApiCall,
    state: Annotated[State | None, about("Only commands in this state.")] = None,
    skill: Annotated[SkillName | None, about("Only commands for this handler.")] = None,
    limit: Limit = 50,
    before: CorrelationId | None = None,
) -> CommandPage:
    """List commands, newest first."""

    async def read(most: int, before: str | None) -> list[Command]:
        return await call.engine.commands.list(state=state, skill=skill, limit=most, before=before)

    return CommandPage(*await page_of_items(read, lambda found: found.correlation_id, limit=limit, start=before))


@operations.declare("POST", "/api/commands", needs="admin", status=201, errors=[AlreadyExists], audit=["skill"])
async def submit_command(call: ApiCall, body: NewCommand) -> CommandState:
    """Submit a command to the workers; with `wait`, wait for its result."""
    id = await call.engine.commands.submit(
        body.skill,
        body.arguments,
        correlation_id=body.correlation_id,
        reply_to=body.reply_to,
        priority=body.priority,
        max_attempts=body.max_attempts,
        headers=with_trace_headers(call, body.headers),
    )
    return await _state(call, id, body.wait)


@operations.declare("GET", "/api/commands/{id}", needs="admin", errors=[NotFound])
async def get_command(call: ApiCall, id: CommandId, wait: Wait = 0) -> CommandState:
    """Get a command and its completion; with `wait`, wait for the result."""
    return await _state(call, id, wait)


@operations.declare("GET", "/api/commands/{id}/completions", needs="admin", errors=[NotFound])
async def list_completions(call: ApiCall, id: CommandId) -> CompletionList:
    """List all completions of a command, including late and duplicate ones."""
    command = await call.engine.commands.get(id)
    return CompletionList(await call.engine.commands.completions(command.correlation_id))


@operations.declare("POST", "/api/commands/{id}/cancel", needs="admin", errors=[NotFound])
async def cancel_command(call: ApiCall, id: CommandId) -> CommandState:
    """Cancel a command and stop its worker. A finished command is unchanged."""
    command = await call.engine.commands.cancel(id)
    return await _state(call, command.correlation_id, 0)


async def _state(call: ApiCall, id: CommandId, wait: float) -> CommandState:
    commands = call.engine.commands
    if wait:
        # Not an error of the request: the response says that the command failed or is not finished.
        with suppress(CommandFailed, TimedOut):
            await commands.result(id, timeout=min(wait, SHARE * call.engine.config.server.request_timeout))
    command = await commands.get(id)
    applied = [completion for completion in await commands.completions(id) if completion.applied]
    return CommandState(command, applied[0] if applied else None)
