"""Approvals: what agents may do only when a person allows it; in the caller's conversations, or for an admin in all."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from holdfast.agents import Approval
from holdfast.core.errors import Conflict, NotFound
from holdfast.server.operations import Call, Operations

operations = Operations("approvals")

MAX_PAGE = 200

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was decided; the agent reads the comment where it was denied."""

    decision: Literal["approve", "deny"]
    comment: str = ""


class ApprovalList(msgspec.Struct, frozen=True):
    """What waits for a decision, the oldest first."""

    approvals: list[Approval]


@operations.declare("GET", "/api/approvals", needs="read")
async def list_approvals(call: Call, user: Name | None = None, limit: Limit = 100) -> ApprovalList:
    """What waits for the caller to decide; for an admin all that waits, or what waits for one user."""
    pending = await call.engine.agents.approvals.pending(user=await call.authorization.users(user), limit=limit)
    return ApprovalList(pending)


@operations.declare("GET", "/api/approvals/{id}", needs="read", errors=[NotFound])
async def get_approval(call: Call, id: UUID) -> Approval:
    """A call that waits, or waited, for a decision."""
    return await call.authorization.approval(id)


@operations.declare("POST", "/api/approvals/{id}", needs="write", errors=[NotFound, Conflict])
async def decide_approval(call: Call, id: UUID, body: Verdict) -> Approval:
    """Allow a call, or deny it; its run goes on wherever the agent is served."""
    call.principal.require_person()
    await call.authorization.approval(id)
    return await call.engine.agents.decide(
        id, approve=body.decision == "approve", by=call.principal.user, comment=body.comment
    )
