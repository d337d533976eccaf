"""Committing many records at once: one statement for all their partitions, all of them or none."""

import pytest

from holdfast.bus import Log
from holdfast.core.errors import Busy
from holdfast.engine import Engine
from tests.conformance.consumers import Effects, Join, take, values


@pytest.mark.req("BUS-01", "BUS-03")
async def test_a_batch_over_several_partitions_is_committed_in_one_call(log: Log, orders: str, join: Join) -> None:
    for n in range(40):
        await log.publish(orders, key=str(n), value=n)
    consumer = await join(orders, group="billing")
    records = await take(consumer.records, 40)
    assert len({record.partition for record in records}) > 1

    await consumer.records.commit(*records)

    assert sum(lag.lag for lag in await log.lag("billing")) == 0


@pytest.mark.req("BUS-01", "BUS-03")
async def test_a_batch_of_which_one_partition_was_lost_is_not_committed_at_all(
    engine: Engine, log: Log, orders: str, effects: Effects, join: Join
) -> None:
    for n in range(40):
        await log.publish(orders, key=str(n), value=n)
    consumer = await join(orders, group="billing")
    records = await take(consumer.records, 40)
    first = records[0]
    taken = "update consumer_offset set epoch = epoch + 1 where tenant_id = $1 and topic = $2 and partition = $3"
    await engine.database.run(taken, first.topic, first.partition)

    with pytest.raises(Busy):  # noqa: PT012 - a transaction is several statements
        async with consumer.engine.transaction() as tx:
            await effects.add(tx, first)
            await consumer.records.commit(*records, tx=tx)

    assert await effects.values() == []
    assert sum(lag.lag for lag in await log.lag("billing")) == 40
    assert sorted(values(await take(consumer.records, 40))) == list(range(40)), "they are delivered again"
