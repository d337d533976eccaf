"""Executions of tools: those of the caller and of its conversations; with the scope `admin`, all of the tenant."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from starlette.responses import Response

from holdfast.core.errors import AlreadyExists, Conflict, NotFound, Unavailable
from holdfast.execution.executions import Execution, Status
from holdfast.execution.sandbox_executions import SandboxExecution
from holdfast.server.attachments import attachment
from holdfast.server.fields import CallSeconds, Limit, ShortName, about
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import page_of_items

operations = ApiOperations("executions")

ANY_TYPE = "*/*"  # the media type that the tool's back end returned
MARGIN = 30.0  # seconds that a request can take beyond the timeout of its call


class DirectCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of a direct call. `key` is an idempotency key: the same key returns the result of the first call."""

    arguments: dict[str, Any] = {}
    key: ShortName | None = None
    timeout: CallSeconds | None = None


class ExecutionDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision about a call with the status `unknown`. `again` makes the call once more."""

    decision: Literal["done", "failed", "again"]
    comment: str = ""


class ExecutionPage(msgspec.Struct, frozen=True):
    """Executions, newest first. Pass `cursor` as `before` to get the next page; it is null on the last page."""

    executions: list[Execution]
    cursor: UUID | None


class SandboxExecutionList(msgspec.Struct, frozen=True):
    """What ran in the sandbox for an execution, oldest first. It is empty for a tool that is no script."""

    sandbox_executions: list[SandboxExecution]


@operations.declare(
    "POST", "/api/tools/{name}/call", needs="write", errors=[NotFound, AlreadyExists, Unavailable], calls_tool=True
)
async def call_tool(call: ApiCall, name: str, body: DirectCall) -> Execution:
    """Call a tool as the caller and wait for its result. A failed call has the status `failed`.

    This needs the scope `admin`, or permissions of the tool that let users call it.
    """
    await call.authorization.check_tool_call(name)
    call.slot.stay((body.timeout or call.engine.config.agents.tool_timeout) + MARGIN)

    def begun() -> None:
        call.called = True

    return await call.engine.executions.call(
        name,
        body.arguments,
        user=call.principal.user,
        key=body.key,
        timeout=body.timeout,
        token=call.principal.token,
        begun=begun,
    )


@operations.declare("GET", "/api/executions", needs="read", errors=[NotFound])
async def list_executions(
    call: ApiCall,
    tool: Annotated[ShortName | None, about("Only calls of this tool.")] = None,
    status: Annotated[Status | None, about("Only calls with this status.")] = None,
    user: ShortName | None = None,
    limit: Limit = 50,
    before: UUID | None = None,
) -> ExecutionPage:
    """List executions, newest first: the caller's calls outside of turns; for an admin, all, or those of one user."""
    by = await call.authorization.users(user)

    async def read(most: int, before: UUID | None) -> list[Execution]:
        return await call.engine.executions.list(tool=tool, status=status, user=by, limit=most, before=before)

    return ExecutionPage(*await page_of_items(read, lambda found: found.id, limit=limit, start=before))


@operations.declare("GET", "/api/executions/{id}", needs="read", errors=[NotFound])
async def get_execution(call: ApiCall, id: UUID) -> Execution:
    """Get an execution with its result."""
    return await call.authorization.execution(id)


@operations.declare("GET", "/api/executions/{id}/output", needs="read", errors=[NotFound], response_format=ANY_TYPE)
async def get_output(call: ApiCall, id: UUID) -> Response:
    """Download the whole output of an execution, unchanged."""
    await call.authorization.execution(id)
    media_type, content = await call.engine.executions.output(id)
    return attachment(content, f"{id}", media_type)


@operations.declare("GET", "/api/executions/{id}/sandbox", needs="read", errors=[NotFound])
async def list_sandbox_executions(call: ApiCall, id: UUID) -> SandboxExecutionList:
    """List what ran in the sandbox for an execution: the code, what it printed, and what it used."""
    await call.authorization.execution(id)
    return SandboxExecutionList(await call.engine.scripts.executions.of(id))


@operations.declare("POST", "/api/executions/{id}/cancel", needs="write", errors=[NotFound])
async def cancel_execution(call: ApiCall, id: UUID) -> Execution:
    """Cancel a call outside of turns. A call that has ended is unchanged."""
    await call.authorization.execution(id)
    return await call.engine.executions.cancel(id, by=call.principal.user)


@operations.declare(
    "POST",
    "/api/executions/{id}/decision",
    needs="write",
    errors=[NotFound, Conflict, Unavailable],
    audit=["decision"],
)
async def decide_execution(call: ApiCall, id: UUID, body: ExecutionDecision) -> Execution:
    """Decide the outcome of a call with the status `unknown`, or make it again and wait for its result."""
    call.principal.require_person()
    found = await call.authorization.execution(id)
    if body.decision == "again":
        await call.authorization.check_tool_call(found.tool)
        call.slot.stay(call.engine.config.agents.tool_timeout + MARGIN)
    return await call.engine.executions.decide(id, body.decision, by=call.principal.user, comment=body.comment)
