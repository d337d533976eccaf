import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from holdfast.core.errors import Overloaded, TimedOut, Unavailable
from holdfast.core.shares import set_holder
from holdfast.postgres.database import BIND, Database, Postgres
from tests.postgres.backends import Backends, backend

both_modes = pytest.mark.parametrize("tenancy", ["connection", "transaction"])

Opens = Callable[..., Postgres]
WORK = "select pg_sleep(0.001) where $1::uuid is not null"


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every tenant that a connection was bound to, in order."""
    bound: list[str] = []
    connection_class: Any = asyncpg.Connection
    execute = connection_class.execute

    def counting(connection: Any, query: str, *args: Any, **options: Any) -> Any:
        if query == BIND:
            bound.append(args[0])
        return execute(connection, query, *args, **options)

    monkeypatch.setattr(connection_class, "execute", counting)
    return bound


async def test_a_tenant_gets_the_connection_it_had_without_saying_again_who_it_is(
    three: list[Database], bindings: list[str]
) -> None:
    ann, bob, _ = three
    first = [await backend(ann), await backend(bob)]

    for _ in range(5):
        assert [await backend(ann), await backend(bob)] == first

    assert bindings == [str(await ann.tenant()), str(await bob.tenant())]


async def test_a_connection_changes_hands_when_all_are_taken_the_one_idle_longest_first(
    three: list[Database], open_postgres: Opens
) -> None:
    postgres = open_postgres(pool_size=2)
    ann, bob, cid = [postgres.tenant(await one.tenant()) for one in three]
    anns, bobs = await backend(ann), await backend(bob)
    await backend(ann)

    cids = await backend(cid)

    assert anns != bobs
    assert cids == bobs
    assert await backend(ann) == anns


@both_modes
async def test_there_are_never_more_connections_than_the_pool_may_have(
    three: list[Database], open_postgres: Opens
) -> None:
    postgres = open_postgres(pool_size=3)
    tenants = [postgres.tenant(await one.tenant()) for one in three]
    used: set[int] = set()

    async def work(number: int) -> None:
        database = tenants[number % 3]
        async with database.transaction() as tx:
            used.add(await backend(tx))
        await database.value(WORK)
        used.add(await backend(database))

    async with asyncio.timeout(30):
        await asyncio.gather(*(work(number) for number in range(200)))

    assert len(used) == 3


@both_modes
async def test_who_waits_too_long_for_a_connection_is_told_to_come_back(
    database: Database, open_postgres: Opens
) -> None:
    narrow = open_postgres(pool_size=1, acquire_timeout=0.1).tenant(await database.tenant())

    async with narrow.transaction():
        with pytest.raises(Overloaded, match="all database connections are in use") as refused:
            await narrow.value(WORK)

    assert refused.value.retry_after > 0
    assert "database.pool_size" in str(refused.value)
    assert await backend(narrow) > 0


@both_modes
async def test_who_gives_up_waiting_takes_no_connection_along(database: Database, open_postgres: Opens) -> None:
    narrow = open_postgres(pool_size=2, acquire_timeout=60).tenant(await database.tenant())
    async with narrow.transaction(), narrow.transaction():
        waiting = [asyncio.create_task(narrow.value(WORK)) for _ in range(5)]
        await asyncio.sleep(0)

        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)

    async with asyncio.timeout(5), narrow.transaction(), narrow.transaction():
        pass


@both_modes
async def test_a_turn_that_nobody_can_take_any_more_goes_to_the_next(database: Database, open_postgres: Opens) -> None:
    narrow = open_postgres(pool_size=1, acquire_timeout=60).tenant(await database.tenant())
    async with narrow.transaction():
        first, second = [asyncio.create_task(narrow.value(WORK)) for _ in range(2)]
        await asyncio.sleep(0)

    first.cancel()  # it was woken just now and has not run yet

    async with asyncio.timeout(5):
        await second
    with pytest.raises(asyncio.CancelledError):
        await first


@both_modes
async def test_a_busy_task_does_not_keep_others_from_their_turn(database: Database, open_postgres: Opens) -> None:
    narrow = open_postgres(pool_size=1).tenant(await database.tenant())
    done = asyncio.Event()
    turns = 0

    async def busy() -> None:
        nonlocal turns
        while not done.is_set():
            await backend(narrow)
            turns += 1

    task = asyncio.create_task(busy())
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        for _ in range(10):
            await backend(narrow)
    done.set()
    await task

    assert turns < 100


@both_modes
async def test_a_closed_pool_refuses_at_once_and_takes_nothing_with_it(
    database: Database, open_postgres: Opens, backends: Backends
) -> None:
    postgres = open_postgres(pool_size=1, acquire_timeout=60)
    narrow = postgres.tenant(await database.tenant())
    await backend(database)
    others = await backends.count("true")
    started = monotonic()

    async with narrow.transaction() as tx:
        waiting = asyncio.create_task(narrow.value(WORK))
        await asyncio.sleep(0)
        await postgres.close()
        with pytest.raises(Unavailable, match="closed"):
            await waiting
        with pytest.raises(Unavailable, match="closed"):
            await narrow.value(WORK)
        assert await backend(tx) > 0  # what was under way ends well

    await backends.until("true", others)
    assert monotonic() - started < 30


@both_modes
@pytest.mark.req("SAFE-06")
async def test_a_tenant_that_waits_for_a_lock_leaves_connections_for_others(
    three: list[Database], open_postgres: Opens
) -> None:
    postgres = open_postgres(pool_size=16, acquire_timeout=30, lock_timeout=None)
    ann, bob = [postgres.tenant(await one.tenant()) for one in three[:2]]
    locked = "select pg_advisory_xact_lock(4711) where $1::uuid is not null"
    async with open_postgres(pool_size=1).tenant(await ann.tenant()).transaction() as tx:
        await tx.value(locked)
        waiting = [asyncio.create_task(ann.value(locked)) for _ in range(40)]
        async with asyncio.timeout(20):
            others = [await backend(bob) for _ in range(20)]
            other_user = await asyncio.create_task(as_user(ann, "zoe"))

        assert not any(task.done() for task in waiting)
    async with asyncio.timeout(20):
        await asyncio.gather(*waiting)

    assert len(set(others)) <= 2
    assert other_user > 0


async def as_user(database: Database, user: str) -> int:
    set_holder(await database.tenant(), user)
    return await backend(database)


@both_modes
@pytest.mark.req("SAFE-06")
async def test_those_who_wait_get_connections_in_turn(three: list[Database], open_postgres: Opens) -> None:
    postgres = open_postgres(pool_size=1, acquire_timeout=30)
    ann, bob = [postgres.tenant(await one.tenant()) for one in three[:2]]
    order: list[str] = []

    async def work(database: Database, name: str) -> None:
        await database.value(WORK)
        order.append(name)

    async with ann.transaction():
        tasks = [asyncio.create_task(work(ann, "ann")) for _ in range(10)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(work(bob, "bob")))
        await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await asyncio.gather(*tasks)

    assert order.index("bob") <= 1


@both_modes
@pytest.mark.req("SAFE-06")
async def test_a_statement_waits_only_so_long_for_a_lock(database: Database, open_postgres: Opens) -> None:
    impatient = open_postgres(lock_timeout=0.1).tenant(await database.tenant())
    locked = "select pg_advisory_xact_lock(4711) where $1::uuid is not null"
    async with database.transaction() as tx:
        await tx.value(locked)

        with pytest.raises(TimedOut, match="held a lock on a row for too long") as refused:
            await impatient.value(locked)

    assert "database.lock_timeout" in refused.value.next
    await impatient.value(locked)
