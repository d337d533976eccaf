"""Publishing and reading: with the caller's transaction or not at all, in order per key, and exactly what was given."""

import asyncio
import zlib
from collections import defaultdict
from datetime import timedelta
from uuid import uuid4

import pytest

from holdfast.bus import Log, Record
from holdfast.core.config import Config
from holdfast.core.errors import Conflict, NotFound
from holdfast.engine import Engine, open_engine
from tests.conformance.consumers import done, publish, take, values

TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "congo=t61rcWkgMzE"}


async def read(log: Log, topic: str) -> list[Record]:
    """All of a topic."""
    return [record async for record in log.read(topic)]


@pytest.mark.req("BUS-01", "BUS-02")
async def test_what_is_published_in_a_transaction_is_there_when_it_commits(engine: Engine, log: Log, line: str) -> None:
    async with log.subscribe([line], group="billing") as records:
        async with engine.transaction() as tx:
            published = await log.publish(line, key="a", value=1, tx=tx)
            before = await read(log, line)

        (taken,) = await done(records, 1)

    assert before == []
    assert (taken.id, taken.offset, taken.value) == (published.id, published.offset, 1)


@pytest.mark.req("BUS-01", "BUS-02")
async def test_a_rolled_back_transaction_publishes_nothing(engine: Engine, log: Log, line: str) -> None:
    async with log.subscribe([line], group="billing") as records:
        with pytest.raises(KeyError):  # noqa: PT012 - a transaction is several statements
            async with engine.transaction() as tx:
                await log.publish(line, value="never", tx=tx)
                raise KeyError
        await log.publish(line, value="after")

        (taken,) = await done(records, 1)

    assert (taken.value, taken.offset) == ("after", 0)
    assert values(await read(log, line)) == ["after"]


@pytest.mark.req("BUS-02")
async def test_a_rolled_back_savepoint_takes_its_records_with_it(engine: Engine, log: Log, line: str) -> None:
    async with engine.transaction() as tx:
        await log.publish(line, value=1, tx=tx)
        with pytest.raises(KeyError):  # noqa: PT012 - a transaction is several statements
            async with tx.savepoint():
                await log.publish(line, value="never", tx=tx)
                raise KeyError
        async with tx.savepoint():
            await log.publish(line, value=2, tx=tx)

    assert [(record.offset, record.value) for record in await read(log, line)] == [(0, 1), (1, 2)]


@pytest.mark.req("BUS-01", "BUS-02")
async def test_what_was_acknowledged_is_there_for_everyone_at_once(log: Log, line: str, config: Config) -> None:
    published = await log.publish(line, key="a", value={"n": 1})

    async with open_engine(config=config) as second:
        found = await read(second.log, line)

    assert found == [published]


@pytest.mark.req("BUS-01")
async def test_records_of_many_producers_have_no_gap_and_keep_their_order(log: Log, orders: str) -> None:
    async def produce(producer: int) -> None:
        for number in range(20):
            await log.publish(orders, key=f"key {producer}", value=[producer, number])

    async with log.subscribe([orders], group="billing") as records, asyncio.TaskGroup() as group:
        for producer in range(16):
            group.create_task(produce(producer))
        taken = await done(records, 16 * 20)

    by_partition: defaultdict[int, list[int]] = defaultdict(list)
    by_key: defaultdict[str | None, list[object]] = defaultdict(list)
    for record in taken:
        by_partition[record.partition].append(record.offset)
        by_key[record.key].append(record.value)
    assert all(offsets == list(range(len(offsets))) for offsets in by_partition.values()), "no gap, none twice"
    assert by_key == {f"key {producer}": [[producer, n] for n in range(20)] for producer in range(16)}


@pytest.mark.req("BUS-01")
async def test_a_burst_of_one_producer_keeps_the_order_it_was_given_in(log: Log, line: str) -> None:
    await asyncio.gather(*(log.publish(line, key="a", value=number) for number in range(3000)))

    assert values(await read(log, line)) == list(range(3000))


@pytest.mark.req("BUS-01")
async def test_a_key_always_goes_to_the_partition_that_other_clients_of_kafka_would_choose(
    log: Log, orders: str, config: Config
) -> None:
    keys = [f"key {number}" for number in range(20)] + ["ключ", "", "🗝"]

    published = [await log.publish(orders, key=key, value=1) for key in keys]
    async with open_engine(config=config) as second, second.transaction() as tx:
        again = [await second.log.publish(orders, key=key, value=2, tx=tx) for key in keys]

    assert [record.partition for record in published] == [zlib.crc32(key.encode()) % 4 for key in keys]
    assert [record.partition for record in again] == [record.partition for record in published]
    assert len({record.partition for record in published}) == 4


@pytest.mark.req("BUS-01")
async def test_records_without_a_key_go_to_all_partitions(log: Log, orders: str) -> None:
    published = await publish(log, orders, range(100))

    assert {record.partition for record in published} == {0, 1, 2, 3}


@pytest.mark.req("BUS-01")
async def test_a_topic_keeps_the_number_of_its_partitions(log: Log) -> None:
    assert await log.create("fixed", partitions=3) == 3

    with pytest.raises(Conflict, match="has 3 partitions") as refused:
        await log.create("fixed", partitions=5)

    assert (refused.value.expected, refused.value.current) == (5, 3)
    assert await log.create("fixed") == 3


@pytest.mark.req("BUS-01", "BUS-02")
async def test_a_topic_can_be_made_and_published_to_in_one_transaction(engine: Engine, log: Log) -> None:
    async with engine.transaction() as tx:
        await log.create("young", partitions=1, tx=tx)
        await log.publish("young", value=1, tx=tx)

    async with log.subscribe(["young"], group="billing") as records:
        assert values(await done(records, 1)) == [1]


@pytest.mark.req("BUS-01")
async def test_a_removed_topic_is_gone_and_a_new_one_starts_anew(log: Log, line: str) -> None:
    await publish(log, line, [1, 2])
    async with log.subscribe([line], group="billing") as records:
        await done(records, 2)

    await log.remove(line)

    with pytest.raises(NotFound, match="topic line does not exist"):
        await log.publish(line, value=3)
    await log.create(line, partitions=1)
    await log.publish(line, value="new")
    async with log.subscribe([line], group="billing") as records:
        assert [(record.offset, record.value) for record in await done(records, 1)] == [(0, "new")]


@pytest.mark.req("BUS-01", "BUS-03")
@pytest.mark.parametrize("within", ["alone", "in a transaction"])
async def test_a_record_comes_back_exactly_as_it_was_given(
    engine: Engine, log: Log, line: str, within: str, subtests: pytest.Subtests
) -> None:
    strange = 'a\0b \ud83d ☃ 🗝 \U0010fffe \u2028 "quoted" \\u0000'
    given: list[tuple[str | None, dict[str, str], object]] = [
        (None, {}, None),
        ("", {}, ""),
        (strange, {"note": strange, "Больше": "ja", **TRACE}, {"text": strange, strange: [strange]}),
        ("a", {"content-type": "text/other"}, [1.5, -0.25, 10**30, 1e300, True, None, {"deep": [[[]]]}]),
        ("a" * 10_000, {"n" * 100: "v" * 1000}, "x" * 500_000),
        ("nan", {}, [float("inf"), float("-inf")]),
    ]

    async with log.subscribe([line], group="billing") as records:
        for key, headers, value in given:
            id = uuid4()
            if within == "alone":
                published = await log.publish(line, key=key, headers=headers, value=value, id=id)
            else:
                async with engine.transaction() as tx:
                    published = await log.publish(line, key=key, headers=headers, value=value, id=id, tx=tx)
            (taken,) = await done(records, 1)
            with subtests.test(key=(key or "")[:20]):
                assert (taken.key, taken.value, taken.id) == (key, value, id)
                assert taken.headers == {"content-type": "application/json", **headers}
                assert (taken.topic, taken.partition, taken.offset) == (line, 0, published.offset)
                assert taken.at == published.at

    assert [(record.key, record.value) for record in await read(log, line)] == [(key, value) for key, _, value in given]


@pytest.mark.req("BUS-03")
async def test_records_that_share_an_id_each_get_their_own_place(log: Log, line: str, orders: str) -> None:
    id = uuid4()

    here, there, again, nowhere = await asyncio.gather(
        log.publish(line, value="here", id=id),
        log.publish(orders, value="there", id=id),
        log.publish(line, value="again", id=id),
        log.publish("unknown", value="nowhere", id=id),
        return_exceptions=True,
    )

    assert isinstance(nowhere, NotFound), "an acknowledgement for a topic that is not there would be a lie"
    assert [(record.offset, record.value) for record in await read(log, line)] == [(0, "here"), (1, "again")]
    assert [record.offset for record in (here, again) if isinstance(record, Record)] == [0, 1]
    assert isinstance(there, Record)
    assert await read(log, orders) == [there]


@pytest.mark.req("BUS-01")
async def test_a_topic_can_be_read_again_from_any_offset_or_time_without_the_group_noticing(
    log: Log, line: str, orders: str
) -> None:
    published = await publish(log, line, range(10))
    async with log.subscribe([line], group="billing") as records:
        first = await done(records, 3)

        assert values(await read(log, line)) == list(range(10))
        assert [record.value async for record in log.read(line, offset=7)] == [7, 8, 9]
        assert [record.value async for record in log.read(line, at=published[4].at)] == [4, 5, 6, 7, 8, 9]
        assert [record.value async for record in log.read(line, at=published[9].at + timedelta(seconds=1))] == []
        assert [record.value async for record in log.read(line, offset=2, limit=3)] == [2, 3, 4]
        assert [record.value async for record in log.read(line, partition=0, limit=1)] == [0]
        assert [record.value async for record in log.read(line, offset=99)] == []
        rest = await done(records, 7)

    assert values(first + rest) == list(range(10)), "and the group read on as if nothing had been"


@pytest.mark.req("BUS-01")
async def test_reading_all_of_a_topic_gives_each_partition_in_its_order(log: Log, orders: str) -> None:
    published = await publish(log, orders, range(1500))

    found = await read(log, orders)
    some = [record async for record in log.read(orders, limit=1100)]

    expected = sorted(published, key=lambda record: (record.partition, record.offset))
    assert found == expected
    assert some == expected[:1100]


@pytest.mark.req("BUS-01")
async def test_readers_without_a_group_each_have_everything_from_now_on(log: Log, orders: str) -> None:
    await publish(log, orders, ["before"] * 5)
    async with (
        log.subscribe([orders]) as one,
        log.subscribe([orders]) as two,
        log.subscribe([orders], start="start") as all_of_it,
    ):
        await publish(log, orders, range(20))

        seen = [await take(reader, 20) for reader in (one, two)]
        whole = await take(all_of_it, 25)

    assert [sorted(values(taken)) for taken in seen] == [list(range(20))] * 2
    assert values(whole).count("before") == 5
    assert [lag for lag in await log.lag() if not lag.group.startswith(".")] == [], "and no position is kept"


@pytest.mark.req("BUS-01")
async def test_a_new_group_starts_at_the_beginning_or_at_the_end_as_it_says(log: Log, line: str) -> None:
    await publish(log, line, ["old"])

    async with log.subscribe([line], group="late", start="end") as late, log.subscribe([line], group="all") as all_:
        await publish(log, line, ["new"])
        assert values(await done(late, 1)) == ["new"]
        assert values(await done(all_, 2)) == ["old", "new"]

    await publish(log, line, ["newer"])
    async with log.subscribe([line], group="late", start="end") as late:
        assert values(await done(late, 1)) == ["newer"], "where it begins is said once"


@pytest.mark.req("BUS-01")
async def test_a_group_may_read_several_topics(log: Log, line: str, orders: str) -> None:
    await publish(log, line, ["line"] * 3)
    await publish(log, orders, ["orders"] * 3)

    async with log.subscribe([line, orders, line], group="billing") as records:
        taken = await done(records, 6)

    assert (
        sorted((record.topic, record.value) for record in taken) == [("line", "line")] * 3 + [("orders", "orders")] * 3
    )


@pytest.mark.req("BUS-01", "BUS-02")
async def test_two_tenants_with_the_same_names_see_only_their_own(engine: Engine, acme: Engine) -> None:
    for tenant, who in ((engine, "default"), (acme, "acme")):
        await tenant.log.create("orders", partitions=1)
        await publish(tenant.log, "orders", [who] * 3)

    async with (
        engine.log.subscribe(["orders"], group="billing") as ours,
        acme.log.subscribe(["orders"], group="billing") as theirs,
    ):
        taken = await done(ours, 3)
        await publish(engine.log, "orders", ["default"])
        assert values(taken + await done(ours, 1)) == ["default"] * 4
        assert values(await done(theirs, 3)) == ["acme"] * 3

    assert values(await read(acme.log, "orders")) == ["acme"] * 3
    assert [topic.records for topic in await acme.log.topics() if topic.name == "orders"] == [3]
    assert {lag.position for lag in await engine.log.lag("billing")} == {4}
