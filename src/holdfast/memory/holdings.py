"""Holdings: who has memories, and how many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.memory.memory import owner_ids
from holdfast.memory.owners import Owner, Owners, Scope
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

COUNTED = 10_000  # memories of an owner, at most
FIRST = UUID(int=0)

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Holding:
    """An owner who has memories; `owner.agent` and `owner.user` are those of the newest.

    `count`: those that are neither superseded nor expired nor buried, of at most `COUNTED`. `newest`: when the newest
    was made, whatever became of it.
    """

    owner: Owner
    count: int
    newest: datetime


async def holdings(database: Database, owners: Owners, scope: Scope, asked: Sequence[str | Owner]) -> list[Holding]:
    """What these owners of a scope have, in their order; who has nothing is left out."""
    named = [Owner(scope, each) if isinstance(each, str) else each for each in asked]
    ids = {(await owners.sought(each)).id: each.name for each in named}
    held = await _held(database, owners, scope, [*ids])
    return [replace(holding, owner=replace(holding.owner, name=ids[id])) for id, holding in held]


async def holders(database: Database, owners: Owners, scope: Scope, *, limit: int, cursor: str | None) -> Page[Holding]:
    """All in a scope who have memories, page by page."""
    if scope == "session":  # none keeps more than a few, so that the newest memories are those of many
        before, _ = read_cursor(cursor)
        rows = await database.all(sql("newest_sessions"), before, limit + 1)
    else:
        behind = FIRST if cursor is None else read_cursor(cursor)[0]
        rows = await database.all(sql("owners"), scope, behind, limit + 1)
    held = await _held(database, owners, scope, [row["owner"] for row in rows[:limit]])
    return Page([holding for _, holding in held], write_cursor(rows[limit - 1]["place"]) if len(rows) > limit else None)


async def _held(database: Database, owners: Owners, scope: Scope, ids: Sequence[UUID]) -> list[tuple[UUID, Holding]]:
    rows = await database.all(sql("holdings"), scope, ids, COUNTED)
    named = await owners.named([owner_ids(row) for row in rows])
    return [
        (row["owner"], Holding(owner, row["memories"], row["newest"])) for row, owner in zip(rows, named, strict=True)
    ]
