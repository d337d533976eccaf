import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from holdfast.core.errors import Forbidden
from holdfast.postgres.database import Database, Postgres

pytestmark = pytest.mark.req("ENG-04", "SAFE-02")

TASKS = 12
CONNECTIONS = 4
IDS = 20  # of each task; few, so that rows are found again

PUT = (
    "insert into item (tenant_id, id, value) values ($1, $2, $3) "
    "on conflict (tenant_id, id) do update set value = excluded.value"
)
REMOVE = "delete from item where tenant_id = $1 and id = $2"
FIND = "select value from item where tenant_id = $1 and id = $2"
# Without naming a tenant: row-level security alone stands between the tenants here.
EVERYTHING = "select tenant_id, value from item where $1::uuid is not null"
TOUCH = "update item set value = value where id = $2 and $1::uuid is not null"
FORGE = "insert into item (tenant_id, id) select $2, $3 where $1::uuid is not null"


class Undone(Exception):
    """Raised to roll a transaction back."""


class Worker:
    """Does random things for one tenant, and remembers what must be there afterwards."""

    def __init__(
        self, number: int, database: Database, tenant: UUID, others: list[UUID], chance: random.Random
    ) -> None:
        self.tenant = tenant
        self.expected: dict[int, str] = {}
        self._ids = range(number * IDS, (number + 1) * IDS)
        self._database = database
        self._others = others
        self._chance = chance
        self._writes = 0
        self._ways: list[Callable[[], Awaitable[None]]] = [
            self.put, self.put, self.remove, self.find, self.look_around, self.touch, self.forge,
            self.commit, self.roll_back, self.cancel_a_write, self.cancel_a_transaction,
        ]  # fmt: skip

    async def work(self, operations: int) -> None:
        for _ in range(operations):
            await self._chance.choice(self._ways)()

    async def put(self) -> None:
        id, value = self._next()
        await self._database.run(PUT, id, value)
        self.expected[id] = value

    async def remove(self) -> None:
        id = self._chance.choice(self._ids)
        removed = await self._database.run(REMOVE, id)
        assert removed == (id in self.expected)
        self.expected.pop(id, None)

    async def find(self) -> None:
        id = self._chance.choice(self._ids)
        assert await self._database.value(FIND, id) == self.expected.get(id)

    async def look_around(self) -> None:
        for row in await self._database.all(EVERYTHING):
            assert row["tenant_id"] == self.tenant
            assert row["value"].startswith(str(self.tenant))

    async def touch(self) -> None:
        id = self._chance.choice(self._ids)
        assert await self._database.run(TOUCH, id) == (id in self.expected)

    async def forge(self) -> None:
        with pytest.raises(Forbidden):
            await self._database.run(FORGE, self._chance.choice(self._others), self._chance.choice(self._ids))

    async def commit(self) -> None:
        written = dict(self._next() for _ in range(3))
        async with self._database.transaction() as tx:
            await tx.many(PUT, list(written.items()))
        self.expected |= written

    async def roll_back(self) -> None:
        with pytest.raises(Undone):
            await self._write_and(self._undo)

    async def cancel_a_write(self) -> None:
        id, value = self._next()
        await self._cancelled(self._database.run(PUT, id, value))
        found = await self._database.value(FIND, id)  # whether it was written in time is not known
        assert found in (value, self.expected.get(id))
        if found is not None:
            self.expected[id] = found

    async def cancel_a_transaction(self) -> None:
        forever: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._cancelled(self._write_and(lambda: forever))

    async def _write_and(self, then: Callable[[], Awaitable[None]]) -> None:
        async with self._database.transaction() as tx:
            await tx.run(PUT, *self._next())
            await then()

    async def _undo(self) -> None:
        raise Undone

    async def _cancelled(self, work: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(work)
        await asyncio.wait([task], timeout=self._chance.uniform(0, 0.003))
        task.cancel()
        await asyncio.wait([task])

    def _next(self) -> tuple[int, str]:
        self._writes += 1
        return self._chance.choice(self._ids), f"{self.tenant} {self._writes}"


@pytest.mark.parametrize("tenancy", ["connection", "transaction"])
@pytest.mark.parametrize("operations", [5_000, pytest.param(50_000, marks=pytest.mark.soak)])
async def test_tenants_on_shared_connections_never_meet_whatever_they_do(
    three: list[Database], open_postgres: Callable[..., Postgres], operations: int
) -> None:
    seed = random.randrange(1_000_000)
    chance = random.Random(seed)
    postgres = open_postgres(pool_size=CONNECTIONS, acquire_timeout=60)
    ids = [await database.tenant() for database in three]
    workers = [
        Worker(number, postgres.tenant(tenant), tenant, [other for other in ids if other != tenant], chance)
        for number, tenant in enumerate(ids * (TASKS // 3))
    ]
    try:
        async with asyncio.timeout(operations / 50), asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(worker.work(operations // TASKS))

        async with postgres.owner() as owner:
            rows = await owner.all("select tenant_id, id, value from item")
        found = {(row["tenant_id"], row["id"]): row["value"] for row in rows}
        expected = {(worker.tenant, id): value for worker in workers for id, value in worker.expected.items()}
        assert found == expected
    except BaseException as error:
        error.add_note(f"the seed was {seed}")
        raise
