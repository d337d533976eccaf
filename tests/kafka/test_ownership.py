"""Who owns a partition: PostgreSQL has the last word, and nobody waits longer than needed for what it has decided."""

# pyright: reportPrivateUsage=false

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from holdfast.bus import Log, Record
from holdfast.bus.kafka.bridge import Bridge, StartPosition
from holdfast.bus.kafka.kafka_feed import OVERDUE
from holdfast.core.config import Config
from holdfast.core.errors import Busy
from holdfast.engine import Engine, open_engine
from tests.conformance.consumers import Consumer, Join, done, positions, publish, until, values
from tests.kafka.plain import Plain

GIVE_TO_THE_OTHER = """
update consumer_offset o set epoch = epoch + 1,
  owner = (select m.id from consumer_member m where m.group_name = o.group_name and m.id <> o.owner)
where group_name = 'billing'
"""


async def who_reads(one: Consumer, two: Consumer) -> tuple[Consumer, Record]:
    """The one of two consumers that gets the next record."""
    reading = {asyncio.create_task(anext(consumer.records)): consumer for consumer in (one, two)}
    finished, waiting = await asyncio.wait(reading, timeout=60, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.wait(reading)
    (task,) = finished
    return reading[task], task.result()


@pytest.mark.req("BUS-01", "BUS-03")
async def test_a_partition_that_was_given_to_another_member_is_read_there(
    engine: Engine, log: Log, line: str, join: Join
) -> None:
    await publish(log, line, [1, 2])
    one, two = await join(line, group="billing"), await join(line, group="billing")
    reader, record = await who_reads(one, two)
    async with engine.postgres.owner() as owner:
        await owner.script(GIVE_TO_THE_OTHER)

    with pytest.raises(Busy, match="this consumer no longer owns"):
        await reader.records.commit(record)

    assert values(await done(two.records if reader is one else one.records, 2)) == [1, 2]


@pytest.mark.req("BUS-01", "BUS-03")
@pytest.mark.parametrize("bus", [{"lease": 600}], ids=["a long lease"])
async def test_members_that_come_and_go_keep_nobody_from_reading(log: Log, orders: str, join: Join) -> None:
    reader, coming = await join(orders, group="billing"), True

    async def come_and_go() -> None:
        while coming:
            await (await join(orders, group="billing")).leave()

    async def read() -> None:
        async for record in reader.records:
            await reader.records.commit(record)

    async def all_read() -> bool:
        return sum((await positions(log, "billing")).values()) == 50

    others = [asyncio.create_task(come_and_go()) for _ in range(2)]
    try:
        for number in range(50):
            await log.publish(orders, key=str(number), value=number)
        reading = asyncio.create_task(read())
        await until(all_read, within=30)
        reading.cancel()
    finally:
        coming = False
        await asyncio.gather(*others)


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("bus", [{"batch": 7}], ids=["pages of seven"])
async def test_many_records_that_kafka_has_dropped_are_read_without_a_pause_after_each_page(
    log: Log, line: str, plain: Plain
) -> None:
    await publish(log, line, range(50))
    await plain.read(line, 50)
    await plain.delete_records(line, 50)

    async with log.subscribe([line], group="billing") as records:
        first = await done(records, 1)
        started = time.monotonic()
        rest = await done(records, 49)

    assert values(first + rest) == list(range(50))
    assert time.monotonic() - started < 4 * OVERDUE, "seven pages"


@pytest.mark.req("BUS-01", "BUS-03")
@pytest.mark.parametrize("bus", [{"lease": 600}], ids=["a long lease"])
async def test_another_process_relays_as_soon_as_the_one_that_did_stops(config: Config, plain: Plain) -> None:
    async with open_engine(config=config) as first:
        await first.log.create("line", partitions=1)
        await publish(first.log, "line", [1])
        await plain.read("line", 1)
        second = open_engine(config=config)
        engine = await second.__aenter__()
    try:
        await publish(engine.log, "line", [2])

        assert len(await plain.read("line", 2)) == 2
    finally:
        await second.__aexit__(None, None, None)


class Reader:
    """What a Kafka client is told; it refuses to seek once."""

    def __init__(self) -> None:
        self.sought: list[int] = []
        self.resumed = 0

    def pause(self, places: Sequence[TopicPartition]) -> None:
        """Nothing is read."""

    def resume(self, places: Sequence[TopicPartition]) -> None:
        """Read on."""
        self.resumed += 1

    def seek(self, place: TopicPartition) -> None:
        """Read from somewhere else."""
        self.sought.append(place.offset)
        if len(self.sought) == 1:
            raise KafkaException(KafkaError(KafkaError._STATE))  # pyright: ignore[reportPrivateUsage]

    def incremental_assign(self, places: Sequence[TopicPartition]) -> None:
        """Begin."""

    def incremental_unassign(self, places: Sequence[TopicPartition]) -> None:
        """End."""


@pytest.mark.req("BUS-01", "BUS-03")
async def test_an_order_for_an_earlier_assignment_does_not_touch_a_later_one() -> None:
    place = ("line", 0)
    client: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "group.id": "billing", "log_level": 0}
    bridge = Bridge(client, lambda _: None, most=10, most_bytes=1000)
    reader: Any = Reader()
    bridge.begin({place: StartPosition(0, 10)})
    bridge.seek(place, 5, 11, 0)
    bridge._run_requests(reader)  # the client cannot seek yet: it is tried again a little later

    bridge.end([place])
    bridge.begin({place: StartPosition(0, 20)})
    bridge._run_requests(reader)
    begun = reader.resumed

    async def tried_again() -> bool:
        return not bridge._requests.empty()

    await until(tried_again)
    bridge._run_requests(reader)

    assert begun == 2, "the client may remember that the partition was paused"
    assert reader.sought == [5], "and not again"
    assert bridge._generations[place] == 20
