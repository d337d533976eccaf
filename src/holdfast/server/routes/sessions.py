"""Active sessions of the caller, one with each agent."""

from datetime import datetime

import msgspec

from holdfast.authorization import Name
from holdfast.conversations.sessions import ActiveSession
from holdfast.core.errors import Conflict, NotFound, TooLarge
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("sessions")


class Active(msgspec.Struct, frozen=True):
    """The caller's active session with an agent. `session_id` is null if there is none."""

    agent_id: str
    session_id: str | None
    last_active_at: datetime | None
    created_at: datetime | None


class Activation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session to activate.

    With `instead_of`, it replaces only that active session; with null, it replaces none.
    """

    session_id: Name
    instead_of: Name | msgspec.UnsetType | None = msgspec.UNSET


class Ending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session to end."""

    session_id: Name


@operations.declare("GET", "/api/sessions/active", needs="read", errors=[TooLarge])
async def active_session(call: ApiCall, agent_id: Name) -> Active:
    """Get the caller's active session with an agent."""
    found = await call.engine.sessions.active(user=call.principal.user, agent=agent_id)
    return Active(agent_id, None, None, None) if found is None else _active(found)


@operations.declare("PUT", "/api/sessions/active", needs="write", errors=[NotFound])
async def activate_session(call: ApiCall, agent_id: Name, body: Activation) -> Active:
    """Activate a session, and return the active one. A session with another agent is not found."""
    return _active(
        await call.engine.sessions.activate(
            user=call.principal.user,
            agent=agent_id,
            session_id=body.session_id,
            instead_of=body.instead_of,
            adopts=call.principal.adopts,
        )
    )


@operations.declare("POST", "/api/sessions/end", needs="write", status=204, errors=[NotFound, Conflict])
async def end_session(call: ApiCall, body: Ending) -> None:
    """End a session of the caller; for an admin without this session id, another user's."""
    try:
        await call.engine.sessions.end(body.session_id, user=call.principal.user)
    except NotFound:
        if not call.authorization.is_admin:
            raise
        await call.engine.sessions.end(body.session_id)


def _active(active: ActiveSession) -> Active:
    return Active(active.agent, active.session_id, active.last_active_at, active.created_at)
