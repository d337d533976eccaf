"""State: key-value pairs of a conversation, of its user (`user:`) and of its app (`app:`)."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec

from holdfast.conversations.state import DELETED, MAX_CHANGES, StateChanged, StateValue
from holdfast.core.errors import Conflict, NotFound, TooLarge
from holdfast.server.fields import Number
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import page_of_items

operations = ApiOperations("state")

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_CHANGES)]


class StateChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keys to set and to delete. `expect`: the versions that keys must have, 0 for a key that must not exist."""

    state: dict[str, Any] = {}
    delete: list[str] = []
    expect: dict[str, Number] = {}


class StateEntries(msgspec.Struct, frozen=True):
    """The state that a conversation sees: its own, that of its user (`user:`) and that of its app (`app:`)."""

    state: dict[str, StateValue]


class StateChanges(msgspec.Struct, frozen=True):
    """Changes of state, in order. Pass `next` as `since` to get the next page; it is null on the last page."""

    changes: list[StateChanged]
    next: int | None


@operations.declare("GET", "/api/conversations/{id}/state", needs="read", errors=[NotFound])
async def read_state(call: ApiCall, id: UUID) -> StateEntries:
    """Get the state, each value with its version."""
    await call.authorization.conversation(id)
    return StateEntries(await call.engine.state.versions(id))


@operations.declare("GET", "/api/conversations/{id}/state/changes", needs="read", errors=[NotFound])
async def list_state_changes(
    call: ApiCall, id: UUID, since: Number | None = None, limit: Limit = MAX_CHANGES
) -> StateChanges:
    """List the changes of state that were made in this conversation, in order; with `since`, after a revision.

    For the conversation's own state the list is complete: applied up to a node, the changes give the state of a fork at
    that node. For the state of the user (`user:`) and of the app (`app:`) it has only the changes that were made here;
    other conversations change them, too.
    """
    await call.authorization.conversation(id)

    async def read(most: int, since: int | None) -> list[StateChanged]:
        return await call.engine.state.changes(id, since=since, limit=most)

    return StateChanges(*await page_of_items(read, lambda found: found.revision, limit=limit, start=since))


@operations.declare("PATCH", "/api/conversations/{id}/state", needs="write", errors=[NotFound, Conflict])
async def change_state(call: ApiCall, id: UUID, body: StateChange) -> StateEntries:
    """Set and delete keys atomically, and return the new state. Other keys are unchanged."""
    await call.authorization.conversation(id)
    await call.engine.state.set(id, change(call, body.state, body.delete), expect=body.expect)
    return await read_state(call, id)


@operations.declare("DELETE", "/api/conversations/{id}/state", needs="write", status=204, errors=[NotFound, TooLarge])
async def delete_state(call: ApiCall, id: UUID, key: str) -> None:
    """Delete a key. A missing key is no error."""
    await call.authorization.conversation(id)
    await call.engine.state.set(id, change(call, {}, [key]))


def change(call: ApiCall, state: dict[str, Any], deleted: Sequence[str] = ()) -> dict[str, object]:
    """Return the change that sets these values and deletes these keys, if the caller may make it."""
    call.authorization.check_state((*state, *deleted))
    return {**state, **dict.fromkeys(deleted, DELETED)}
