"""State: what a conversation keeps, what its user does, and what its app shares."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec

from holdfast.conversations.state import DELETED, MAX_CHANGES, StateChanged
from holdfast.core.errors import Conflict, NotFound, TooLarge
from holdfast.server.operations import Call, Operations
from holdfast.server.pages import listed

operations = Operations("state")

Version = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_CHANGES)]


class StateChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keys to set, and keys to delete. `expect`: the versions that keys must have, 0 for one that must not be there."""

    state: dict[str, Any] = {}
    delete: list[str] = []
    expect: dict[str, Version] = {}


class StateEntry(msgspec.Struct, frozen=True):
    """A value and its version."""

    value: Any
    version: int


class StateEntries(msgspec.Struct, frozen=True):
    """Everything a conversation sees: its own state, its user's under `user:` and its app's under `app:`."""

    state: dict[str, StateEntry]


class StateChanges(msgspec.Struct, frozen=True):
    """Changes of state, in their order, and the revision that the next are asked for `since`; null: there are none."""

    changes: list[StateChanged]
    next: int | None


@operations.declare("GET", "/api/conversations/{id}/state", needs="read", errors=[NotFound])
async def read_state(call: Call, id: UUID) -> StateEntries:
    """The state, each value with its version."""
    await call.authorization.conversation(id)
    found = await call.engine.state.versions(id)
    return StateEntries({name: StateEntry(entry.value, entry.version) for name, entry in found.items()})


@operations.declare("GET", "/api/conversations/{id}/state/changes", needs="read", errors=[NotFound])
async def list_state_changes(
    call: Call, id: UUID, since: Version | None = None, limit: Limit = MAX_CHANGES
) -> StateChanges:
    """Every change of state that was made in this conversation, in order, or those after a revision.

    Of its own state these are all there were: folded up to a node, they are the state that a fork there has. Of the
    user's (`user:`) and the app's (`app:`) they are those that were made here; other conversations change them too.
    """
    await call.authorization.conversation(id)

    async def read(most: int, since: int | None) -> list[StateChanged]:
        return await call.engine.state.changes(id, since=since, limit=most)

    return StateChanges(*await listed(read, lambda found: found.revision, limit=limit, start=since))


@operations.declare("PATCH", "/api/conversations/{id}/state", needs="write", errors=[NotFound, Conflict])
async def change_state(call: Call, id: UUID, body: StateChange) -> StateEntries:
    """Change these keys and no others, all at once; the answer is the state as it is now."""
    await call.authorization.conversation(id)
    await call.engine.state.set(id, change(call, body.state, body.delete), expect=body.expect)
    return await read_state(call, id)


@operations.declare("DELETE", "/api/conversations/{id}/state", needs="write", status=204, errors=[NotFound, TooLarge])
async def delete_state(call: Call, id: UUID, key: str) -> None:
    """Delete a key; one that is not there is no error."""
    await call.authorization.conversation(id)
    await call.engine.state.set(id, change(call, {}, [key]))


def change(call: Call, state: dict[str, Any], deleted: Sequence[str] = ()) -> dict[str, object]:
    """The change that sets these values and deletes these keys, if the caller may make it."""
    call.authorization.check_state((*state, *deleted))
    return {**state, **dict.fromkeys(deleted, DELETED)}
