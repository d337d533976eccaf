"""Handling records: many at once, cancelled, and with a commit too many; nothing is lost by it."""

import asyncio
from asyncio import TaskGroup

import pytest

from holdfast.bus import Log, Record, Subscription
from holdfast.core.errors import Busy, InvalidInput
from holdfast.engine import Engine
from tests.conformance.consumers import Effects, publish, take, values


@pytest.mark.req("BUS-01", "BUS-03")
async def test_records_of_one_partition_that_are_handled_at_once_are_handled_in_their_order(
    log: Log, line: str, effects: Effects
) -> None:
    await publish(log, line, range(30))

    async with log.subscribe([line], group="billing") as records:

        async def handle(record: Record) -> None:
            async with records.handle(record) as tx:
                await asyncio.sleep(0.001 * (30 - record.offset) / 30)  # the later, the quicker
                await effects.add(tx, record)

        while len(await effects.values()) < 30:
            await asyncio.gather(*map(handle, await records.batch()))

    assert await effects.values() == list(range(30))


@pytest.mark.req("BUS-01", "BUS-03")
async def test_several_tasks_may_read_one_subscription(log: Log, line: str, effects: Effects) -> None:
    await publish(log, line, range(30))
    all_done = asyncio.Event()

    async def work(records: Subscription) -> None:
        async for record in records:
            async with records.handle(record) as tx:
                await asyncio.sleep(0.001)
                await effects.add(tx, record)
            if len(await effects.values()) == 30:
                all_done.set()

    async with log.subscribe([line], group="billing") as records, TaskGroup() as group:
        tasks = [group.create_task(work(records)) for _ in range(4)]
        async with asyncio.timeout(30):
            await all_done.wait()
        for task in tasks:
            task.cancel()

    assert await effects.values() == list(range(30))


@pytest.mark.req("BUS-01", "BUS-03")
async def test_a_record_whose_handling_was_cancelled_comes_again(log: Log, line: str, effects: Effects) -> None:
    await publish(log, line, range(4))
    slow = {1}

    async with log.subscribe([line], group="billing") as records:
        async for record in records:
            try:
                async with asyncio.timeout(0.2 if record.value in slow else None), records.handle(record) as tx:
                    await effects.add(tx, record)
                    if record.value in slow:
                        slow.clear()
                        await asyncio.Event().wait()
            except TimeoutError:
                continue
            if record.value == 3:
                break

    assert await effects.values() == [0, 1, 2, 3]


@pytest.mark.req("BUS-03")
async def test_a_commit_with_the_transaction_of_handle_changes_nothing(log: Log, line: str, effects: Effects) -> None:
    await publish(log, line, range(3))

    async with log.subscribe([line], group="billing") as records:
        for record in await take(records, 3):
            async with records.handle(record) as tx:
                await effects.add(tx, record)
                await records.commit(record, tx=tx)

    assert await effects.values() == [0, 1, 2]
    assert [lag.lag for lag in await log.lag("billing")] == [0]


@pytest.mark.req("BUS-03")
@pytest.mark.parametrize("bus", [{"max_attempts": 1}], ids=["one attempt"])
async def test_a_commit_beside_the_transaction_of_handle_is_refused(
    engine: Engine, log: Log, line: str, effects: Effects
) -> None:
    await publish(log, line, ["one"])

    async with log.subscribe([line], group="billing") as records:
        (record,) = await take(records, 1)
        async with records.handle(record) as tx:
            await effects.add(tx, record)
            await records.commit(record)

    (letter,) = await engine.dead_letters.list()
    assert "Remove this commit" in letter.error
    assert await effects.values() == []


@pytest.mark.req("BUS-03")
async def test_a_second_commit_is_told_and_does_no_harm(log: Log, line: str) -> None:
    await publish(log, line, range(3))

    async with log.subscribe([line], group="billing") as records:
        first, second, third = await take(records, 3)
        await records.commit(second)
        for record in (first, second):
            with pytest.raises(Busy, match="is already committed"):
                await records.commit(record)
        await records.commit(third)

    assert [lag.lag for lag in await log.lag("billing")] == [0]


@pytest.mark.req("BUS-01")
async def test_a_subscription_that_has_ended_says_so(log: Log, line: str) -> None:
    await publish(log, line, range(2))
    async with log.subscribe([line], group="billing") as records:
        (record,) = await take(records, 1)

    for use in (records.batch, lambda: anext(records), lambda: records.handle(record).__aenter__()):
        with pytest.raises(InvalidInput, match="the subscription has ended"):
            await use()
    with pytest.raises(InvalidInput, match="Use at least 1"):
        await records.batch(0)
    async with log.subscribe([line], group="billing") as records:
        assert values(await take(records, 2)) == [0, 1]
