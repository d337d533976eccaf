"""Failures: a record that cannot be processed is tried again, then put aside for all to see; nothing else waits."""

import asyncio
from collections import Counter
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

import pytest

from holdfast.bus import DeadLetter, Log, Record
from holdfast.core.errors import Busy, DatabaseAway, InvalidInput, NotFound, Overloaded
from holdfast.engine import Engine
from holdfast.postgres.database import Transaction
from tests.clock import Clock
from tests.conformance.consumers import Effects, Join, done, handle_until, positions, publish, take, until, values

THREE = pytest.mark.parametrize("bus", [{"max_attempts": 3}], ids=["three attempts"])


class Work:
    """An effect for each record, but for those that are poison."""

    def __init__(self, effects: Effects, *poison: object) -> None:
        self._effects = effects
        self.poison = set(poison)
        self.tried: list[object] = []

    async def __call__(self, record: Record, tx: Transaction) -> None:
        self.tried.append(record.value)
        await self._effects.add(tx, record)
        if record.value in self.poison:
            raise ValueError(f"cannot stand {record.value}\0")


async def work_off(engine: Engine, topic: str, work: Work, *, group: str = "billing") -> None:
    """Handle all there is, until only what is dead is left undone."""

    async def settled() -> bool:
        behind = sum(lag.lag for lag in await engine.log.lag(group))
        letters = await engine.dead_letters.list(group=group)
        under_way = any(letter.state == "redriven" or "did not report back" in letter.error for letter in letters)
        return bool(work.tried) and not behind and not under_way

    async with engine.log.subscribe([topic], group=group) as records:
        await handle_until(records, work, settled)


@pytest.fixture
async def dead(engine: Engine, line: str, effects: Effects) -> DeadLetter:
    """A dead letter of the group `billing`; records 0 and 2 were processed."""
    await publish(engine.log, line, [0, "bad", 2], key="a")
    await work_off(engine, line, Work(effects, "bad"))
    (letter,) = await engine.dead_letters.list()
    return letter


@pytest.mark.req("BUS-01", "BUS-04")
@THREE
async def test_a_record_that_fails_is_tried_again_and_is_a_dead_letter_in_the_end(
    engine: Engine, log: Log, line: str, effects: Effects
) -> None:
    published = await publish(log, line, [0, "bad", 2, 3], key="a")
    work = Work(effects, "bad")

    await work_off(engine, line, work)

    (letter,) = await engine.dead_letters.list(group="billing", topic=line)
    assert work.tried == [0, "bad", "bad", "bad", 2, 3], "in order, and the partition went on"
    assert await effects.values() == [0, 2, 3], "what a failed attempt did is undone"
    assert (letter.group, letter.topic, letter.partition, letter.offset) == ("billing", line, 0, 1)
    assert (letter.record_id, letter.key, letter.value, letter.at) == (published[1].id, "a", "bad", published[1].at)
    assert (letter.attempts, letter.error, letter.state) == (3, "ValueError: cannot stand bad\0", "dead")
    assert letter.headers == published[1].headers
    assert await engine.dead_letters.get(letter.id) == letter
    assert await positions(log, "billing") == {(line, 0): 4}


@pytest.mark.req("BUS-01", "BUS-04")
async def test_failed_attempts_are_counted_and_told_while_they_go_on(engine: Engine, log: Log, line: str) -> None:
    await publish(log, line, [1])

    async with log.subscribe([line], group="billing") as records:
        (record,) = await take(records, 1)
        await records.fail(record, "not\0now")
        (lag,) = await log.lag("billing")
        (again,) = await take(records, 1)
        await records.commit(again)
        (after,) = await log.lag("billing")

    assert (lag.attempts, lag.error, lag.position) == (1, "not\0now", 0)
    assert (again.id, again.offset) == (record.id, record.offset)
    assert (after.attempts, after.error, after.position) == (0, None, 1)


@pytest.mark.req("BUS-01", "BUS-04")
async def test_a_record_that_has_failed_for_an_hour_is_a_dead_letter_however_few_the_attempts(
    engine: Engine, log: Log, line: str, clock: Clock
) -> None:
    await publish(log, line, ["bad", "good"])
    async with log.subscribe([line], group="billing") as records:
        (record,) = await take(records, 1)
        await records.fail(record, "the first time")
        (again,) = await take(records, 1)

        await clock.advance(timedelta(hours=2))
        await records.fail(again, "still")
        (after,) = await done(records, 1)

    (letter,) = await engine.dead_letters.list()
    assert (letter.value, letter.attempts, letter.error, after.value) == ("bad", 2, "still", "good")


@pytest.mark.req("BUS-01")
async def test_other_partitions_are_not_held_up_by_a_record_that_fails(
    engine: Engine, log: Log, orders: str, effects: Effects
) -> None:
    await log.publish(orders, key="bad", value="bad")
    held = await log.publish(orders, key="bad", value="behind it")
    others = [await log.publish(orders, key=f"key {number}", value=number) for number in range(20)]
    free = {record.value for record in others if record.partition != held.partition}
    work = Work(effects, "bad")

    async def others_done() -> bool:
        return free <= set(await effects.values()) and Counter(work.tried)["bad"] >= 2

    async with log.subscribe([orders], group="billing") as records:
        await handle_until(records, work, others_done)

    assert "behind it" not in await effects.values(), "order is kept where it fails"
    assert await engine.dead_letters.list() == []


@pytest.mark.req("BUS-01")
async def test_what_was_delivered_behind_a_failed_record_cannot_pass_it(
    engine: Engine, log: Log, line: str, effects: Effects
) -> None:
    await publish(log, line, range(4))

    async with log.subscribe([line], group="billing") as records:
        batch = await take(records, 4)
        for record in batch:
            async with records.handle(record) as tx:
                await effects.add(tx, record)
                if record.value == 1:
                    raise ValueError
        with pytest.raises(Busy, match="has failed"):
            await records.commit(batch[3])
        (lag,) = await log.lag("billing")
        again = await done(records, 3)

    assert await effects.values() == [0]
    assert (lag.position, lag.attempts) == (1, 1)
    assert values(again) == [1, 2, 3]


@pytest.mark.req("BUS-01", "BUS-04")
@pytest.mark.parametrize("bus", [{"max_attempts": 2}], ids=["two attempts"])
async def test_a_record_that_kills_its_consumers_is_a_dead_letter_in_the_end(
    engine: Engine, log: Log, line: str, join: Join
) -> None:
    await publish(log, line, ["deadly", "good"])

    for _ in range(3):  # the third time it is on trial: delivered alone
        consumer = await join(line, group="billing")
        assert values(await take(consumer.records, 1)) == ["deadly"]
        await consumer.crash()

    survivor = await join(line, group="billing")
    assert values(await done(survivor.records, 1)) == ["good"]
    (letter,) = await engine.dead_letters.list(group="billing")
    assert (letter.value, letter.attempts) == ("deadly", 3)
    assert "stopped responding" in letter.error


@pytest.mark.req("BUS-04")
@THREE
async def test_a_redriven_dead_letter_is_delivered_to_its_group_and_to_no_other(
    engine: Engine, log: Log, line: str, effects: Effects, dead: DeadLetter
) -> None:
    async with log.subscribe([line], group="audit") as others:
        await done(others, 3)
        work = Work(effects)

        await engine.dead_letters.redrive(dead.id)
        assert (await engine.dead_letters.get(dead.id)).state == "redriven"
        await work_off(engine, line, work)
        await publish(log, line, ["new"])
        assert values(await done(others, 1)) == ["new"]

    assert work.tried == ["bad"]
    assert await effects.values() == [0, 2, "bad"]
    assert await engine.dead_letters.list() == []


@pytest.mark.req("BUS-04")
@THREE
async def test_a_redriven_dead_letter_says_what_it_is_and_keeps_what_it_was(
    engine: Engine, log: Log, line: str, dead: DeadLetter
) -> None:
    await engine.dead_letters.redrive(dead.id)

    async with log.subscribe([line], group="billing") as records:
        (record,) = await take(records, 1)
        await records.commit(record)

    assert (record.dead_letter, record.id, record.offset, record.key) == (
        dead.id,
        dead.record_id,
        dead.offset,
        dead.key,
    )
    assert (record.value, record.headers, record.at) == (dead.value, dead.headers, dead.at)


@pytest.mark.req("BUS-04")
@THREE
async def test_a_redriven_dead_letter_that_fails_again_is_dead_again(
    engine: Engine, line: str, effects: Effects, dead: DeadLetter
) -> None:
    work = Work(effects, "bad")

    for attempts in (4, 5):
        await engine.dead_letters.redrive(dead.id)
        await work_off(engine, line, work)

        (letter,) = await engine.dead_letters.list()
        assert (letter.id, letter.state, letter.attempts) == (dead.id, "dead", attempts)
    assert work.tried == ["bad", "bad"], "once each time"
    assert await effects.values() == [0, 2]


@pytest.mark.req("BUS-04")
@THREE
async def test_a_redriven_dead_letter_arrives_though_its_partition_fails_meanwhile(
    engine: Engine, log: Log, line: str, effects: Effects, dead: DeadLetter
) -> None:
    async with log.subscribe([line], group="billing") as records:
        await publish(log, line, ["first", "second"])
        first, second = await take(records, 2)
        await engine.dead_letters.redrive(dead.id)
        await records.fail(first, "not yet")
        seen = [first.value, second.value]

        async def work(record: Record, tx: Transaction) -> None:
            await effects.add(tx, record)
            seen.append(record.value)
            if record.value == "first" and seen.count("first") < 3:
                raise ValueError

        async def settled() -> bool:
            return {"bad", "first", "second"} <= set(await effects.values())

        await handle_until(records, work, settled)

    assert (await effects.values()).count("bad") == 1
    assert await engine.dead_letters.list() == []


@pytest.mark.req("BUS-04")
@THREE
async def test_a_dropped_dead_letter_is_forgotten(engine: Engine, log: Log, line: str, dead: DeadLetter) -> None:
    await engine.dead_letters.drop(dead.id)

    assert await engine.dead_letters.list() == []
    for act in (engine.dead_letters.get, engine.dead_letters.redrive, engine.dead_letters.drop):
        with pytest.raises(NotFound, match=f"dead letter {dead.id} does not exist"):
            await act(dead.id)


@pytest.mark.req("BUS-04")
@THREE
async def test_a_dead_letter_dropped_while_it_is_in_hand_takes_the_effect_with_it(
    engine: Engine, log: Log, line: str, effects: Effects, dead: DeadLetter
) -> None:
    await engine.dead_letters.redrive(dead.id)
    async with log.subscribe([line], group="billing") as records:
        (record,) = await take(records, 1)
        await engine.dead_letters.drop(dead.id)

        with pytest.raises(Busy, match="dead letter no longer exists"):  # noqa: PT012 - a transaction is several statements
            async with engine.transaction() as tx:
                await effects.add(tx, record)
                await records.commit(record, tx=tx)

    assert await effects.values() == [0, 2]


@pytest.mark.req("BUS-04")
@pytest.mark.parametrize("bus", [{"max_attempts": 1}], ids=["one attempt"])
async def test_dead_letters_are_listed_newest_first_and_redriven_together(
    engine: Engine, log: Log, line: str, orders: str, effects: Effects
) -> None:
    for topic in (line, orders):
        await publish(log, topic, range(3), key="a")
        await work_off(engine, topic, Work(effects, 0, 1, 2))
    await work_off(engine, line, Work(effects, 0, 1, 2), group="audit")

    listed = await engine.dead_letters.list(group="billing", topic=line)
    assert [letter.value for letter in listed] == [2, 1, 0]
    first = await engine.dead_letters.list(group="billing", topic=line, limit=2)
    rest = await engine.dead_letters.list(group="billing", topic=line, limit=2, before=first[-1].id)
    assert [letter.value for letter in (*first, *rest)] == [2, 1, 0]
    assert len(await engine.dead_letters.list()) == 9

    assert await engine.dead_letters.redrive_all(group="billing", topic=line) == 3
    await work_off(engine, line, work := Work(effects))
    assert sorted(map(str, work.tried)) == ["0", "1", "2"]
    assert {(letter.group, letter.topic) for letter in await engine.dead_letters.list()} == {
        ("billing", orders),
        ("audit", line),
    }


@pytest.mark.req("BUS-04")
@THREE
async def test_dead_letters_of_another_tenant_are_not_there(engine: Engine, acme: Engine, dead: DeadLetter) -> None:
    assert await acme.dead_letters.list() == []
    with pytest.raises(NotFound):
        await acme.dead_letters.get(dead.id)
    with pytest.raises(NotFound):
        await acme.dead_letters.redrive(dead.id)
    assert await acme.dead_letters.redrive_all() == 0
    assert (await engine.dead_letters.get(dead.id)).state == "dead"


@pytest.mark.req("BUS-01")
async def test_a_database_that_is_away_is_waited_for_and_counts_as_no_attempt(
    engine: Engine, log: Log, line: str, effects: Effects, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(log, line, [1])
    begin, refused = engine.database.transaction, [DatabaseAway("gone"), Overloaded("full", retry_after=1)]

    def not_yet() -> AbstractAsyncContextManager[Transaction]:
        if refused:
            raise refused.pop()
        return begin()

    async with log.subscribe([line], group="billing") as records:
        (record,) = await take(records, 1)
        with monkeypatch.context() as patch:
            patch.setattr(engine.database, "transaction", not_yet)
            async with records.handle(record) as tx:
                await effects.add(tx, record)

    (lag,) = await log.lag("billing")
    assert (await effects.values(), lag.position, lag.attempts) == ([1], 1, 0)


@pytest.mark.req("BUS-01")
async def test_a_reader_without_a_group_can_commit_and_fail_nothing(log: Log, line: str) -> None:
    async with log.subscribe([line]) as records:
        await publish(log, line, [1, 2])
        (record,) = await take(records, 1)

        with pytest.raises(InvalidInput, match="Subscribe with a group"):
            await records.commit(record)
        with pytest.raises(InvalidInput, match="Subscribe with a group"):
            await records.fail(record, "no")

        assert values(await take(records, 1)) == [2]


@pytest.mark.req("BUS-01")
async def test_a_cancelled_consumer_leaves_and_its_record_counts_as_not_tried(
    engine: Engine, log: Log, line: str
) -> None:
    await publish(log, line, [1])
    busy = asyncio.Event()

    async def consume() -> None:
        async with log.subscribe([line], group="billing") as records:
            async for record in records:
                async with records.handle(record):
                    busy.set()
                    await asyncio.Event().wait()

    consumer = asyncio.create_task(consume())
    async with asyncio.timeout(30):
        await busy.wait()
    consumer.cancel()
    await asyncio.wait([consumer])

    async def free() -> bool:
        return [lag.owner for lag in await log.lag("billing")] == [None]

    await until(free)
    (lag,) = await log.lag("billing")
    assert (lag.position, lag.attempts) == (0, 0)
    async with log.subscribe([line], group="billing") as records:
        assert values(await done(records, 1)) == [1]
