"""Approvals of tool calls: those of the caller's conversations; with the scope `admin`, all of the tenant."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from holdfast.agents import Approval
from holdfast.core.errors import Conflict, NotFound
from holdfast.server.fields import about
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("approvals")

MAX_PAGE = 200

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision. If it is `deny`, the agent reads the comment."""

    decision: Literal["approve", "deny"]
    comment: Annotated[str, about("Comment that the agent sees.")] = ""


class ApprovalList(msgspec.Struct, frozen=True):
    """Pending approvals, oldest first."""

    approvals: list[Approval]


@operations.declare("GET", "/api/approvals", needs="read")
async def list_approvals(call: ApiCall, user: Name | None = None, limit: Limit = 100) -> ApprovalList:
    """List the caller's pending approvals; for an admin, all pending approvals or those of one user."""
    pending = await call.engine.agents.approvals.pending(user=await call.authorization.users(user), limit=limit)
    return ApprovalList(pending)


@operations.declare("GET", "/api/approvals/{id}", needs="read", errors=[NotFound])
async def get_approval(call: ApiCall, id: UUID) -> Approval:
    """Get an approval, pending or decided."""
    return await call.authorization.approval(id)


@operations.declare("POST", "/api/approvals/{id}", needs="write", errors=[NotFound, Conflict], audit=["decision"])
async def decide_approval(call: ApiCall, id: UUID, body: Verdict) -> Approval:
    """Approve or deny a tool call. Any process that serves the agent then continues the run."""
    call.principal.require_person()
    await call.authorization.approval(id)
    return await call.engine.agents.decide(
        id, approve=body.decision == "approve", by=call.principal.user, comment=body.comment
    )
