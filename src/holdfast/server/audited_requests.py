"""Audited requests: requests to the HTTP API that change access or settings, decide, or export. Each has an entry."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.responses import Response

from holdfast.audit.entries import AuditEntry, AuditOutcome, outcome_of_error
from holdfast.core.errors import HoldfastError
from holdfast.execution.policies.audit import TOOL_CALL
from holdfast.server.operations import ApiCall, ApiOperation

REPEATED = "it was not made again: the answer is that of an earlier call with the same key"
MAX_DETAIL = 1000  # characters of a kept field


async def audited(call: ApiCall, operation: ApiOperation, work: Callable[[], Awaitable[Response]]) -> Response:
    """Do the work of a request, and record its outcome before the answer.

    Nothing is done while the audit cannot be written.
    """
    return await call.engine.audit.recorded(lambda: entry_of(call, operation.name), work)


async def audited_call(call: ApiCall, work: Callable[[], Awaitable[Response]]) -> Response:
    """Do the work of a request that calls a tool. The call has an entry of its own. If it is not made, record why.

    It is not made if it is refused before, or if the request repeats one that was answered.
    """
    audit = call.engine.audit
    await audit.check()
    try:
        response = await work()
    except HoldfastError as error:
        if not call.called:
            await audit.record(entry_of(call, TOOL_CALL, *outcome_of_error(error)))
        raise
    if not call.called:
        await audit.record(msgspec.structs.replace(entry_of(call, TOOL_CALL, "done"), notes=(REPEATED,)))
    return response


def entry_of(call: ApiCall, action: str, outcome: AuditOutcome = "done", code: str = "") -> AuditEntry:
    """Return the entry of a request. Without a target of its own, its target is what its path names."""
    caller = call.principal
    return AuditEntry(
        action=action,
        target=call.target or "/".join(map(str, call.request.path_params.values())),
        outcome=outcome,
        user=caller.user,
        actor=caller.actor,
        agent=caller.agent,
        key=caller.key,
        code=code,
        details=call.details,
    )


def details_of(operation: ApiOperation, body: Any) -> dict[str, Any]:
    """Return the fields of a body that the entry keeps: those that the operation names."""
    given = {name: getattr(body, name, None) for name in operation.kept}
    return {
        name: _kept(value) for name, value in given.items() if value is not None and value not in ("", msgspec.UNSET)
    }


def _kept(value: Any) -> Any:
    plain = msgspec.to_builtins(value, str_keys=True)
    return plain[:MAX_DETAIL] if isinstance(plain, str) else plain
