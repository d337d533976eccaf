"""Deletes entities that nothing names any more.

Usually, they go with the last memory that names them. Left are those whose document was deleted by plain SQL, and those
that another transaction was using at that moment. Until they are deleted, no search shows them.
"""

from uuid import UUID

from holdfast.core.background import PeriodicJob
from holdfast.postgres.database import Database, Postgres
from holdfast.postgres.each_tenant import for_each_tenant
from holdfast.postgres.sql import statements

NAME = "deletion of entities without a name"
FIRST = 120.0  # seconds
EVERY = 3600.0
TOGETHER = 5000  # entities that are looked at in one statement

sql = statements(__name__)


class EntitySweeper(PeriodicJob):
    """Looks for them in all tenants at regular intervals."""

    def __init__(self, postgres: Postgres) -> None:
        super().__init__(NAME, pause=EVERY, first=FIRST)
        self._postgres = postgres

    async def step(self) -> None:
        """Delete them."""
        await self.delete()

    async def delete(self) -> int:
        """Delete them in all tenants, and return how many."""
        tenants = await self._postgres.system.all(sql("tenants_to_read"))
        return await for_each_tenant(self._postgres, tenants, _delete, name=NAME)


async def _delete(database: Database) -> int:
    after, deleted = UUID(int=0), 0
    while True:
        row = await database.one(sql("delete_unnamed"), after, TOGETHER)
        if row is None or row["last"] is None:
            return deleted
        after = row["last"]
        deleted += row["deleted"]
