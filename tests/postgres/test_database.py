import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from holdfast.core.errors import AlreadyExists, Broken, InvalidInput, NotFound, Overloaded, TimedOut
from holdfast.core.ids import TenantId
from holdfast.engine import Engine
from holdfast.postgres.database import TRIES, Database, Postgres, Transaction
from tests.postgres.backends import Backends, backend

pytestmark = pytest.mark.parametrize("tenancy", ["connection", "transaction"])

INSERT = "insert into item (tenant_id, id, value) values ($1, $2, $3)"
READ = "select id, value from item where tenant_id = $1 order by id"
COUNT = "select count(*) from item where tenant_id = $1"
VALUE = "select value from item where tenant_id = $1 and id = $2"
ADD = "update item set value = to_jsonb(value::int + 1) where tenant_id = $1 and id = $2"
SLEEP = "select pg_sleep(60) where $1::uuid is not null"


async def test_each_method_gives_what_its_name_says(database: Database) -> None:
    written = await database.run(INSERT, 1, "one")
    await database.many(INSERT, [(2, "two"), (3, None)])

    rows = await database.all(READ)
    first = await database.one(READ)
    nothing = await database.one(READ.replace("order", "and id > 3 order"))

    assert written == 1
    assert [tuple(row) for row in rows] == [(1, "one"), (2, "two"), (3, None)]
    assert first is not None
    assert first["value"] == "one"
    assert nothing is None
    assert await database.value(COUNT) == 3
    assert await database.value(VALUE, 9) is None
    assert await database.run("update item set value = null where tenant_id = $1") == 3
    assert await database.run("delete from item where tenant_id = $1 and id < 3") == 2


async def test_the_first_parameter_of_every_statement_is_the_tenant(engine: Engine, database: Database) -> None:
    tenant = (await engine.tenants.find("default")).id
    await database.many(INSERT, [(1, None)])

    async with database.transaction() as tx:
        seen = [await database.value("select $1::uuid"), await tx.value("select $1::uuid")]
        await tx.many(INSERT, [(2, None)])

    assert seen == [tenant, tenant]
    assert await database.tenant() == tenant
    assert [row[0] for row in await database.all("select tenant_id from item where tenant_id = $1")] == [tenant] * 2


async def test_many_rows_are_written_all_or_none(database: Database) -> None:
    with pytest.raises(AlreadyExists):
        await database.many(INSERT, [(1, None), (2, None), (1, None)])

    assert await database.value(COUNT) == 0


@pytest.mark.req("ENG-04")
async def test_a_tenant_that_does_not_exist_is_an_error_at_its_first_use(engine: Engine, items: None) -> None:
    uses: list[Callable[[Database], Awaitable[object]]] = [
        lambda database: database.value(COUNT),
        lambda database: database.many(INSERT, [(1, None)]),
        lambda database: database.transaction().__aenter__(),
    ]
    for tenant in ("nobody", "\0", "\ud800", TenantId(uuid4())):
        for use in uses:
            with pytest.raises(NotFound, match=r"the tenant .* does not exist"):
                await use(engine.tenant(tenant).database)


async def test_a_transaction_takes_effect_as_a_whole_when_it_ends(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.run(INSERT, 1, None)
        await tx.run(INSERT, 2, None)
        seen_inside, seen_outside = await tx.value(COUNT), await database.value(COUNT)

    assert (seen_inside, seen_outside) == (2, 0)
    assert await database.value(COUNT) == 2


async def test_a_transaction_that_fails_leaves_no_trace(database: Database, backends: Backends) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - a transaction is several statements
        async with database.transaction() as tx:
            await tx.run(INSERT, 1, None)
            raise ZeroDivisionError

    assert await database.value(COUNT) == 0
    assert await backends.count("state like 'idle in transaction%'") == 0


async def test_a_failure_that_was_swallowed_is_told_when_the_transaction_ends(database: Database) -> None:
    with pytest.raises(Broken, match="rolled back"):  # noqa: PT012 - a transaction is several statements
        async with database.transaction() as tx:
            await tx.run(INSERT, 1, None)
            with pytest.raises(AlreadyExists):
                await tx.run(INSERT, 1, None)

    assert await database.value(COUNT) == 0


async def test_what_fails_inside_a_savepoint_does_not_fail_the_whole(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.run(INSERT, 1, None)
        with pytest.raises(AlreadyExists):  # noqa: PT012 - a transaction is several statements
            async with tx.savepoint():
                await tx.run(INSERT, 2, None)
                async with tx.savepoint():
                    await tx.run(INSERT, 1, None)
        async with tx.savepoint():
            await tx.run(INSERT, 3, None)

    assert [row["id"] for row in await database.all(READ)] == [1, 3]


@pytest.mark.req("SAFE-02")
async def test_a_transaction_that_has_ended_takes_no_more_statements(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.run(INSERT, 1, None)

    with pytest.raises(Broken, match="has ended"):
        await tx.run(INSERT, 2, None)

    assert await database.value(COUNT) == 1


async def test_two_transactions_in_a_deadlock_both_succeed(database: Database) -> None:
    await database.many(INSERT, [(1, 0), (2, 0)])
    both_have_one = asyncio.Barrier(2)
    tries: list[int] = []

    async def add_to(first: int, second: int) -> None:
        async def work(tx: Transaction) -> None:
            tries.append(first)
            await tx.run(ADD, first)
            if len(tries) <= 2:
                await both_have_one.wait()
            await tx.run(ADD, second)

        await database.atomically(work)

    async with asyncio.timeout(20):
        await asyncio.gather(add_to(1, 2), add_to(2, 1))

    assert [row["value"] for row in await database.all(READ)] == [2, 2]
    assert len(tries) >= 3  # who tries again may be quicker than who waits, and meet it once more


async def test_a_transaction_that_lost_a_race_runs_again(database: Database) -> None:
    await database.run(INSERT, 1, 0)
    both_have_read = asyncio.Barrier(2)
    tries: list[int] = []

    async def work(tx: Transaction) -> int:
        tries.append(1)
        found = await tx.value(VALUE, 1)
        if len(tries) <= 2:
            await both_have_read.wait()
        await tx.run("update item set value = $3 where tenant_id = $1 and id = $2", 1, found + 1)
        return found

    async with asyncio.timeout(20):
        found = await asyncio.gather(*(database.atomically(work, isolation="serializable") for _ in range(2)))

    assert sorted(found) == [0, 1]
    assert await database.value(VALUE, 1) == 2
    assert len(tries) == 3


async def test_a_transaction_that_loses_every_race_gives_up_and_says_so(database: Database) -> None:
    await database.run(INSERT, 1, 0)
    tries: list[int] = []

    async def work(tx: Transaction) -> None:
        tries.append(1)
        await tx.value(VALUE, 1)
        await database.run(ADD, 1)
        await tx.run(ADD, 1)

    with pytest.raises(Overloaded, match="repeatedly changed the same rows") as gave_up:
        await database.atomically(work, isolation="repeatable read")

    assert len(tries) == TRIES
    assert gave_up.value.retry_after > 0
    assert await database.value(VALUE, 1) == TRIES


async def test_a_second_try_may_have_second_tries_inside(database: Database) -> None:
    await database.run(INSERT, 1, 0)
    losses = {"outer": 1, "inner": 1}

    def lose(who: str) -> None:
        losses[who] -= 1
        if losses[who] >= 0:
            raise Overloaded("lost", retry_after=1, sqlstate="40P01")

    async def inner(tx: Transaction) -> None:
        lose("inner")
        await tx.run(ADD, 1)

    async def outer(_: Transaction) -> None:
        lose("outer")
        await database.atomically(inner)

    async with asyncio.timeout(5):
        await database.atomically(outer)

    assert await database.value(VALUE, 1) == 1


async def test_a_single_statement_that_lost_a_race_runs_again(
    engine: Engine, database: Database, backends: Backends
) -> None:
    await database.run(INSERT, 1, 0)
    async with engine.postgres.owner() as owner:
        name = await owner.value("select current_database()")
        await owner.script(f"alter database {name} set default_transaction_isolation = 'repeatable read'")
    engine.postgres.clear()

    async with database.transaction() as tx:
        await tx.run(ADD, 1)
        other = asyncio.create_task(database.run(ADD, 1))
        await backends.until("wait_event_type = 'Lock'")

    assert await other == 1
    assert await database.value(VALUE, 1) == 2


async def test_a_cancelled_statement_stops_and_leaves_its_connection_usable(
    database: Database, backends: Backends
) -> None:
    pid = await backend(database)
    task = asyncio.create_task(database.value(SLEEP))
    await backends.until("wait_event = 'PgSleep'")

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await backend(database) == pid
    assert await backends.count("wait_event = 'PgSleep' or state like 'idle in transaction%'") == 0


async def test_what_a_cancelled_statement_does_it_does_before_its_caller_goes_on(
    database: Database, backends: Backends
) -> None:
    for pause in (0.0, 0.0001, 0.001, 0.01):
        task = asyncio.create_task(database.value(SLEEP))
        await asyncio.sleep(pause)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await backends.count("state = 'active' and query like '%pg_sleep%'") == 0


async def test_a_cancelled_transaction_is_rolled_back_and_leaves_its_connection_usable(
    database: Database, backends: Backends
) -> None:
    pid = await backend(database)

    async def write_and_sleep() -> None:
        async with database.transaction() as tx:
            await tx.run(INSERT, 1, None)
            await tx.value(SLEEP)

    task = asyncio.create_task(write_and_sleep())
    await backends.until("wait_event = 'PgSleep'")

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await backend(database) == pid
    assert await database.value(COUNT) == 0
    assert await backends.count("state like 'idle in transaction%'") == 0


async def test_a_statement_that_takes_too_long_is_stopped_and_its_connection_stays_usable(
    open_postgres: Callable[..., Postgres], database: Database, backends: Backends
) -> None:
    hasty = open_postgres(statement_timeout=0.3, pool_size=1).tenant(await database.tenant())
    pid = await backend(hasty)

    with pytest.raises(TimedOut, match="took too long"):
        await hasty.value(SLEEP)
    with pytest.raises(TimedOut):  # noqa: PT012 - a transaction is several statements
        async with hasty.transaction() as tx:
            await tx.run(INSERT, 1, None)
            await tx.value(SLEEP)

    assert await hasty.value(COUNT) == 0
    assert await backend(hasty) == pid
    assert await backends.count("wait_event = 'PgSleep'") == 0


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
async def test_text_that_no_column_can_hold_is_refused_and_the_connection_stays_usable(
    database: Database, text: str
) -> None:
    pid = await backend(database)

    with pytest.raises(InvalidInput, match="cannot store this value"):
        await database.value("select $2::text where $1::uuid is not null", text)
    async with database.transaction() as tx:
        with pytest.raises(InvalidInput):
            async with tx.savepoint():
                await tx.value("select $2::text where $1::uuid is not null", text)
        await tx.run(INSERT, 1, None)

    assert await backend(database) == pid
    assert await database.value(COUNT) == 1
