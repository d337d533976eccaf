"""Turns: claims on a conversation, so that one caller at a time works on it."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

import msgspec

from holdfast.conversations.turn_claims import LEASE, ClaimedTurn, Policy
from holdfast.core.errors import Busy, NotFound
from holdfast.server.fields import LEAST_SECONDS, Number
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("turns")

MAX_LEASE = 3600

LeaseSeconds = Annotated[float, msgspec.Meta(ge=LEAST_SECONDS, le=MAX_LEASE)]
Holder = Annotated[str, msgspec.Meta(max_length=255)]


class TurnClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim on a conversation. `busy`: what happens if another turn holds it. The claim expires unless renewed."""

    busy: Policy = "reject"
    lease_seconds: LeaseSeconds = LEASE.total_seconds()
    holder: Holder = ""


class TurnRenewal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lease of a claim, starting now."""

    lease_seconds: LeaseSeconds = LEASE.total_seconds()


@operations.declare("POST", "/api/conversations/{id}/turns", needs="write", status=201, errors=[NotFound, Busy])
async def claim_turn(call: ApiCall, id: UUID, body: TurnClaim) -> ClaimedTurn:
    """Claim a conversation or a place in its queue; with `fork`, claim a copy if the conversation is busy."""
    await call.authorization.conversation(id)
    return await call.engine.turns.claim(
        id, busy=body.busy, holder=body.holder or call.principal.user, lease=timedelta(seconds=body.lease_seconds)
    )


@operations.declare("PUT", "/api/conversations/{id}/turns/{number}", needs="write", errors=[NotFound, Busy])
async def renew_turn(call: ApiCall, id: UUID, number: Number, body: TurnRenewal) -> ClaimedTurn:
    """Renew a claim. The response says whether it holds the conversation and whether it was interrupted."""
    await call.authorization.conversation(id)
    return await call.engine.turns.renew(id, number, lease=timedelta(seconds=body.lease_seconds))


@operations.declare("DELETE", "/api/conversations/{id}/turns/{number}", needs="write", status=204, errors=[NotFound])
async def release_turn(call: ApiCall, id: UUID, number: Number) -> None:
    """Release a claim. A claim that no longer exists is no error."""
    await call.authorization.conversation(id)
    await call.engine.turns.release(id, number)
