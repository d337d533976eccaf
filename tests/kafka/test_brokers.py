"""The broker: what things are called there, how it is reached, and what is said when it is not."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from holdfast.bus.kafka.brokers import Broker as Brokers
from holdfast.bus.kafka.brokers import SharedClient
from holdfast.core.config import Config, load_config
from holdfast.core.errors import BadSetting, Unavailable
from holdfast.core.settings import BusSettings
from holdfast.engine import Engine, open_engine
from tests.conformance.consumers import done, publish, until, values
from tests.kafka.broker import PASSWORD, USER, Broker
from tests.kafka.plain import Plain

NOWHERE = "127.0.0.1:9"  # nobody listens there
QUIET = "log_level=0"


def settings(tmp_path: Path, **bus: object) -> BusSettings:
    """Settings of a bus."""
    given = {f"bus.{name}": value for name, value in bus.items()}
    return load_config(given, environ={}, cwd=tmp_path).bus


def login(broker: Broker, password: str) -> dict[str, Any]:
    """Settings for the listener that asks who it is."""
    return {
        "url": f"kafka://{broker.asking_address}",
        "security_protocol": "sasl_plaintext",
        "sasl_mechanism": "PLAIN",
        "sasl_username": USER,
        "sasl_password": password,
    }


@pytest.mark.parametrize(
    ("prefix", "tenant", "name"),
    [
        ("", "default", "orders"),
        ("", "acme", "acme.orders"),
        ("eu-", "default", "eu-orders"),
        ("eu-", "a", "eu-a.orders"),
    ],
)
@pytest.mark.req("BUS-01")
def test_the_tenant_leads_the_name_but_for_default(tmp_path: Path, prefix: str, tenant: str, name: str) -> None:
    assert Brokers(settings(tmp_path, prefix=prefix)).name(tenant, "orders") == name


@pytest.mark.req("BUS-01")
async def test_a_topic_is_made_with_its_partitions_and_one_with_fewer_gets_the_rest(
    engine: Engine, acme: Engine, plain: Plain
) -> None:
    await plain.create("narrow", 1)

    await engine.log.create("orders", partitions=3)
    await engine.log.create("narrow", partitions=4)
    await acme.log.create("orders", partitions=2)

    wanted = {plain.name("orders"): 3, plain.name("narrow"): 4, plain.name("acme.orders"): 2}

    async def made() -> bool:
        return await plain.topics() == wanted

    await until(made)


@pytest.mark.req("BUS-01", "ENG-04")
async def test_two_tenants_with_a_topic_and_a_group_of_the_same_name_share_neither(
    engine: Engine, acme: Engine, plain: Plain
) -> None:
    for one in (engine, acme):
        await one.log.create("orders", partitions=1)
    await publish(engine.log, "orders", ["ours"])
    await publish(acme.log, "orders", ["theirs"])

    async with (
        engine.log.subscribe(["orders"], group="billing") as ours,
        acme.log.subscribe(["orders"], group="billing") as theirs,
    ):
        assert values(await done(ours, 1)) == ["ours"]
        assert values(await done(theirs, 1)) == ["theirs"]

        async def told() -> bool:
            return (
                1 == await plain.committed("billing", "orders") == await plain.committed("acme.billing", "acme.orders")
            )

        await until(told)


@pytest.mark.req("BUS-01")
async def test_the_check_tells_what_answers(broker: Broker, tmp_path: Path) -> None:
    told = await Brokers(settings(tmp_path, url=f"kafka://{broker.address}")).check()

    assert told.startswith("brokers: 1, topics: ")


@pytest.mark.req("BUS-01")
async def test_offsets_are_told_of_the_partitions_that_there_are(broker: Broker, tmp_path: Path) -> None:
    brokers = Brokers(settings(tmp_path, url=f"kafka://{broker.address}"))
    topic = f"t-{uuid4()}"
    await brokers.ensure(topic, 2)
    places = [(topic, 0), (topic, 1), (topic, 7), ("no-such-topic", 0)]

    ranges, ends = await brokers.ranges(places, timeout=10), await brokers.ends(places)
    nothing = await brokers.ranges(places[3:], timeout=10)
    await brokers.close()

    assert ranges == dict.fromkeys(places[:2], (0, 0))
    assert ends == dict.fromkeys(places[:2], 0)
    assert nothing == {}


@pytest.mark.req("BUS-01")
async def test_offsets_are_asked_for_again_while_a_partition_has_no_leader(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = Brokers(settings(tmp_path, url=f"kafka://{broker.address}"))
    topic = f"t-{uuid4()}"
    await brokers.ensure(topic, 1)
    refusals = [KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))] * 2

    class Reader(Consumer):
        def offsets_for_times(self, *given: Any, **options: Any) -> Any:
            if refusals:
                raise refusals.pop()
            return super().offsets_for_times(*given, **options)

    monkeypatch.setattr("holdfast.bus.kafka.brokers.Consumer", Reader)
    ranges = await brokers.ranges([(topic, 0)], timeout=10)
    await brokers.close()

    assert (ranges, refusals) == ({(topic, 0): (0, 0)}, [])


@pytest.mark.req("BUS-01")
async def test_a_client_is_closed_when_its_last_user_is_done(broker: Broker) -> None:
    shared: SharedClient[Any] = SharedClient(lambda: AdminClient({"bootstrap.servers": broker.address}))

    with shared.use() as first, shared.use() as second:
        shared.close()
        topics = first.list_topics(timeout=10)

    assert first is second
    assert topics.brokers
    with pytest.raises(RuntimeError, match="closed"):
        first.list_topics(timeout=10)


@pytest.mark.req("BUS-01")
async def test_a_broker_that_is_not_there_is_unavailable_and_nobody_else_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.bus.kafka.brokers.TIMEOUT", 2.0)
    brokers = Brokers(settings(tmp_path, url=f"kafka://{NOWHERE}", options=QUIET))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    working = asyncio.create_task(others())
    with pytest.raises(Unavailable, match=NOWHERE) as checking:
        await brokers.check()
    with pytest.raises(Unavailable, match=r"bus\.url is correct"):
        await brokers.ensure("orders", 1)
    working.cancel()

    assert "Connection refused" in str(checking.value)
    assert turns > 20


@pytest.mark.req("BUS-01")
async def test_publishing_works_though_the_broker_is_not_there(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.bus.kafka.brokers.TIMEOUT", 1.0)
    bus = config.bus.model_copy(update={"url": f"kafka://{NOWHERE}", "options": (QUIET,)})
    async with open_engine(config=config.model_copy(update={"bus": bus})) as engine:
        await engine.log.create("line", partitions=1)
        await publish(engine.log, "line", range(3))

        assert [record.value async for record in engine.log.read("line")] == [0, 1, 2]


@pytest.mark.req("BUS-01")
async def test_a_password_is_passed_on_and_records_arrive(config: Config, broker: Broker) -> None:
    bus = BusSettings.model_validate({**config.bus.model_dump(), **login(broker, PASSWORD)})
    assert "brokers: 1" in await Brokers(bus).check()
    async with open_engine(config=config.model_copy(update={"bus": bus})) as engine:
        await engine.log.create("line", partitions=1)
        await publish(engine.log, "line", range(3))

        async with engine.log.subscribe(["line"], group="billing") as records:
            assert values(await done(records, 3)) == [0, 1, 2]


@pytest.mark.req("BUS-01")
async def test_a_wrong_password_is_told(config: Config, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.bus.kafka.brokers.TIMEOUT", 3.0)
    wrong = {**login(broker, "let me in"), "options": (QUIET,)}
    bus = BusSettings.model_validate({**config.bus.model_dump(), **wrong})
    with pytest.raises(Unavailable, match="Authentication failed: Invalid username or password"):
        await Brokers(bus).check()

    async with open_engine(config=config.model_copy(update={"bus": bus})) as engine:
        await engine.log.create("line", partitions=1)
        await publish(engine.log, "line", [1])

        async def told() -> bool:
            return "Invalid username or password" in str(await engine.parts())

        await until(told)


@pytest.mark.req("BUS-01")
async def test_a_file_of_certificates_that_is_not_there_is_told(tmp_path: Path, broker: Broker) -> None:
    bus = settings(tmp_path, url=f"kafka://{broker.address}", security_protocol="ssl", ssl_ca="/nowhere/ca.pem")

    with pytest.raises(BadSetting, match=r"/nowhere/ca\.pem"):
        await Brokers(bus).check()


@pytest.mark.req("BUS-01")
async def test_tls_is_asked_for_where_it_is_set(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.bus.kafka.brokers.TIMEOUT", 3.0)
    bus = settings(tmp_path, url=f"kafka://{broker.address}", security_protocol="ssl", options=QUIET)

    with pytest.raises(Unavailable, match="ssl://"):
        await Brokers(bus).check()


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize(
    ("option", "told"),
    [("no.such.option=1", "no.such.option"), ("linger.ms=soon", "Invalid value"), ("client.rack", "has no value")],
)
async def test_an_option_that_the_client_does_not_know_is_a_bad_setting(
    tmp_path: Path, broker: Broker, option: str, told: str
) -> None:
    brokers = Brokers(settings(tmp_path, url=f"kafka://{broker.address}", options=option))

    with pytest.raises(BadSetting, match=told):
        await brokers.check()
    with pytest.raises(BadSetting, match=told):
        await brokers.ensure("orders", 1)


@pytest.mark.req("BUS-01")
def test_options_go_before_our_own_settings(tmp_path: Path) -> None:
    brokers = Brokers(settings(tmp_path, url="kafka://one:9092,two:9092", options="client.rack=a, linger.ms = 7"))

    client = brokers.client({"linger.ms": 2})

    assert (client["client.rack"], client["linger.ms"]) == ("a", "7")
    assert client["bootstrap.servers"] == "one:9092,two:9092"
