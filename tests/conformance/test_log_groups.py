"""Groups: partitions shared among those who are there, positions that survive, and nothing lost when someone goes."""

import asyncio
import os
import re
from collections import defaultdict

import pytest

from holdfast.bus import Log, Record, Subscription
from holdfast.core.config import Config
from holdfast.core.errors import Busy, NotFound
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import Transaction
from tests.conformance.consumers import (
    Effects,
    Join,
    done,
    handle_until,
    positions,
    publish,
    take,
    until,
    values,
    while_working,
)


@pytest.mark.req("BUS-01")
async def test_a_record_that_was_not_committed_is_delivered_again(log: Log, line: str, join: Join) -> None:
    await publish(log, line, range(5))
    first = await join(line, group="billing")
    taken = await take(first.records, 3)
    await first.records.commit(taken[0])
    await first.leave()

    async with log.subscribe([line], group="billing") as records:
        again = await done(records, 4)

    assert (values(taken), values(again)) == ([0, 1, 2], [1, 2, 3, 4])


@pytest.mark.req("BUS-01")
async def test_committing_a_record_commits_all_before_it_in_its_partition(log: Log, line: str) -> None:
    await publish(log, line, range(5))

    async with log.subscribe([line], group="billing") as records:
        taken = await take(records, 4)
        await records.commit(taken[-1])

    assert await positions(log, "billing") == {(line, 0): 4}


@pytest.mark.req("BUS-03")
async def test_positions_are_rows_and_survive_every_process(log: Log, orders: str, config: Config) -> None:
    published = await publish(log, orders, range(40))
    async with open_engine(config=config) as one, one.log.subscribe([orders], group="billing") as records:
        seen = await done(records, 25)

    async with open_engine(config=config) as two, two.log.subscribe([orders], group="billing") as records:
        seen += await done(records, 15)

    assert sorted(values(seen)) == list(range(40)), "nothing twice, nothing missing"
    ends = {(orders, number): sum(record.partition == number for record in published) for number in range(4)}
    assert await positions(log, "billing") == ends


@pytest.mark.req("BUS-01", "BUS-03")
async def test_the_position_moves_with_the_effect_or_not_at_all(
    engine: Engine, log: Log, line: str, effects: Effects, join: Join
) -> None:
    await publish(log, line, range(2))
    first = await join(line, group="billing")
    one, two = await take(first.records, 2)
    async with first.engine.transaction() as tx:
        await effects.add(tx, one)
        await first.records.commit(one, tx=tx)
    with pytest.raises(KeyError):  # noqa: PT012 - a transaction is several statements
        async with first.engine.transaction() as tx:
            await effects.add(tx, two)
            await first.records.commit(two, tx=tx)
            raise KeyError
    assert await positions(log, "billing") == {(line, 0): 1}
    await first.leave()

    async with log.subscribe([line], group="billing") as records:
        (again,) = await take(records, 1)
        async with records.handle(again) as tx:
            await effects.add(tx, again)

    assert await effects.values() == [0, 1]


@pytest.mark.req("BUS-01", "BUS-03")
async def test_a_record_is_not_committed_twice_even_if_nobody_heard_of_the_first_commit(
    log: Log, line: str, effects: Effects, join: Join
) -> None:
    await publish(log, line, range(3))
    first = await join(line, group="billing")
    one, two, three = await take(first.records, 3)
    async with first.engine.transaction() as tx:  # as if the connection had been lost during the commit
        await effects.add(tx, two)
        await tx.run("update consumer_offset set position = 2 where tenant_id = $1 and topic = 'line'")

    with pytest.raises(Busy, match="or the record was already committed"):  # noqa: PT012 - a transaction is several statements
        async with first.engine.transaction() as tx:
            await effects.add(tx, two)
            await first.records.commit(two, tx=tx)
    with pytest.raises(Busy):
        await first.records.commit(one)

    assert await effects.values() == [1]
    (again,) = await done(first.records, 1)
    assert (again.value, three.value) == (2, 2), "and it goes on behind the one that is committed"


@pytest.mark.req("BUS-01")
async def test_a_group_shares_the_partitions_and_each_record_goes_to_one_of_it(
    log: Log, orders: str, join: Join
) -> None:
    one, two = await join(orders, group="billing"), await join(orders, group="billing")
    seen: list[tuple[int, Record]] = []

    async def consume(number: int, records: Subscription) -> None:
        async for record in records:
            await records.commit(record)
            seen.append((number, record))

    async def consume_all() -> None:
        await asyncio.gather(consume(1, one.records), consume(2, two.records))

    async def all_seen() -> bool:
        return len(seen) >= 200

    async def shared() -> bool:
        owned = [lag.owner for lag in await log.lag("billing")]
        return len(owned) == 4 and None not in owned

    await until(shared)
    await publish(log, orders, range(200))
    await while_working(consume_all(), all_seen)

    assert sorted(record.value for _, record in seen) == list(range(200)), "each once, as nobody failed"
    readers: defaultdict[int, set[int]] = defaultdict(set)
    for number, record in seen:
        readers[record.partition].add(number)
    assert sorted(map(sorted, readers.values())) == [[1], [1], [2], [2]]


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("how", ["leave", "crash"])
async def test_whoever_is_left_takes_over_from_one_who_leaves_or_dies(
    log: Log, orders: str, join: Join, how: str
) -> None:
    one, two = await join(orders, group="billing"), await join(orders, group="billing")
    await publish(log, orders, range(40))
    taken = await done(one.records, 5)
    await take(one.records, 1)

    await (one.leave() if how == "leave" else one.crash())

    rest = await done(two.records, 35)
    assert sorted(values(taken + rest)) == list(range(40))


@pytest.mark.req("BUS-01")
async def test_one_who_joins_gets_a_share_of_what_the_first_had_alone(log: Log, orders: str, join: Join) -> None:
    await publish(log, orders, range(100))
    one = await join(orders, group="billing")
    seen = values(await done(one.records, 10))
    two = await join(orders, group="billing")
    theirs: list[object] = []

    async def consume(records: Subscription, into: list[object]) -> None:
        async for record in records:
            await records.commit(record)
            into.append(record.value)

    async def both() -> None:
        await asyncio.gather(consume(one.records, seen), consume(two.records, theirs))

    async def both_have_some() -> bool:
        if len(theirs) <= 5:
            await publish(log, orders, [len(seen) + len(theirs) + 1000])
            return False
        return sum(lag.lag for lag in await log.lag("billing")) == 0

    await while_working(both(), both_have_some)

    assert {lag.owner is not None for lag in await log.lag("billing")} == {True}
    assert {n for n in [*seen, *theirs] if isinstance(n, int) and n < 100} == set(range(100))


@pytest.mark.req("BUS-01")
async def test_a_partition_is_not_handed_over_while_a_record_of_it_is_in_hand(
    log: Log, orders: str, effects: Effects, join: Join
) -> None:
    await publish(log, orders, range(40))
    one = await join(orders, group="billing")
    (in_hand,) = await take(one.records, 1)
    two = await join(orders, group="billing")
    done_with: list[Record] = []

    async def consume(records: Subscription) -> None:
        async for record in records:
            await records.commit(record)
            done_with.append(record)

    async def group_changed() -> bool:
        return len({lag.owner for lag in await log.lag("billing")} | {None}) > 1

    theirs = asyncio.create_task(consume(two.records))
    await until(group_changed)
    async with one.engine.transaction() as tx:
        await effects.add(tx, in_hand)
        await one.records.commit(in_hand, tx=tx)
    done_with.append(in_hand)

    async def all_done() -> bool:
        return len(done_with) >= 40

    await while_working(consume(one.records), all_done)
    theirs.cancel()
    assert sorted(values(done_with)) == list(range(40)), "each once"
    for partition in range(4):
        offsets = [record.offset for record in done_with if record.partition == partition]
        assert offsets == sorted(offsets), "whoever got the partition got it when the one before had done"


@pytest.mark.req("BUS-01", "BUS-03")
async def test_two_groups_read_the_same_records_without_disturbing_one_another(log: Log, line: str) -> None:
    await publish(log, line, range(10))

    async with log.subscribe([line], group="billing") as one, log.subscribe([line], group="audit") as two:
        assert values(await done(one, 10)) == list(range(10))
        assert values(await done(two, 4)) == list(range(4))

    assert await positions(log, "billing") == {(line, 0): 10}
    assert await positions(log, "audit") == {(line, 0): 4}


@pytest.mark.req("BUS-01")
async def test_a_group_can_be_set_back_while_nobody_reads_with_it(log: Log, line: str) -> None:
    published = await publish(log, line, range(10))
    with pytest.raises(NotFound, match="group billing does not exist"):
        await log.reset("billing", line)
    async with log.subscribe([line], group="billing") as records:
        await done(records, 10)
        with pytest.raises(Busy, match="has active consumers"):
            await log.reset("billing", line)

    assert await log.reset("billing", line, offset=7) == {0: 7}
    async with log.subscribe([line], group="billing") as records:
        assert values(await done(records, 3)) == [7, 8, 9]
    assert await log.reset("billing", line, at=published[4].at) == {0: 4}
    async with log.subscribe([line], group="billing") as records:
        assert values(await done(records, 6)) == [4, 5, 6, 7, 8, 9]
    assert await log.reset("billing", line) == {0: 0}
    assert await log.reset("billing", line, end=True) == {0: 10}
    await publish(log, line, ["new"])
    async with log.subscribe([line], group="billing") as records:
        assert values(await done(records, 1)) == ["new"]


@pytest.mark.req("BUS-04")
async def test_lag_rate_and_age_are_visible(engine: Engine, log: Log, line: str) -> None:
    published = await publish(log, line, range(10))
    async with log.subscribe([line], group="billing") as records:
        await done(records, 4)
        (lag,) = await log.lag("billing")
        (topic,) = [topic for topic in await log.topics() if topic.name == line]

    assert (lag.group, lag.topic, lag.partition, lag.position, lag.end, lag.lag) == ("billing", line, 0, 4, 10, 6)
    assert lag.oldest == published[4].at
    assert lag.owner is not None
    assert (topic.partitions, topic.records, topic.oldest) == (1, 10, published[0].at)
    assert 0 < topic.per_second <= 10
    assert [lag.owner for lag in await log.lag("billing")] == [None]
    assert await log.lag("nobody") == []


@pytest.mark.req("BUS-04")
async def test_lag_says_that_a_dead_reader_has_not_been_heard_of(log: Log, line: str, join: Join) -> None:
    await publish(log, line, [1])
    reader = await join(line, group="billing")
    await take(reader.records, 1)
    (alive,) = await log.lag("billing")

    await reader.crash()

    async def reported() -> bool:
        (lag,) = await log.lag("billing")
        return re.fullmatch(rf"process {os.getpid()}, no heartbeat for \d+ s", str(lag.owner)) is not None

    await until(reported)
    assert str(alive.owner).startswith(f"process {os.getpid()}")


@pytest.mark.req("BUS-01", "BUS-03")
async def test_effects_of_a_loop_happen_once_and_in_order(
    engine: Engine, log: Log, orders: str, effects: Effects
) -> None:
    for number in range(50):
        await log.publish(orders, key=f"key {number % 7}", value=number)

    async def work(record: Record, tx: Transaction) -> None:
        await effects.add(tx, record)

    async def enough() -> bool:
        return len(await effects.all()) >= 50

    async with log.subscribe([orders], group="billing") as records:
        await handle_until(records, work, enough)

    rows = await effects.all()
    for key in range(7):
        assert [row["value"] for row in rows if row["key"] == f"key {key}"] == list(range(key, 50, 7))
