"""Executions: calls of tools; those that the caller made, and for who administers the tenant all of them."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from starlette.responses import Response

from holdfast.core.errors import AlreadyExists, Conflict, NotFound, Unavailable
from holdfast.execution.records import Execution, Status
from holdfast.server.attachments import attachment
from holdfast.server.operations import Call, Operations
from holdfast.server.pages import listed
from holdfast.skills.tool import LONGEST_TIMEOUT

operations = Operations("executions")

MAX_PAGE = 200
ANY_TYPE = "*/*"  # what the tool's back end said that it is
MARGIN = 30.0  # seconds beyond a call's own that its request may take

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=LONGEST_TIMEOUT)]


class DirectCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments to call a tool with; the same `key` once more gives what the first call gave."""

    arguments: dict[str, Any] = {}
    key: Name | None = None
    timeout: Seconds | None = None


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What became of a call that nobody knows the end of; `again` has it made once more."""

    decision: Literal["done", "failed", "again"]
    comment: str = ""


class ExecutionPage(msgspec.Struct, frozen=True):
    """Executions, the newest first, and what the next page is asked for `before`; null: there is none."""

    executions: list[Execution]
    cursor: UUID | None


@operations.declare("POST", "/api/tools/{name}/call", needs="write", errors=[NotFound, AlreadyExists, Unavailable])
async def call_tool(call: Call, name: str, body: DirectCall) -> Execution:
    """Call a tool as the caller, and wait for what it gives; one that failed says so in its `status`.

    It takes the scope `admin`, or permissions of the tool that let users call it.
    """
    await call.authorization.check_tool_call(name)
    call.visit.stay((body.timeout or call.engine.config.agents.tool_timeout) + MARGIN)
    return await call.engine.executions.call(
        name, body.arguments, user=call.principal.user, key=body.key, timeout=body.timeout
    )


@operations.declare("GET", "/api/executions", needs="read", errors=[NotFound])
async def list_executions(
    call: Call,
    tool: Name | None = None,
    status: Status | None = None,
    user: Name | None = None,
    limit: Limit = 50,
    before: UUID | None = None,
) -> ExecutionPage:
    """Calls of tools, the newest first: those that the caller made, or for an admin all, also of agents."""
    by = await call.authorization.users(user)

    async def read(most: int, before: UUID | None) -> list[Execution]:
        return await call.engine.executions.list(tool=tool, status=status, user=by, limit=most, before=before)

    return ExecutionPage(*await listed(read, lambda found: found.id, limit=limit, start=before))


@operations.declare("GET", "/api/executions/{id}", needs="read", errors=[NotFound])
async def get_execution(call: Call, id: UUID) -> Execution:
    """A call of a tool, and what came of it."""
    return await call.authorization.execution(id)


@operations.declare("GET", "/api/executions/{id}/output", needs="read", errors=[NotFound], response_format=ANY_TYPE)
async def get_output(call: Call, id: UUID) -> Response:
    """The whole output of a call, as it came."""
    await call.authorization.execution(id)
    media_type, content = await call.engine.executions.output(id)
    return attachment(content, f"{id}", media_type)


@operations.declare("POST", "/api/executions/{id}/cancel", needs="write", errors=[NotFound])
async def cancel_execution(call: Call, id: UUID) -> Execution:
    """Have a call stop that was made directly. One that has ended is no error."""
    await call.authorization.execution(id)
    return await call.engine.executions.cancel(id, by=call.principal.user)


@operations.declare("POST", "/api/executions/{id}/decision", needs="write", errors=[NotFound, Conflict, Unavailable])
async def decide_execution(call: Call, id: UUID, body: Finding) -> Execution:
    """Say what became of a call whose state is `unknown`, or have it made again and wait for what it gives."""
    call.principal.require_person()
    found = await call.authorization.execution(id)
    if body.decision == "again":
        await call.authorization.check_tool_call(found.tool)
        call.visit.stay(call.engine.config.agents.tool_timeout + MARGIN)
    return await call.engine.executions.decide(id, body.decision, by=call.principal.user, comment=body.comment)
