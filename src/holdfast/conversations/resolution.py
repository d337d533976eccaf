"""Which session a client goes on with. `server/static/chat-session.js` decides the same in the browser."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resolution:
    """The session, and what is left to do: with the id that the client had stored, and in the database."""

    session_id: str
    forget_stored: bool
    store_locally: bool
    activate: bool


def resolve(stored: str | None, active: str | None, new: Callable[[], str]) -> Resolution:
    """The stored id if it is still the active one, else the active one, else a new one."""
    session_id = new() if active is None else active
    is_stored = stored is not None and stored == active
    return Resolution(
        session_id,
        forget_stored=stored is not None and not is_stored,
        store_locally=not is_stored,
        activate=active is None,
    )
