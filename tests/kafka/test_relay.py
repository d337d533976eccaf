"""The relay: everything that was published reaches Kafka, in order, whoever dies or hangs meanwhile."""

import asyncio
import math
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from holdfast.bus import Log
from holdfast.core.config import Config
from holdfast.core.setting_sources import environment_name
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import Row
from tests.conformance.consumers import PATIENCE, done, publish, until, values
from tests.kafka.broker import Broker
from tests.kafka.plain import Plain
from tests.processes import Process, Processes

RELAYS = str(Path(__file__).with_name("relays.py"))
LEASES = "select share, holder, epoch from relay_lease order by share"
SENT = "select position, updated_at from consumer_offset where tenant_id = $1 and group_name = '.relay' and topic = $2"


async def sent(engine: Engine, topic: str) -> tuple[int, datetime | None]:
    """How far the relay is with a topic of one partition, and since when."""
    row = await engine.database.one(SENT, topic)
    return (0, None) if row is None else (row["position"], row["updated_at"])


async def leases(engine: Engine) -> list[Row]:
    """Who relays, at which epoch."""
    return await engine.postgres.system.all(LEASES)


async def log_part(engine: Engine) -> tuple[str, str]:
    """How the log does, as readiness shows it."""
    (part,) = [part for part in await engine.parts() if part.name == "log"]
    return part.state, part.detail


async def until_state(engine: Engine, state: str) -> str:
    """Wait until the log is in this state; what it says then."""

    async def reached() -> bool:
        return (await log_part(engine))[0] == state

    await until(reached)
    return (await log_part(engine))[1]


def environment(config: Config) -> Mapping[str, str]:
    """The settings, for another process."""
    assert config.database.url is not None
    bus = {"url": config.bus.url, "prefix": config.bus.prefix, "lease": config.bus.lease, "partitions": 4}
    settings = {"database.url": config.database.url.get_secret_value(), "data": config.data}
    settings |= {f"bus.{name}": value for name, value in bus.items()}
    return {environment_name(key): str(value) for key, value in settings.items()}


@asynccontextmanager
async def beside(config: Config, processes: Processes, *how: str) -> AsyncGenerator[tuple[Process, Engine]]:
    """A process that relays, and an engine that would if the process did not."""
    process = processes.start(RELAYS, *how, environment=environment(config))
    await asyncio.to_thread(process.wait_for, "open")
    async with open_engine(config=config) as engine:

        async def held() -> bool:
            return all(row["holder"] is not None for row in await leases(engine))

        await until(held)
        yield process, engine


@pytest.mark.req("BUS-01", "EDA-01")
async def test_a_plain_client_reads_what_was_published_in_order_with_key_and_headers(
    engine: Engine, log: Log, orders: str, plain: Plain
) -> None:
    keys = ["ann", "bob", "eve"]
    for number in range(60):
        await log.publish(orders, key=keys[number % 3], value={"number": number}, headers={"shop": "köln"})

    seen = await plain.read(orders, 60, partitions=4)

    for key in keys:
        own = [record for record in seen if record.key == key.encode()]
        numbers = [number for number in range(60) if keys[number % 3] == key]
        assert [record.value for record in own] == [b'{"number":%d}' % number for number in numbers]
        assert len({record.partition for record in own}) == 1
    assert all(("shop", "köln".encode()) in record.headers for record in seen)
    assert all(("content-type", b"application/json") in record.headers for record in seen)
    for partition in {record.partition for record in seen}:
        offsets = [record.log_offset for record in seen if record.partition == partition]
        assert offsets == list(range(len(offsets)))


@pytest.mark.req("BUS-01")
async def test_a_broker_that_hangs_delays_records_and_the_log_says_so(
    engine: Engine, log: Log, line: str, broker: Broker
) -> None:
    async with log.subscribe([line], group="billing") as records:
        await publish(log, line, [0])
        await done(records, 1)
        broker.pause()
        await publish(log, line, range(1, 20))

        told = await until_state(engine, "reduced")
        position, _ = await sent(engine, line)
        broker.resume()
        rest = await done(records, 19)

    assert "does not respond" in told
    assert "Records wait in PostgreSQL until then; none is lost" in told
    assert broker.address in told
    assert position == 1, "it moves after the acknowledgement"
    assert values(rest) == list(range(1, 20))
    assert broker.address in await until_state(engine, "ok")


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("seconds", [20, pytest.param(180, marks=pytest.mark.soak(minutes=3))])
async def test_a_broker_that_is_killed_delays_records_loses_none_and_needs_no_hand(
    engine: Engine, log: Log, line: str, broker: Broker, seconds: float
) -> None:
    async with log.subscribe([line], group="billing") as records:
        await publish(log, line, range(10))
        before = await done(records, 5)
        broker.kill()
        await publish(log, line, range(10, 20))
        told = await until_state(engine, "reduced")
        await asyncio.sleep(seconds)  # the outage itself
        await publish(log, line, range(20, 30))

        await asyncio.to_thread(broker.restart)
        after = await done(records, 25)

    assert "none is lost" in told
    assert values(before + after) == list(range(30))
    await until_state(engine, "ok")


@pytest.mark.req("BUS-01")
async def test_one_process_relays_and_another_takes_over_when_it_is_killed(
    config: Config, processes: Processes, plain: Plain
) -> None:
    async with beside(config, processes) as (process, engine):
        await engine.log.create("line", partitions=1)
        first = await leases(engine)
        await publish(engine.log, "line", range(50))
        await plain.read("line", 50)
        assert await leases(engine) == first, "one at a time, and the same one"

        process.kill()
        await publish(engine.log, "line", range(50, 100))
        seen = await plain.read("line", 100)
        second = await leases(engine)

    assert {record.log_offset for record in seen} >= set(range(50)), "nothing is lost"
    assert {row["holder"] for row in second}.isdisjoint({row["holder"] for row in first})
    assert [row["epoch"] for row in second] == [row["epoch"] + 1 for row in first]


@pytest.mark.req("BUS-01", "BUS-03")
async def test_a_relay_that_hung_past_its_lease_does_no_harm_when_it_goes_on(
    config: Config, processes: Processes, plain: Plain
) -> None:
    async with beside(config, processes, "stop") as (process, engine):
        await engine.log.create("line", partitions=1)
        async with engine.log.subscribe(["line"], group="billing") as records:
            async with engine.transaction() as tx:  # it has them all in hand
                for number in range(10):
                    await engine.log.publish("line", value=number, tx=tx)

            async def hung() -> bool:
                return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED

            await until(hung)
            await publish(engine.log, "line", range(10, 20))
            before = await done(records, 20)

            async def all_sent() -> bool:
                return (await sent(engine, "line"))[0] == 20

            await until(all_sent)
            position = await sent(engine, "line")
            process.send(signal.SIGCONT)
            await asyncio.to_thread(process.wait_for, "moved")
            after_it = await sent(engine, "line")
            await publish(engine.log, "line", [20])
            after = await done(records, 1)
        seen = await plain.read("line", 31)

    offsets = [record.log_offset for record in seen]
    assert offsets[:20] == list(range(20))
    assert sorted(cast(list[int], offsets[20:])) == [*range(10), 20], "it sent what another had sent"
    assert after_it == position, "its positions were not taken"
    assert values(before + after) == list(range(21)), "and consumers dropped what is not newer"


@pytest.mark.req("BUS-01")
async def test_a_record_larger_than_the_broker_takes_arrives_all_the_same(
    engine: Engine, log: Log, line: str, plain: Plain
) -> None:
    await plain.set(line, "max.message.bytes", "2000")
    given = ["small", "x" * 5000, "small again", "y" * 9000, "last"]

    await publish(log, line, given, key="a")

    async with log.subscribe([line], group="billing") as records:
        arrived = await done(records, 5)
    seen = await plain.read(line, 5)
    assert values(arrived) == given
    assert [record.offset for record in arrived] == [0, 1, 2, 3, 4]
    marks = [record for record in seen if ("holdfast-elsewhere", b"postgres") in record.headers]
    assert [(mark.log_offset, mark.value) for mark in marks] == [(1, b"null"), (3, b"null")]


@pytest.mark.req("BUS-01")
async def test_what_json_or_a_header_cannot_say_arrives_exact(engine: Engine, log: Log, line: str) -> None:
    given: list[dict[str, Any]] = [
        {"value": "a\0b"},
        {"value": "\ud800 alone", "key": "\ud800"},
        {"value": [1e300, math.inf, -math.inf, 2**70, "\U0010fffe"]},
        {"value": 1, "key": ""},
        {"value": 2, "headers": {"a\0": "b\0", "\udfff": "\udfff", "é": "é"}},
        {"value": 3, "headers": {"holdfast-offset": "mine", "holdfast-elsewhere": "too"}},
        {"value": None, "key": None},
        {"value": math.nan},
    ]
    published = [await log.publish(line, **one) for one in given]

    async with log.subscribe([line], group="billing") as records:
        arrived = await done(records, len(given))

    assert math.isnan(arrived.pop().value)
    for got, want in zip(arrived, published, strict=False):
        assert (got.value, got.key, got.headers, got.at) == (want.value, want.key, want.headers, want.at)
        assert (got.id, got.offset, got.partition) == (want.id, want.offset, want.partition)
    assert [type(number) for number in arrived[2].value] == [float, float, float, int, str]


@pytest.mark.req("BUS-01")
async def test_a_topic_removed_at_the_broker_is_made_again_and_nothing_is_missing(
    engine: Engine, log: Log, line: str, plain: Plain
) -> None:
    await publish(log, line, range(5))
    await plain.read(line, 5)
    await plain.remove(line)

    await publish(log, line, range(5, 8))

    async with log.subscribe([line], group="billing") as records:
        assert values(await done(records, 8)) == list(range(8))
    assert plain.name(line) in await plain.topics()


@pytest.mark.req("BUS-01")
async def test_what_a_removed_topic_had_is_not_delivered_by_a_new_one_of_its_name(
    engine: Engine, log: Log, line: str, plain: Plain
) -> None:
    await publish(log, line, ["old 0", "old 1", "old 2"])
    await plain.read(line, 3)
    async with log.subscribe([line], group="running") as running:
        assert values(await done(running, 3)) == ["old 0", "old 1", "old 2"]

        await log.remove(line)
        await log.create(line, partitions=1)
        await publish(log, line, ["new 0", "new 1"])

        async with log.subscribe([line], group="billing") as records:
            assert values(await done(records, 2)) == ["new 0", "new 1"]
        assert values(await done(running, 2)) == ["new 0", "new 1"], "also to one who read the old one"
    assert await plain.end(line) == 5


@pytest.mark.req("BUS-01", "ENG-04")
async def test_a_topic_that_the_broker_refuses_holds_up_no_other(
    engine: Engine, log: Log, acme: Engine, line: str
) -> None:
    # To Kafka `acme_orders` and `acme.orders` are too much alike.
    await log.create("acme_orders", partitions=1)
    await acme.log.create("orders", partitions=1)
    await acme.log.publish("orders", value="held up")

    told = await until_state(engine, "reduced")
    await publish(log, line, range(3))
    async with log.subscribe([line], group="billing") as records:
        arrived = await done(records, 3)

    assert "acme.orders" in told
    assert "collides" in told
    assert values(arrived) == [0, 1, 2]


@pytest.mark.req("BUS-01")
async def test_an_engine_that_closes_does_not_wait_for_a_broker_that_hangs(
    config: Config, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.bus.kafka.relay.DELIVERY", 600.0)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(config=config))
        await engine.log.create("line", partitions=1)
        await publish(engine.log, "line", [0])
        broker.pause()
        await publish(engine.log, "line", [1])
        await until_state(engine, "reduced")

        async with asyncio.timeout(PATIENCE):
            await stack.aclose()
