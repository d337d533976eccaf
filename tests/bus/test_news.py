"""What is said with wake-ups: which partitions have news, and who has been told; a hint, and never more than that."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bus import Subscription, partition_hints
from holdfast.bus.assignment import TopicPartition
from holdfast.bus.notifications import Notifications
from holdfast.bus.partition_hints import MAX_NAMED, ChangedPartitions, Hint, hint_of
from holdfast.bus.postgres_feed import topic_channel
from holdfast.bus.records import hash_of
from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.postgres.listener import MAX_REMEMBERED, Wake

pytestmark = pytest.mark.req("BUS-01")

NEVER = 3600.0
CHANNELS = {"holdfast_a": "a", "holdfast_b": "b"}
PUBLISH = "select * from holdfast.publish($1, $2, $3, $4, holdfast.uuid7(), '{}', $5, 100)"


@pytest.fixture
async def second(engine: Engine, config: Config) -> AsyncIterator[Engine]:
    """An engine of its own on the same database."""
    async with open_engine(config=config) as second:
        yield second


@pytest.fixture
def never_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks who was not woken, and nobody who was told."""
    monkeypatch.setattr(partition_hints, "POLL", NEVER)
    monkeypatch.setattr(partition_hints, "LATER", NEVER)


@asynccontextmanager
async def reading(engine: Engine, topic: str, *, told: bool = False) -> AsyncGenerator[Subscription]:
    """A reader that waits for news, and has heard of nothing yet."""
    async with engine.postgres.listen("holdfast_connected") as connected:
        Notifications(engine.postgres.system).send("holdfast_connected")
        async with asyncio.timeout(10):
            await connected.wait()
        async with engine.log.subscribe([topic], known_locally=told) as records:
            yield records


async def next_of(records: Subscription) -> object:
    """What the next record says."""
    async with asyncio.timeout(10):
        return (await anext(records)).value


async def publish_quietly(engine: Engine, topic: str, key: str, value: int) -> None:
    """Publish, and wake nobody."""
    await engine.database.run(PUBLISH, topic, hash_of(key), key, str(value))


@given(st.lists(st.integers(0, 999), max_size=MAX_NAMED), st.sampled_from(["", "0123abcd"]))
def test_a_hint_is_understood_as_it_was_meant(partitions: list[int], sender: str) -> None:
    assert hint_of(str(Hint(partitions, sender))) == Hint(tuple(partitions), sender)


@given(
    st.text(alphabet=st.characters(exclude_characters=":")) | st.sampled_from([":", ":x", "a:1,", "A:1", ":-1", ":1\n"])
)
def test_whatever_else_is_said_means_all_partitions(said: str) -> None:
    assert hint_of(said) == Hint()


def test_a_hint_does_not_name_hundreds() -> None:
    assert str(Hint(range(MAX_NAMED + 1), "ab")) == "ab:"
    assert str(Hint(range(MAX_NAMED + 1))) == ""


async def test_only_partitions_that_are_named_are_looked_at(never_by_themselves: None) -> None:
    wake = Wake()
    heard = ChangedPartitions(wake, CHANNELS)
    assert await heard.wait_for_changes(NEVER) is None, "all of them first"

    wake.record("holdfast_a", ":3")
    wake.record("holdfast_b", "ab:0,1")

    assert await heard.wait_for_changes(NEVER) == {
        TopicPartition("a", 3),
        TopicPartition("b", 0),
        TopicPartition("b", 1),
    }
    assert await heard.wait_for_changes(0) == set()


@pytest.mark.parametrize("said", [("holdfast_a", ""), ("holdfast_a", "?"), ("holdfast_c", ":1"), None])
async def test_all_are_looked_at_when_no_partition_is_named(
    said: tuple[str, str] | None, never_by_themselves: None
) -> None:
    wake = Wake()
    heard = ChangedPartitions(wake, CHANNELS)
    await heard.wait_for_changes(NEVER)

    wake.record("holdfast_a", ":3")
    if said is None:
        heard.check_all()
    else:
        wake.record(*said)

    assert await heard.wait_for_changes(NEVER) is None
    assert await heard.wait_for_changes(0) == set(), "what was named is among them"


async def test_all_are_looked_at_when_more_is_said_than_is_remembered(never_by_themselves: None) -> None:
    wake = Wake()
    heard = ChangedPartitions(wake, CHANNELS)
    await heard.wait_for_changes(NEVER)

    for number in range(2 * MAX_REMEMBERED):
        wake.record("holdfast_a", f":{number}")

    assert len(wake.payloads) <= MAX_REMEMBERED + 1
    assert await heard.wait_for_changes(NEVER) is None


async def test_all_are_looked_at_from_time_to_time_however_many_hints_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_hints, "POLL", 0.05)
    wake = Wake()
    heard = ChangedPartitions(wake, CHANNELS)
    await heard.wait_for_changes(NEVER)

    async with asyncio.timeout(10):
        wake.record("holdfast_a", ":3")
        while await heard.wait_for_changes(NEVER) is not None:
            wake.record("holdfast_a", ":3")
            await asyncio.sleep(0)


async def test_what_a_reader_was_told_is_looked_at_later_or_with_what_it_was_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition_hints, "POLL", NEVER)
    wake = Wake()
    heard = ChangedPartitions(wake, CHANNELS, sender="ab")
    await heard.wait_for_changes(NEVER)
    loop = asyncio.get_running_loop()

    wake.record("holdfast_a", "ab:1")
    assert await heard.wait_for_changes(0) == set()
    wake.record("holdfast_a", ":1")
    assert await heard.wait_for_changes(0) == {TopicPartition("a", 1)}
    wake.record("holdfast_a", "ab:2")
    wake.record("holdfast_a", "cd:3")
    began = loop.time()
    assert await heard.wait_for_changes(NEVER) == {TopicPartition("a", 3)}
    assert await heard.wait_for_changes(NEVER) == {TopicPartition("a", 2)}
    assert loop.time() - began > 0.9 * partition_hints.LATER


async def test_records_come_by_what_is_said_of_them(engine: Engine, second: Engine, never_by_themselves: None) -> None:
    await engine.log.create("orders", partitions=8)
    async with reading(engine, "orders") as here, reading(second, "orders", told=True) as there:
        for publish in range(3):
            if publish == 0:
                await engine.log.publish("orders", key="k", value=publish)
            elif publish == 1:
                async with engine.transaction() as tx:
                    await engine.log.publish("orders", key="k", value=publish, tx=tx)
            else:
                await publish_quietly(engine, "orders", "k", publish)
                await engine.log.announce("orders", keys=["k"], known_locally=True)

            assert [await next_of(here), await next_of(there)] == [publish, publish]

        await asyncio.gather(*(engine.log.publish("orders", key=f"k{n}", value=n) for n in range(20)))

        assert {await next_of(there) for _ in range(20)} == set(range(20))


async def test_whoever_was_told_reads_it_with_the_next_that_was_not(
    engine: Engine, second: Engine, never_by_themselves: None
) -> None:
    await engine.log.create("orders", partitions=8)
    async with (
        reading(engine, "orders", told=True) as here,
        reading(engine, "orders") as beside,
        reading(second, "orders", told=True) as there,
    ):
        # Its wake-up may come late: it names another partition, so that nobody looks at that of "k" because of it.
        elsewhere = next(key for key in "abcdefgh" if hash_of(key) % 8 != hash_of("k") % 8)
        await engine.log.publish("orders", key=elsewhere, value=1)
        assert [await next_of(each) for each in (here, beside, there)] == [1, 1, 1]
        waiting = asyncio.create_task(next_of(here))

        await publish_quietly(engine, "orders", "k", 2)
        await engine.log.announce("orders", keys=["k"], known_locally=True)

        assert [await next_of(each) for each in (beside, there)] == [2, 2]
        assert not waiting.done()
        await engine.log.publish("orders", key="k", value=3)
        assert [await waiting, await next_of(here)] == [2, 3]


@pytest.mark.parametrize("said", ["", "?", "ab:", "1 2 3"])
async def test_a_wake_up_that_says_nothing_is_one_all_the_same(
    said: str, engine: Engine, never_by_themselves: None
) -> None:
    await engine.log.create("orders", partitions=8)
    notifications = Notifications(engine.postgres.system)
    async with reading(engine, "orders") as records:
        await publish_quietly(engine, "orders", "k", 1)
        notifications.send(topic_channel(await engine.database.tenant(), "orders"), hint=said)

        assert await next_of(records) == 1


async def test_a_hint_that_is_wrong_or_missing_loses_nothing(engine: Engine) -> None:
    await engine.log.create("orders", partitions=8)
    wrong = (hash_of("k") + 1) % 8
    notifications = Notifications(engine.postgres.system)
    async with reading(engine, "orders") as records:
        for value in range(2):
            await publish_quietly(engine, "orders", "k", value)
            notifications.send(topic_channel(await engine.database.tenant(), "orders"), hint=str(Hint([wrong])))

            assert await next_of(records) == value

        await publish_quietly(engine, "orders", "k", 2)

        assert await next_of(records) == 2


async def test_a_failed_record_comes_again_although_another_partition_has_news(engine: Engine) -> None:
    await engine.log.create("orders", partitions=8)
    async with engine.log.subscribe(["orders"], group="billing") as records:
        await engine.log.publish("orders", key="k", value="k")
        failed = await anext(records)
        await records.fail(failed, "no")

        for _ in range(3):
            await engine.log.publish("orders", key="other", value="other")
            assert await next_of(records) in ("other", "k")
        async with asyncio.timeout(30):
            while (record := await anext(records)).key != "k":
                pass

        assert record.offset == failed.offset
