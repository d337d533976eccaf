"""The server's own view of its connections, for tests that wait for one to do something."""

import asyncio

from holdfast.postgres.database import OwnerConnection, Statements

WAITING = 10  # seconds until a test that waits for the server fails
OTHERS = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


class Backends:
    """The connections to the test's database, but for the one that asks."""

    def __init__(self, owner: OwnerConnection) -> None:
        self._owner = owner

    async def count(self, condition: str) -> int:
        """How many meet a condition on `pg_stat_activity`."""
        return int(await self._owner.value(f"select count(*) {OTHERS} and {condition}"))

    async def until(self, condition: str, count: int = 1) -> None:
        """Wait until this many meet a condition."""
        async with asyncio.timeout(WAITING):
            while await self.count(condition) != count:
                pass

    async def pids(self, condition: str = "backend_type = 'client backend'") -> list[int]:
        """The numbers of those that meet a condition."""
        return [row["pid"] for row in await self._owner.all(f"select pid {OTHERS} and {condition}")]

    async def end(self, condition: str = "backend_type = 'client backend'") -> int:
        """End those that meet a condition, as an administrator would; wait until they are gone."""
        pids = await self.pids(condition)
        for pid in pids:
            await self._owner.value("select pg_terminate_backend($1)", pid)
        await self.until(f"pid in ({', '.join(map(str, pids)) or 'null'})", 0)
        return len(pids)


async def backend(statements: Statements) -> int:
    """The pid of the backend that serves these statements now."""
    return int(await statements.value("select pg_backend_pid() where $1::uuid is not null"))
