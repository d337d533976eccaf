"""Lag on Kafka: records of foreign producers are unread records like ours."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.bus import Lag, Log, Record
from holdfast.bus.kafka.brokers import Broker, Range
from holdfast.bus.kafka.kafka_lag import GroupProgress, KafkaLag, lag_of
from holdfast.core.config import Config
from holdfast.core.errors import Unavailable
from holdfast.engine import Engine
from holdfast.postgres.database import Transaction
from tests.conformance.consumers import done, handle_until, publish, take, until
from tests.kafka.plain import Plain

PLACE = ("orders", 0)


async def nothing(record: Record, tx: Transaction) -> None:
    """Do nothing about a record."""


async def lag_on(log: Log, topic: str) -> Lag:
    """How far the group `billing` is behind on a topic with one partition."""
    (lag,) = [lag for lag in await log.lag("billing") if lag.topic == topic]
    return lag


@pytest.mark.req("BUS-04")
@pytest.mark.parametrize(
    ("position", "end", "broker_position", "known", "lag"),
    [
        (0, 0, None, Range(0, 2000), 2000),  # a group that has read nothing
        (5, 5, 5, Range(0, 2005), 2000),
        (5, 8, 5, Range(0, 8), 3),  # ours alone
        (5, 8, 5, Range(0, 5), 3),  # the relay has not sent them yet
        (5, 8, 5, Range(0, 12), 7),  # three of ours and four of others
        (5, 5, 9, Range(0, 9), 0),
        (5, 5, 3, Range(100, 110), 10),  # Kafka has dropped what it had
        (5, 5, None, Range(0, 20), 0),  # it has read from PostgreSQL only: nobody knows where it is on Kafka
        (5, 8, 5, None, 3),  # the broker does not answer
    ],
)
def test_lag_counts_what_kafka_has_beyond_the_position(
    position: int, end: int, broker_position: int | None, known: Range | None, lag: int
) -> None:
    assert lag_of(GroupProgress(PLACE, position, end, broker_position), known) == lag


@pytest.mark.req("BUS-04")
async def test_unread_records_of_foreign_producers_are_counted_everywhere(
    engine: Engine, log: Log, line: str, plain: Plain
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    await publish(log, line, [1, 2])
    async with log.subscribe([line], group="billing") as records:
        await done(records, 2)
    await plain.produce_many(line, [b'"foreign"'] * 2000)

    async def counted() -> bool:
        return (await lag_on(log, line)).lag == 2000

    await until(counted)
    lag = await lag_on(log, line)
    (topic,) = [topic for topic in await log.topics() if topic.name == line]
    gauges = engine.log_gauges(None)
    (gauge,) = [one for one in await gauges.groups() if (one.group, one.topic) == ("billing", line)]
    (counter,) = [one for one in await gauges.topics() if one.topic == line]
    assert (lag.position, lag.end, topic.records) == (2, 2, 2002)
    assert lag.oldest is not None
    assert before < lag.oldest < datetime.now(UTC) + timedelta(seconds=1)
    assert (gauge.lag, counter.records) == (2000, 2002)
    assert 0 < gauge.age < (datetime.now(UTC) - before).total_seconds() + 1


@pytest.mark.req("BUS-04")
async def test_lag_falls_as_foreign_records_are_read(log: Log, line: str, plain: Plain) -> None:
    await plain.produce_many(line, [b"1"] * 10)
    async with log.subscribe([line], group="billing") as records:
        taken = await take(records, 10)
        await records.commit(taken[3])

        async def six() -> bool:
            return (await lag_on(log, line)).lag == 6

        await until(six)
        await records.commit(taken[-1])

        async def none() -> bool:
            return (await lag_on(log, line)).lag == 0

        await until(none)
        assert (await lag_on(log, line)).oldest is None


@pytest.mark.req("BUS-04")
@pytest.mark.parametrize("what", ["sent twice", "not JSON"])
async def test_what_no_record_is_delivered_for_is_not_unread_for_ever(
    log: Log, line: str, plain: Plain, what: str
) -> None:
    await publish(log, line, range(3))
    seen = await plain.read(line, 3)
    async with log.subscribe([line], group="billing") as records:
        await done(records, 3)
        if what == "sent twice":
            for one in seen:
                await plain.copy(one, line)
        else:
            await plain.produce(line, b"{not json")

        async def none_unread() -> bool:
            read = (await lag_on(log, line)).lag == 0
            return read and await plain.committed("billing", line) == await plain.end(line)

        await handle_until(records, nothing, none_unread)


@pytest.mark.req("BUS-04")
async def test_a_group_that_begins_at_the_end_has_nothing_unread(log: Log, line: str, plain: Plain) -> None:
    await plain.produce_many(line, [b"1"] * 10)

    async with log.subscribe([line], group="billing", start="end") as records:
        await publish(log, line, ["new"])
        await done(records, 1)

        async def none() -> bool:
            return (await lag_on(log, line)).lag == 0

        await until(none)


@pytest.mark.req("BUS-04")
async def test_a_broker_that_is_away_is_asked_again_later_and_ours_are_counted(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []
    now = 1000.0

    class Away(Broker):
        async def ranges(self, places: object, *, timeout: float) -> dict[tuple[str, int], Range]:
            asked.append(1)
            raise Unavailable("Kafka is away")

    unread = KafkaLag(Away(config.bus), clock=lambda: now)
    first = await unread.of([GroupProgress(PLACE, 5, 8, 5)])
    await unread.of([GroupProgress(PLACE, 5, 8, 5)])
    now += 60
    await unread.of([GroupProgress(PLACE, 5, 8, 5)])

    assert [one.lag for one in first] == [3]
    assert len(asked) == 2
    assert "Kafka is away" in caplog.text
