"""Notes: one Markdown document per user and agent, which the agent edits and sees in its prompt at every turn.

Concurrent edits wait for each other, so none is lost. Every version is kept and can be restored.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from holdfast.access.identities import Identities
from holdfast.conversations.sections import delete_section, join_texts, replace_section
from holdfast.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from holdfast.core.names import stored_name
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row, Statements, Transaction
from holdfast.postgres.sql import statements

Change = Literal[
    "overwrite", "append", "prepend", "delete_section_by_header", "replace_section_by_header", "delete_all_notes"
]
Operation = Literal["read", Change]

MAX_NOTES_BYTES = 64 * 1024  # they are part of every prompt
MAX_REVISIONS = 100  # per page

sql = statements(__name__)

OF_SECTIONS = ("delete_section_by_header", "replace_section_by_header")
WITH_CONTENT = ("overwrite", "append", "prepend", "replace_section_by_header")


@dataclass(frozen=True, slots=True)
class Note:
    """The notes of an agent about a user. Version 0 means that there are none yet."""

    user: str
    agent: str
    notes: str
    version: int
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class NoteRevision:
    """A version of the notes, and the operation that created it."""

    version: int
    operation: str
    notes: str
    created_at: datetime


class Notes:
    """Reads and edits notes."""

    def __init__(self, database: Database, identities: Identities) -> None:
        self._database = database
        self._identities = identities

    async def read(self, *, user: str, agent: str, tx: Transaction | None = None) -> Note:
        """Return the notes of `agent` about `user`."""
        user_id = await self._identities.find_id("user", user)
        run = await self._database.within(tx)
        row = await run.one(sql("read_notes"), user_id, stored_name("agent", agent))
        return _note(row, user, agent)

    async def edit(
        self,
        *,
        user: str,
        agent: str,
        operation: Operation = "append",
        content: str | None = None,
        section_header: str | None = None,
        version: int | None = None,
        key: str | None = None,
        tx: Transaction | None = None,
    ) -> Note:
        """Edit the notes, and return the current version.

        With `version`, raise Conflict if it is not the current one. An edit that changes nothing creates no version.
        `key` is an idempotency key: a second edit with the same key changes nothing.
        """
        check_arguments(operation, content=content, section_header=section_header)
        if operation == "read":
            note = await self.read(user=user, agent=agent, tx=tx)
            _refuse_stale(note, version)
            return note

        def change(notes: str) -> str:
            return apply_operation(notes, operation, content=content or "", section_header=section_header or "")

        return await self._write(user, agent, operation, change, version, tx, key=key)

    async def revisions(
        self, *, user: str, agent: str, limit: int = MAX_REVISIONS, before: int | None = None
    ) -> list[NoteRevision]:
        """Return the versions of the notes, newest first; with `before`, those before a version."""
        if not 0 < limit <= MAX_REVISIONS:
            raise InvalidInput(f"the limit {limit} is out of range", next=f"Use 1 to {MAX_REVISIONS}.")
        before = None if before is None else max(0, min(before, 2**31 - 1))
        user_id = await self._identities.find_id("user", user)
        rows = await self._database.all(sql("notes_revisions"), user_id, stored_name("agent", agent), before, limit)
        return [_revision(row) for row in rows]

    async def restore(
        self, *, user: str, agent: str, revision: int, version: int | None = None, tx: Transaction | None = None
    ) -> Note:
        """Restore a former version, as a new version."""
        current = (await self.read(user=user, agent=agent, tx=tx)).version
        if not 0 < revision <= current:
            raise NotFound(
                f"the notes have no revision {revision}",
                why=f"the revisions are 1 to {current}" if current else "no notes have been written yet",
                next="List the revisions.",
                current=current,
            )
        user_id = await self._identities.find_id("user", user)
        run = await self._database.within(tx)
        former = restore(await run.value(sql("notes_revision"), user_id, stored_name("agent", agent), revision))
        return await self._write(user, agent, "restore", lambda _: former, version, tx)

    async def _write(
        self,
        user: str,
        agent: str,
        operation: str,
        change: Callable[[str], str],
        version: int | None,
        tx: Transaction | None,
        *,
        key: str | None = None,
    ) -> Note:
        agent_name = stored_name("agent", agent)
        stored_key = None if key is None else stored_name("key", key)
        # Before our own transaction: a transaction that needs a second connection could wait for itself.
        user_id = await self._identities.id("user", user, tx=tx)

        async def work(run: Statements) -> Note:
            while True:
                note = _note(await run.one(sql("lock_notes"), user_id, agent_name), user, agent)
                # If there is no row to lock yet, another writer may create the first version: then repeat this.
                known = stored_key is not None and note.version > 0
                if known and await run.value(sql("notes_by_key"), user_id, agent_name, stored_key):
                    return note
                _refuse_stale(note, version)
                # Malicious Markdown can take a second to parse, so parse in a thread: the event loop must not wait.
                notes = await asyncio.to_thread(change, note.notes)
                if notes == note.notes:
                    return note
                stored = _encode_notes(notes)
                row = await run.one(
                    sql("write_notes"), user_id, agent_name, stored, note.version + 1, operation, stored_key
                )
                if row is not None:
                    return _note(row, user, agent)

        return await (self._database.atomically(work) if tx is None else work(await self._database.within(tx)))


def check_arguments(operation: str, *, content: str | None, section_header: str | None) -> None:
    """Raise an error if the operation is unknown, or an argument is missing, superfluous or too large."""
    if operation not in get_args(Operation):
        raise InvalidInput(
            f"there is no operation {operation[:80]!r}", next=f"The operations are {', '.join(get_args(Operation))}."
        )
    for name, value, operations in (
        ("content", content, WITH_CONTENT),
        ("section_header", section_header, OF_SECTIONS),
    ):
        if value is None and operation in operations:
            raise InvalidInput(f"{operation} requires {name}", why="it is missing", next=f"Pass {name}.", argument=name)
        if value is not None and operation not in operations:
            raise InvalidInput(
                f"{operation} does not take {name}",
                why=f"only {', '.join(operations)} take it",
                next=f"Omit {name}, or use one of these operations.",
                argument=name,
            )
        if value is not None:
            _encode_notes(value)


def apply_operation(notes: str, operation: Operation, *, content: str, section_header: str) -> str:
    """Return the notes after an operation."""
    match operation:
        case "read":
            return notes
        case "overwrite":
            return content
        case "append":
            return join_texts(notes, content)
        case "prepend":
            return join_texts(content, notes)
        case "delete_section_by_header":
            return delete_section(notes, section_header)
        case "replace_section_by_header":
            return replace_section(notes, section_header, content)
        case "delete_all_notes":
            return ""


def _refuse_stale(note: Note, version: int | None) -> None:
    if version is not None and version != note.version:
        raise Conflict("the notes have changed", expected=version, current=note.version)


def _encode_notes(notes: str) -> str:
    stored = store(notes)
    size = len(stored.encode())
    if size > MAX_NOTES_BYTES:
        raise TooLarge(
            "the notes would be too large",
            why=f"they would have {size} bytes; the limit is {MAX_NOTES_BYTES}",
            next="Shorten them, or delete sections that are no longer needed.",
            size=size,
            limit=MAX_NOTES_BYTES,
        )
    return stored


def _note(row: Row | None, user: str, agent: str) -> Note:
    if row is None:
        return Note(user, agent, "", 0, None)
    return Note(user, agent, restore(row["notes"]), row["version"], row["updated_at"])


def _revision(row: Row) -> NoteRevision:
    return NoteRevision(row["version"], row["operation"], restore(row["notes"]), row["created_at"])
