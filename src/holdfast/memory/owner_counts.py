"""Holdings: the owners of memories, and how many each has."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.memory.memory import owner_ids
from holdfast.memory.owners import Owner, Owners, Scope
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

COUNTED = 10_000  # maximum count per owner
FIRST = UUID(int=0)

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class OwnerMemories:
    """An owner that has memories. `owner.agent` and `owner.user` are those of its newest memory.

    `count`: memories that are not superseded, expired or buried, counted up to `COUNTED`. `newest`: when the newest
    memory was created, in any state.
    """

    owner: Owner
    count: int
    newest: datetime


async def count_by_owner(
    database: Database, owners: Owners, scope: Scope, names: Sequence[str | Owner]
) -> list[OwnerMemories]:
    """Return the holdings of these owners of a scope, in their order, without owners that have no memories."""
    with_scope = [Owner(scope, each) if isinstance(each, str) else each for each in names]
    ids = {(await owners.find_ids(each)).id: each.name for each in with_scope}
    counts = await _counts(database, owners, scope, [*ids])
    return [replace(count, owner=replace(count.owner, name=ids[id])) for id, count in counts]


async def list_owners(
    database: Database, owners: Owners, scope: Scope, *, limit: int, cursor: str | None
) -> Page[OwnerMemories]:
    """Return a page of the owners that have memories in a scope."""
    if scope == "session":  # a session has few memories, so the newest memories are of many sessions
        before, _ = read_cursor(cursor)
        rows = await database.all(sql("newest_sessions"), before, limit + 1)
    else:
        after = FIRST if cursor is None else read_cursor(cursor)[0]
        rows = await database.all(sql("owners"), scope, after, limit + 1)
    counts = await _counts(database, owners, scope, [row["owner"] for row in rows[:limit]])
    return Page([count for _, count in counts], write_cursor(rows[limit - 1]["place"]) if len(rows) > limit else None)


async def _counts(
    database: Database, owners: Owners, scope: Scope, ids: Sequence[UUID]
) -> list[tuple[UUID, OwnerMemories]]:
    rows = await database.all(sql("count_by_owner"), scope, ids, COUNTED)
    resolved = await owners.from_ids([owner_ids(row) for row in rows])
    return [
        (row["owner"], OwnerMemories(owner, row["memories"], row["newest"]))
        for row, owner in zip(rows, resolved, strict=True)
    ]
