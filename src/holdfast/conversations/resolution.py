"""Decides which session a client continues. `server/static/chat-session.js` makes the same decision in the browser."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resolution:
    """The session to continue, and what to change: the id that the client has stored, and the active session."""

    session_id: str
    forget_stored: bool
    store_locally: bool
    activate: bool


def resolve(stored: str | None, active: str | None, new: Callable[[], str]) -> Resolution:
    """Choose the stored id if it is still the active one, otherwise the active one, otherwise a new one."""
    session_id = new() if active is None else active
    is_stored = stored is not None and stored == active
    return Resolution(
        session_id,
        forget_stored=stored is not None and not is_stored,
        store_locally=not is_stored,
        activate=active is None,
    )
