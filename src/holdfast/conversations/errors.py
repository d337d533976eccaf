"""Errors for requests that the database rejected. Each function returns the error for the caller to raise."""

from uuid import UUID

from holdfast.core.errors import AlreadyExists, Busy, Conflict, HoldfastError, InvalidInput, NotFound
from holdfast.postgres.database import Row

_REASONS = {
    "root": "it is the root of its tree; remove the conversation instead",
    "deleted": "it was deleted",
    "cycle": "it would become its own descendant",
    "no parent": "the new parent is not in the same tree or was deleted",
    "no sibling": "the `before` node is not another child of the new parent",
}


def unknown_conversation(id: UUID) -> NotFound:
    """There is no such conversation, or the caller may not see it."""
    return NotFound(f"there is no conversation {id}")


def unknown_node(node: UUID) -> NotFound:
    """There is no such node, or the caller may not see it."""
    return NotFound(f"there is no node {node}")


def session_exists(session: str | None) -> AlreadyExists:
    """The session id is taken."""
    return AlreadyExists(
        f"the session {session!r} already exists", next="Use another session_id, or get the session with `find`."
    )


def ambiguous_session(session: str) -> Conflict:
    """Several users have a session with this id, and the caller named no user."""
    return Conflict(
        f"several users have a session {session[:100]!r}",
        expected=1,
        current=2,
        why="session ids are unique per user, and no user was given",
        next="Pass the user, or use the conversation's id.",
    )


def unknown_session(session: str) -> NotFound:
    """There is no such session, or the caller may not see it."""
    return NotFound(f"there is no session {session[:100]!r}", next="Start a new session.")


def turn_not_held(turn: int) -> Busy:
    """The turn does not hold its conversation."""
    return Busy(
        f"the turn {turn} does not hold the conversation",
        why="it is still queued, has ended, or its lease expired",
        next="Claim the conversation again and read its new messages.",
    )


def append_error(
    outcome: str,
    id: UUID,
    revision: int | None,
    *,
    expect: int | None = None,
    parent: UUID | None = None,
    turn: int | None = None,
) -> HoldfastError:
    """The node was not appended; `outcome` is the reason."""
    if outcome == "conflict" and expect is not None and revision is not None:
        return Conflict("the conversation has changed", expected=expect, current=revision)
    if outcome == "no parent":
        return NotFound(f"there is no parent node {parent} in the conversation {id}")
    if outcome == "lapsed" and turn is not None:
        return turn_not_held(turn)
    return unknown_conversation(id)


def change_error(row: Row, node: UUID, version: int) -> HoldfastError:
    """The node was not edited, deleted or moved; the row has the reason."""
    outcome = row["outcome"]
    if outcome == "conflict":
        return Conflict(f"the node {node} has changed", expected=version, current=row["version"])
    if outcome in _REASONS:
        return InvalidInput(f"the node {node} cannot be changed", why=_REASONS[outcome])
    return unknown_node(node)
