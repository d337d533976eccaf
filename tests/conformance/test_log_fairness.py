"""Fairness: a topic that is far behind does not keep the records of others from their reader."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.bus import Log
from tests.conformance.consumers import PATIENCE, until
from tests.conformance.test_log_load import fill

BEHIND = 6000
BATCH = 20
BOUND = 50 * BATCH  # records of the full topic that may come first: what is held, and what is taken while others come


@pytest.fixture
def carried(log: Log, driver: str) -> Callable[[], Awaitable[bool]]:
    """Whether Kafka has everything, where there is one."""

    async def is_carried() -> bool:
        sent = {lag.topic: lag.lag for lag in await log.lag(".relay")}
        return driver == "postgres" or (sent.get("full"), sent.get("other")) == (0, 0)

    return is_carried


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("bus", [{"batch": BATCH}], ids=["small batches"])
@pytest.mark.parametrize("topics", [["full", "other"], ["other", "full"]])
async def test_a_record_on_another_topic_does_not_wait_until_a_full_one_is_read(
    log: Log, topics: list[str], carried: Callable[[], Awaitable[bool]]
) -> None:
    for topic in topics:
        await log.create(topic, partitions=1)
    await fill(log, "full", BEHIND)
    await log.publish("other", value="urgent")
    await until(carried)
    before = 0

    async with asyncio.timeout(2 * PATIENCE), log.subscribe(topics, group="billing") as records:
        async for record in records:
            await records.commit(record)
            if record.topic == "other":
                break
            before += 1

    assert before <= BOUND


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("bus", [{"batch": BATCH}], ids=["small batches"])
async def test_a_record_that_comes_late_does_not_wait_until_a_full_topic_is_read(
    log: Log, carried: Callable[[], Awaitable[bool]]
) -> None:
    for topic in ("full", "other"):
        await log.create(topic, partitions=1)
    await log.publish("other", value="early")  # once it has come, the client reads both topics
    await fill(log, "full", BEHIND)
    after, early, published = 0, False, False

    async with asyncio.timeout(2 * PATIENCE), log.subscribe(["full", "other"], group="billing") as records:
        async for record in records:
            await records.commit(record)
            early = early or record.value == "early"
            if record.value == "urgent":
                break
            if published:
                after += 1
            elif early and record.topic == "full" and record.offset >= 100:
                await log.publish("other", value="urgent")
                await until(carried)
                published = True

    assert after <= BOUND
