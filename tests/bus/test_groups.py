"""Members of a group, as PostgreSQL knows them: leases, takeovers, and members that read different topics."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from holdfast.bus import Lag, Subscription
from holdfast.core.config import Config
from holdfast.core.errors import Busy
from holdfast.engine import Engine, open_engine
from tests.clock import Clock

pytestmark = pytest.mark.req("BUS-01", "BUS-03")

MEMBERS = "select count(*) from consumer_member where tenant_id = $1"


async def next_of(records: Subscription):
    """The next record."""
    async with asyncio.timeout(30):
        return await anext(records)


def silence_members() -> None:
    """Have the members that there are give no sign of life any more."""
    for task in asyncio.all_tasks():
        if task.get_name() == "holdfast group member":
            task.cancel()


async def lag(engine: Engine) -> Lag:
    """The one partition of the one group."""
    (found,) = await engine.log.lag()
    return found


@pytest.fixture
async def second(engine: Engine, config: Config) -> AsyncIterator[Engine]:
    """An engine of its own on the same database."""
    async with open_engine(config=config) as second:
        yield second


@pytest.fixture
async def line(engine: Engine) -> str:
    """A topic with one partition and two records."""
    await engine.log.create("line", partitions=1)
    for value in (1, 2):
        await engine.log.publish("line", value=value)
    return "line"


async def test_whoever_is_not_heard_of_loses_the_partition_and_cannot_commit(
    engine: Engine, config: Config, line: str, clock: Clock
) -> None:
    await clock.set(await engine.database.now())
    async with engine.log.subscribe([line], group="billing") as slow:
        record = await next_of(slow)
        silence_members()
        await clock.advance(timedelta(minutes=1))

        async with open_engine(config=config) as other, other.log.subscribe([line], group="billing") as records:
            again = await next_of(records)
            with pytest.raises(Busy, match="this consumer no longer owns partition 0 of line"):  # noqa: PT012 - a transaction is several statements
                async with engine.transaction() as tx:
                    await engine.log.publish(line, value="effect", tx=tx)
                    await slow.commit(record, tx=tx)
            with pytest.raises(Busy):
                await slow.commit(record)
            with pytest.raises(Busy):
                await slow.fail(record, "too late")
            await records.commit(again)

    assert (again.id, again.offset) == (record.id, record.offset)
    assert [found.value async for found in engine.log.read(line)] == [1, 2], "the effect was rolled back"
    assert (await lag(engine)).position == 1


async def test_a_lease_is_renewed_beside_the_work(engine: Engine, config: Config, line: str) -> None:
    lease = 1.5  # seconds: a busy machine renews it in time
    short = config.model_copy(update={"bus": config.bus.model_copy(update={"lease": lease})})
    async with (
        open_engine(config=short) as one,
        open_engine(config=short) as two,
        one.log.subscribe([line], group="billing") as records,
        two.log.subscribe([line], group="billing") as others,
    ):
        record = await next_of(records)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3 * lease):
                await anext(others)

        await records.commit(record)

    assert (await lag(engine)).position == 1


async def test_that_an_owner_died_is_told_until_the_position_moves(
    engine: Engine, config: Config, line: str, clock: Clock
) -> None:
    await clock.set(await engine.database.now())
    async with engine.log.subscribe([line], group="billing") as dying:
        await next_of(dying)
        silence_members()
        await clock.advance(timedelta(minutes=1))
        async with open_engine(config=config) as other, other.log.subscribe([line], group="billing") as records:
            taken_over = await lag(engine)
            first = await next_of(records)
            await records.commit(first)
            committed = await lag(engine)

    assert taken_over.error == "its consumer stopped responding"
    assert committed.error is None


async def test_an_owner_that_died_with_nothing_to_do_has_failed_at_nothing(
    engine: Engine, config: Config, line: str, clock: Clock
) -> None:
    await clock.set(await engine.database.now())
    async with engine.log.subscribe([line], group="billing") as dying:
        for _ in range(2):
            await dying.commit(await next_of(dying))
        silence_members()
        await clock.advance(timedelta(minutes=1))
        async with open_engine(config=config) as other, other.log.subscribe([line], group="billing"):
            assert (await lag(engine)).attempts == 0


async def test_members_that_read_different_topics_share_what_they_have_in_common(
    engine: Engine, second: Engine, line: str
) -> None:
    await engine.log.create("orders", partitions=2)
    async with (
        engine.log.subscribe([line, "orders"], group="billing") as both,
        second.log.subscribe(["orders"], group="billing") as one,
    ):
        owners: dict[tuple[str, int], str | None] = {}
        async with asyncio.timeout(30):
            while len(owners) < 3 or None in owners.values():
                owners = {(each.topic, each.partition): each.owner for each in await engine.log.lag("billing")}
        for number in range(10):
            await engine.log.publish("orders", value=number)

        assert (await next_of(both)).topic in (line, "orders")
        assert (await next_of(one)).topic == "orders"


async def test_those_who_left_are_forgotten(engine: Engine, second: Engine, line: str) -> None:
    async with engine.log.subscribe([line], group="billing"), second.log.subscribe([line], group="billing"):
        assert await engine.database.value(MEMBERS) == 2

    assert await engine.database.value(MEMBERS) == 0
    assert (await lag(engine)).owner is None


async def test_a_consumer_that_is_cancelled_while_it_leaves_is_cancelled(engine: Engine, line: str) -> None:
    leaving = asyncio.Event()

    async def consume() -> None:
        async with engine.log.subscribe([line], group="billing"):
            leaving.set()

    consumer = asyncio.create_task(consume())
    await leaving.wait()
    consumer.cancel()
    await asyncio.wait([consumer])

    assert consumer.cancelled(), "whoever stops it waits for this"


async def test_a_retry_waits_as_long_for_one_who_takes_over(engine: Engine, second: Engine, line: str) -> None:
    loop = asyncio.get_running_loop()
    async with engine.log.subscribe([line], group="billing") as records:
        for _ in range(3):
            await records.fail(await next_of(records), "not yet")
        failed = loop.time()

    async with second.log.subscribe([line], group="billing") as records:
        record = await next_of(records)

    assert record.value == 1
    assert loop.time() - failed > 0.15, "the third wait is 0.2 to 0.4 seconds"
