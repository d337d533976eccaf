"""State: key-value pairs of a conversation, of its user, or of its app.

The prefix of a key says which, for example `user:theme` or `app:greeting`. A key without a prefix is the conversation's
own. A key with `temp:` lasts for one turn and is never stored.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

import msgspec

from holdfast.bus.log import Log
from holdfast.conversations.errors import unknown_conversation
from holdfast.core.errors import Conflict, HoldfastError, InvalidInput, TooLarge
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

TEMPORARY = "temp:"
MAX_KEY_BYTES = 1000  # keys are part of an index
MAX_KEYS = 10_000  # in one change
MAX_CHANGES = 1000  # per page
NO_VALUE = "23502"  # SQLSTATE: a column that must have a value is null

sql = statements(__name__)


class _Deleted:
    def __repr__(self) -> str:
        return "DELETED"


DELETED: Final = _Deleted()  # as a value: deletes the key


class StateChanged(msgspec.Struct, frozen=True):
    """A change of state: the last node at that time, the new revision, the values set and the keys deleted."""

    seq: int
    revision: int
    at: datetime
    set: dict[str, Any]
    deleted: list[str]


@dataclass(frozen=True, slots=True)
class StateValue:
    """A value and its version."""

    value: Any
    version: int


def changes_of(state: Mapping[str, object] | None) -> dict[str, list[Any]] | None:
    """Return the stored form of a change: [value], or [] for a deleted key. Leaves out temporary keys."""
    if not state:
        return None
    changes = {
        key: [] if value is DELETED else [value] for key, value in state.items() if not key.startswith(TEMPORARY)
    }
    _refuse_large(changes)
    return changes or None


def missing_user_error(error: HoldfastError) -> HoldfastError:
    """Return an error that explains that the conversation has no user, if that is the cause; otherwise `error`."""
    if error.details.get("sqlstate") != NO_VALUE:
        return error
    return InvalidInput(
        "the conversation cannot have state of a user",
        why="it has no user",
        next="Create the conversation with `user=`, or omit the prefix `user:`.",
    )


class State:
    """Reads and changes the state of conversations."""

    def __init__(self, database: Database, log: Log) -> None:
        self._database = database
        self._log = log

    async def get(self, conversation: UUID, *, tx: Transaction | None = None) -> dict[str, Any]:
        """Return the state that a conversation sees: its own, its user's and its app's, each with its prefix."""
        return {name: found.value for name, found in (await self.versions(conversation, tx=tx)).items()}

    async def versions(self, conversation: UUID, *, tx: Transaction | None = None) -> dict[str, StateValue]:
        """Return the same as `get`, each value with its version."""
        run = await self._database.within(tx)
        rows = await run.all(sql("read_state"), conversation)
        if not rows:
            raise unknown_conversation(conversation)
        return {
            restore(row["name"]): StateValue(row["value"], row["version"]) for row in rows if row["name"] is not None
        }

    async def set(
        self,
        conversation: UUID,
        state: Mapping[str, object],
        *,
        expect: Mapping[str, int] | None = None,
        tx: Transaction | None = None,
    ) -> None:
        """Change these keys only. `expect` has the versions that keys must have, 0 for a key that must not exist."""
        changes = changes_of(state)
        _refuse_large(expect or {})
        if any(key.startswith(TEMPORARY) for key in expect or {}):
            raise InvalidInput(
                "temporary keys have no version", next=f"Remove keys that begin with `{TEMPORARY}` from `expect`."
            )
        run = await self._database.within(tx)
        try:
            row = cast(Row, await run.one(sql("set_state"), conversation, changes, dict(expect) if expect else None))
        except HoldfastError as error:
            raise missing_user_error(error) from error
        if row["outcome"] == "missing":
            raise unknown_conversation(conversation)
        if row["outcome"] == "conflict":
            name = restore(row["name"])
            raise Conflict(f"the state {name!r} has changed", expected=row["expects"], current=row["version"], key=name)
        if row["topic"] is not None:
            await self._log.announce(row["topic"], keys=[str(conversation)], tx=tx)

    async def delete(self, conversation: UUID, *keys: str, tx: Transaction | None = None) -> None:
        """Delete keys. A missing key is no error."""
        await self.set(conversation, dict.fromkeys(keys, DELETED), tx=tx)

    async def changes(self, conversation: UUID, *, since: int | None = None, limit: int = 1000) -> list[StateChanged]:
        """Return the changes of state in a conversation, in order; with `since`, those after a revision.

        The changes of its own keys up to a node, folded, are the state that a fork at that node has. A change with a
        node has the revision that the node had when it was appended.
        """
        rows = await self._database.all(sql("all_state_changes"), conversation, -1 if since is None else since, limit)
        return [_state_change(row) for row in rows]

    async def of_user(self, app: str, user: UUID) -> dict[str, Any]:
        """Return the state of a user in an app, the keys without their prefix."""
        rows = await self._database.all(sql("user_state"), store(app), user)
        return {restore(row["key"]): row["value"] for row in rows}


def fold(state: dict[str, Any], changes: Mapping[str, list[Any]] | None) -> None:
    """Apply a stored change to a conversation's own state. Skips keys of the user and the app."""
    for name, value in (changes or {}).items():
        if name.startswith(("app:", "user:")):
            continue
        if value:
            state[name] = value[0]
        else:
            state.pop(name, None)


def _state_change(row: Row) -> StateChanged:
    changes = cast(dict[str, list[Any]], row["state"])
    return StateChanged(
        row["seq"],
        row["revision"],
        row["at"],
        {name: value[0] for name, value in changes.items() if value},
        [name for name, value in changes.items() if not value],
    )


def _refuse_large(keys: Collection[str]) -> None:
    if len(keys) > MAX_KEYS or any(len(key) * 4 > MAX_KEY_BYTES and _is_long(key) for key in keys):
        raise TooLarge(
            "the state change is too large",
            why=f"it has more than {MAX_KEYS} keys, or a key of more than {MAX_KEY_BYTES} bytes",
            next="Make several smaller changes, and put long texts into values.",
        )


def _is_long(key: str) -> bool:
    return len(key.encode(errors="surrogatepass")) > MAX_KEY_BYTES
