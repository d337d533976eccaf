"""State: values under names, for a conversation, for its user, or for everyone who uses its app.

A name's prefix says for whom: `user:theme`, `app:greeting`; without one it is the conversation's own. `temp:` is for
the time of a turn, and is never stored.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import msgspec

from holdfast.bus.log import Log
from holdfast.conversations.refusals import unknown
from holdfast.core.errors import Conflict, HoldfastError, InvalidInput, TooLarge
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

TEMPORARY = "temp:"
MAX_KEY_BYTES = 1000  # keys are part of an index
MAX_KEYS = 10_000  # in one change
MAX_CHANGES = 1000  # that are told at once
NO_VALUE = "23502"  # SQLSTATE: something that must be there is null

sql = statements(__name__)


class _Deleted:
    def __repr__(self) -> str:
        return "DELETED"


DELETED: Final = _Deleted()  # as a value: the key goes


class StateChanged(msgspec.Struct, frozen=True):
    """A change of state: the last node when it was made, the revision it made, what it set and what it deleted."""

    seq: int
    revision: int
    at: datetime
    set: dict[str, Any]
    deleted: list[str]


class StateValue(NamedTuple):
    """A value and its version."""

    value: Any
    version: int


def changes_of(state: Mapping[str, object] | None) -> dict[str, list[Any]] | None:
    """What is stored of a change: each value in brackets, empty where a key goes; nothing of what is temporary."""
    if not state:
        return None
    changes = {
        key: [] if value is DELETED else [value] for key, value in state.items() if not key.startswith(TEMPORARY)
    }
    _refuse_large(changes)
    return changes or None


def without_user(error: HoldfastError) -> HoldfastError:
    """What to say when state could not be stored: that there is no user it could be kept for, if that is why."""
    if error.details.get("sqlstate") != NO_VALUE:
        return error
    return InvalidInput(
        "the state of a user cannot be kept here",
        why="the conversation belongs to no user",
        next="Create it with `user=`, or leave out the prefix `user:`.",
    )


class State:
    """Reads and changes the state of conversations."""

    def __init__(self, database: Database, log: Log) -> None:
        self._database = database
        self._log = log

    async def get(self, conversation: UUID, *, tx: Transaction | None = None) -> dict[str, Any]:
        """Everything a conversation sees: its own state, its user's and its app's, each under its prefix."""
        return {name: found.value for name, found in (await self.versions(conversation, tx=tx)).items()}

    async def versions(self, conversation: UUID, *, tx: Transaction | None = None) -> dict[str, StateValue]:
        """The same, each value with its version."""
        run = await self._database.within(tx)
        rows = await run.all(sql("read_state"), conversation)
        if not rows:
            raise unknown(conversation)
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
        """Change these keys and no others; `expect`: versions that keys must have, 0 where one must not be there."""
        changes = changes_of(state)
        _refuse_large(expect or {})
        if any(key.startswith(TEMPORARY) for key in expect or {}):
            raise InvalidInput("what is temporary has no version", next=f"Expect nothing of keys with `{TEMPORARY}`.")
        run = await self._database.within(tx)
        try:
            row = cast(Row, await run.one(sql("set_state"), conversation, changes, dict(expect) if expect else None))
        except HoldfastError as error:
            raise without_user(error) from error
        if row["outcome"] == "missing":
            raise unknown(conversation)
        if row["outcome"] == "conflict":
            name = restore(row["name"])
            raise Conflict(f"the state {name!r} has changed", expected=row["expects"], current=row["version"], key=name)
        if row["topic"] is not None:
            await self._log.announce(row["topic"], keys=[str(conversation)], tx=tx)

    async def delete(self, conversation: UUID, *keys: str, tx: Transaction | None = None) -> None:
        """Delete keys; one that is not there is no error."""
        await self.set(conversation, dict.fromkeys(keys, DELETED), tx=tx)

    async def changes(self, conversation: UUID, *, since: int | None = None, limit: int = 1000) -> list[StateChanged]:
        """Changes that were made in a conversation, in their order, or those after a revision.

        Folded up to a node, those of its own keys are the state that a fork there has. A change that came with a node
        has the revision that the node had at first.
        """
        rows = await self._database.all(sql("all_state_changes"), conversation, -1 if since is None else since, limit)
        return [_changed(row) for row in rows]

    async def of_user(self, app: str, user: UUID) -> dict[str, Any]:
        """What an app keeps for a user, the names without their prefix."""
        rows = await self._database.all(sql("user_state"), store(app), user)
        return {restore(row["key"]): row["value"] for row in rows}


def fold(state: dict[str, Any], changes: Mapping[str, list[Any]] | None) -> None:
    """Make a stored change in a conversation's own state; what is the user's and the app's is left out."""
    for name, value in (changes or {}).items():
        if name.startswith(("app:", "user:")):
            continue
        if value:
            state[name] = value[0]
        else:
            state.pop(name, None)


def _changed(row: Row) -> StateChanged:
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
            "the change of state is too large",
            why=f"it has more than {MAX_KEYS} keys, or one of more than {MAX_KEY_BYTES} bytes",
            next="Change it in parts; put long texts into values.",
        )


def _is_long(key: str) -> bool:
    return len(key.encode(errors="surrogatepass")) > MAX_KEY_BYTES
