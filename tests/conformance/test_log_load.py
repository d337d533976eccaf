"""Load: slow producers, consumers that come and go, and a topic far longer than a consumer's memory."""

import asyncio
import itertools
import random
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.bus import Log, Record
from holdfast.core.config import Config
from holdfast.core.errors import Busy
from holdfast.core.setting_sources import environment_name
from holdfast.engine import Engine
from tests.conformance.consumers import (
    PATIENCE,
    Consumer,
    Effects,
    done,
    positions,
    publish,
    take,
    until,
    while_working,
)
from tests.processes import Processes

PRODUCERS = 12
READER = str(Path(__file__).with_name("reader.py"))
FILL = 500  # records published at once
MEGABYTE = 1_000_000


async def fill(log: Log, topic: str, count: int, *, bytes: int = 100) -> None:
    """Publish so many records."""
    for start in range(0, count, FILL):
        await asyncio.gather(
            *(log.publish(topic, value=f"{number} {'x' * bytes}") for number in range(start, min(start + FILL, count)))
        )


@pytest.mark.req("BUS-01", "BUS-02")
@pytest.mark.parametrize("each", [15, pytest.param(300, marks=pytest.mark.soak)])
async def test_no_record_of_slow_producers_is_skipped_and_none_of_a_rolled_back_one_is_seen(
    engine: Engine, log: Log, orders: str, each: int
) -> None:
    dice = random.Random(each)
    committed: list[list[int]] = []
    seen: list[Record] = []

    async def produce(producer: int) -> None:
        for number in range(each):
            written = [[producer, number, part] for part in (0, 1)]
            with suppress(KeyError):
                async with engine.transaction() as tx:
                    for value in written:
                        await log.publish(orders, key=f"key {producer}", value=value, tx=tx)
                        await asyncio.sleep(dice.uniform(0, 0.02))  # with the partition's counter locked
                    if dice.random() < 0.2:
                        raise KeyError
                committed.extend(written)

    async def consume() -> None:
        async with log.subscribe([orders], group="billing") as records:
            async for record in records:
                await records.commit(record)
                seen.append(record)

    async def all_seen() -> bool:
        return len(seen) >= len(committed)

    consuming = asyncio.create_task(consume())
    await asyncio.gather(*(produce(producer) for producer in range(PRODUCERS)))
    committed += [[PRODUCERS, 0, 0], [PRODUCERS, 0, 1]]
    await publish(log, orders, committed[-2:])
    await while_working(consuming, all_seen)

    assert sorted(record.value for record in seen) == sorted(committed)
    for producer in range(PRODUCERS):
        own = [record.value for record in seen if record.value[0] == producer]
        assert own == sorted(own), "in order per key"
    for partition in range(4):
        offsets = [record.offset for record in seen if record.partition == partition]
        assert offsets == list(range(len(offsets))), "no gap"


@pytest.mark.req("BUS-01", "BUS-03")
@pytest.mark.parametrize("count", [600, pytest.param(20_000, marks=pytest.mark.soak(minutes=3))])
@pytest.mark.parametrize("bus", [{"partitions": 8, "batch": 20, "max_attempts": 1000}], ids=["small batches"])
async def test_ten_consumers_that_come_and_go_do_everything_once_and_in_order(
    engine: Engine, log: Log, orders: str, effects: Effects, config: Config, driver: str, count: int
) -> None:
    dice = random.Random(count)
    delivered: set[int] = set()
    enough = asyncio.Event()
    keys = [f"key {number}" for number in range(64)]

    async def live(name: int) -> None:
        """Join, work for a while, then leave or die; again and again."""
        for life in itertools.takewhile(lambda _: not enough.is_set(), itertools.count()):
            consumer = await Consumer.join(config, orders, group="billing")
            idle = dice.uniform(0.1, 1.0) * (1 if driver == "postgres" else 4)  # a client of Kafka connects first
            try:
                async with asyncio.timeout(idle) as limit:  # so long without a record, or in the middle of one
                    for _ in range(dice.randint(1, count // 50)):
                        record = await anext(consumer.records)
                        delivered.add(record.value)
                        async with consumer.records.handle(record) as tx:
                            await effects.add(tx, record, f"{name}/{life}")
                        limit.reschedule(asyncio.get_running_loop().time() + idle)
            except TimeoutError:
                pass
            finally:
                await (consumer.crash() if dice.random() < 0.2 else consumer.leave())

    async def produce() -> None:
        for number in range(count):
            await log.publish(orders, key=keys[number % len(keys)], value=number)

    async def all_done() -> bool:
        lags = await log.lag("billing")
        return len(lags) == 8 and sum(lag.position for lag in lags) >= count

    consumers = [asyncio.create_task(live(name)) for name in range(10)]
    try:
        await produce()
        await until(all_done, within=10 * PATIENCE)
    finally:
        enough.set()
        await asyncio.gather(*consumers)

    rows = await effects.all()
    assert delivered == set(range(count))
    assert Counter(row["value"] for row in rows) == Counter(range(count)), "each effect once"
    by_key: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_key[row["key"]].append(row["value"])
    assert all(values == sorted(values) for values in by_key.values())
    assert len({row["by"] for row in rows}) > 1, "more than one had a part in it"


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("bus", [{"batch": 40, "batch_bytes": 20_000}], ids=["small batches"])
async def test_a_slow_consumer_holds_a_bounded_number_of_records(log: Log, orders: str) -> None:
    await fill(log, orders, 5000)
    await fill(log, orders, 100, bytes=5000)
    sizes: list[int] = []
    counts: list[int] = []

    async with log.subscribe([orders], group="billing") as records:
        while sum(counts) < 5100:
            batch = await records.batch(10_000)  # all that it holds
            counts.append(len(batch))
            sizes.append(sum(len(record.value) for record in batch))
            await asyncio.gather(*map(records.commit, {record.partition: record for record in batch}.values()))

    assert sum(counts) == 5100
    assert max(counts) <= 40
    assert max(sizes) < 20_000 + 4 * 5100, "the bytes, and the last record of each partition"
    assert sum((await positions(log, "billing")).values()) == 5100


@pytest.mark.req("BUS-01")
@pytest.mark.soak
async def test_a_consumer_far_behind_needs_no_more_memory_than_one_that_is_not(
    log: Log, orders: str, config: Config, processes: Processes
) -> None:
    assert config.database.url is not None
    settings = {"database.url": config.database.url.get_secret_value(), "bus.url": config.bus.url}
    settings |= {"bus.prefix": config.bus.prefix, "data": str(config.data)}
    environment = {environment_name(key): value for key, value in settings.items() if value}

    async def peak(behind: int) -> int:
        await log.create(f"behind-{behind}", partitions=4)
        await fill(log, f"behind-{behind}", behind, bytes=1000)
        reader = processes.start(READER, f"behind-{behind}", str(behind), environment=environment)
        assert await asyncio.to_thread(reader.wait, timeout=600) == 0, reader.stderr
        return int(reader.stdout)

    few, many = await peak(2000), await peak(100_000)

    assert many < few + 30 * MEGABYTE, "100 MB were behind"


@pytest.mark.req("BUS-02")
async def test_a_publisher_who_is_cancelled_does_not_take_others_with_it(log: Log, line: str) -> None:
    publishing = [asyncio.create_task(log.publish(line, value=number)) for number in range(50)]
    await asyncio.sleep(0)
    for task in publishing[10:20]:
        task.cancel()
    outcomes = await asyncio.gather(*publishing, return_exceptions=True)

    kept = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Record)]
    stored = [record.value async for record in log.read(line)]
    assert len(kept) >= 40
    assert set(kept) <= set(stored)
    assert stored == sorted(set(stored)), "none twice, in order"


@pytest.mark.req("BUS-01")
async def test_a_commit_by_one_whose_partition_was_taken_is_refused(
    engine: Engine, log: Log, line: str, effects: Effects, config: Config
) -> None:
    await publish(log, line, [1])
    first = await Consumer.join(config, line, group="billing")
    (record,) = await take(first.records, 1)
    await first.leave()
    async with log.subscribe([line], group="billing") as records:
        (again,) = await done(records, 1)

        with pytest.raises(Busy, match="this consumer no longer owns"):  # noqa: PT012 - a transaction is several statements
            async with engine.transaction() as tx:
                await effects.add(tx, record)
                await records.commit(record, tx=tx)

    assert (again.id, await effects.values()) == (record.id, [])
