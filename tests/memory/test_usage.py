import asyncio
from uuid import UUID

import pytest

from holdfast.engine import Engine
from holdfast.memory import session, user
from holdfast.memory.usage import RecallUsage
from holdfast.postgres.database import OwnerConnection

pytestmark = [pytest.mark.req("MEM-10"), pytest.mark.usefixtures("no_models")]

HOLD = "select from memory where tenant_id = $1 and id = $2 for update nowait"
WAITING = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock'
"""


async def uses(engine: Engine, id: UUID) -> int:
    """How often a memory was used."""
    return (await engine.memory.get(id)).access_count


async def waiting(owner: OwnerConnection) -> None:
    """Until somebody waits for a row that is held."""
    while not await owner.value(WAITING):
        pass


async def test_what_was_not_written_when_writing_was_cancelled_is_written_the_next_time(
    engine: Engine, owner: OwnerConnection
) -> None:
    await engine.tenants.create("acme")
    tenants = [engine, engine.tenant("acme")]
    ids = [(await each.memory.remember(user("ann"), "likes tea")).id for each in tenants]
    usage = RecallUsage()
    for each, id in zip(tenants, ids, strict=True):
        usage.note(each.database, [id, id])

    async with asyncio.timeout(10):
        async with engine.transaction() as tx:
            await tx.run(HOLD, ids[0])
            writing = asyncio.create_task(usage.flush())
            await waiting(owner)
            writing.cancel()
            await asyncio.wait([writing])
        await usage.close()

    assert [await uses(each, id) for each, id in zip(tenants, ids, strict=True)] == [2, 2]


async def test_rows_are_held_in_the_order_of_their_ids_whatever_table_they_are_in(
    engine: Engine, owner: OwnerConnection
) -> None:
    first = await engine.memory.remember(user("ann"), "likes tea")
    second = await engine.memory.remember(session("web-42"), "asked for tea")
    usage = RecallUsage()
    usage.note(engine.database, [second.id, first.id])
    name = await owner.value("select quote_ident(current_database())")
    await owner.script(f"alter database {name} set enable_nestloop = off")  # then the tables are read one by one
    engine.postgres.clear()

    async with asyncio.timeout(10):
        async with engine.transaction() as tx:
            await tx.run(HOLD, first.id)
            writing = asyncio.create_task(usage.flush())
            await waiting(owner)
            await tx.run(HOLD, second.id)  # whoever waits for the first holds no other
        await writing

    assert first.id < second.id
    assert [await uses(engine, each.id) for each in (first, second)] == [1, 1]


async def test_memories_are_counted_once_a_minute_however_many_ask(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.memory.remember(user("ann"), "likes tea")

    async def count() -> list[int]:
        gauges = engine.memory_gauges
        return [gauge.memories for gauge in await gauges.scopes()]

    before = await count()
    await engine.memory.remember(user("ann"), "likes cake")
    soon = await count()
    monkeypatch.setattr("holdfast.memory.gauges.FRESH", 0.0)

    assert (before, soon, await count()) == ([1], [1], [2])
