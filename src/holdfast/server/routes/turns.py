"""Turns: who may work on a conversation when several want to at once."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

import msgspec

from holdfast.conversations.turns import LEASE, Claim, Policy
from holdfast.core.errors import Busy, NotFound
from holdfast.server.fields import LEAST_SECONDS
from holdfast.server.operations import Call, Operations
from holdfast.server.routes.conversations import Number

operations = Operations("turns")

MAX_LEASE = 3600

LeaseSeconds = Annotated[float, msgspec.Meta(ge=LEAST_SECONDS, le=MAX_LEASE)]
Holder = Annotated[str, msgspec.Meta(max_length=255)]


class TurnClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim on a conversation: what happens when another turn is under way, and how long it lasts without renewal."""

    busy: Policy = "reject"
    lease_seconds: LeaseSeconds = LEASE.total_seconds()
    holder: Holder = ""


class TurnRenewal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a claim is to last from now on."""

    lease_seconds: LeaseSeconds = LEASE.total_seconds()


@operations.declare("POST", "/api/conversations/{id}/turns", needs="write", status=201, errors=[NotFound, Busy])
async def claim_turn(call: Call, id: UUID, body: TurnClaim) -> Claim:
    """Claim a conversation, or a place in the queue for it; with `fork` the claim is on a copy if it is busy."""
    await call.authorization.conversation(id)
    return await call.engine.turns.claim(
        id, busy=body.busy, holder=body.holder or call.principal.user, lease=timedelta(seconds=body.lease_seconds)
    )


@operations.declare("PUT", "/api/conversations/{id}/turns/{number}", needs="write", errors=[NotFound, Busy])
async def renew_turn(call: Call, id: UUID, number: Number, body: TurnRenewal) -> Claim:
    """Keep a claim, and learn whether its turn has come or was interrupted."""
    await call.authorization.conversation(id)
    return await call.engine.turns.renew(id, number, lease=timedelta(seconds=body.lease_seconds))


@operations.declare("DELETE", "/api/conversations/{id}/turns/{number}", needs="write", status=204, errors=[NotFound])
async def release_turn(call: Call, id: UUID, number: Number) -> None:
    """Give a claim up; one that is gone already is no error."""
    await call.authorization.conversation(id)
    await call.engine.turns.release(id, number)
