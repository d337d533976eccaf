import uuid
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.kafka.broker import Broker, broker_or_skip, jars, missing
from tests.processes import Processes, wait_until_gone

pytestmark = pytest.mark.req("BUS-01")

ROOT = Path(__file__).parents[2]
PATIENCE = 30
PROGRAM = """
import sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.kafka.broker import Broker
print("pid", Broker.start(Path(sys.argv[2])).pid, "started", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of the test's own, with one partition."""
    name = f"test-{uuid.uuid4()}"
    admin: Any = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})  # its futures say no type
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE)
    return name


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any program, on which no broker ever ran."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_it_takes_a_record_and_gives_it_back(broker: Broker, topic: str) -> None:
    produce(broker, topic, b"hello")

    assert consume(broker, topic) == b"hello"


def test_an_acknowledged_record_outlives_kill_9(broker: Broker, topic: str) -> None:
    produce(broker, topic, b"hello")
    killed = broker.pid

    broker.kill()
    broker.restart()

    assert broker.pid != killed
    assert consume(broker, topic) == b"hello"


def test_a_paused_one_acknowledges_when_it_goes_on(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    broker.pause()
    producer.produce(topic, b"hello")
    waiting = producer.flush(0.5)

    broker.resume()

    assert (waiting, producer.flush(PATIENCE)) == (1, 0)
    assert consume(broker, topic) == b"hello"


def test_it_outlives_the_thread_that_started_it(broker: Broker, topic: str) -> None:
    produce(broker, topic, b"hello")

    thread = Thread(target=broker.restart)
    thread.start()
    thread.join()

    assert consume(broker, topic) == b"hello"
    assert broker.running


@pytest.mark.usefixtures("broker")
def test_it_dies_with_the_process_that_started_it(processes: Processes, tmp_path: Path) -> None:
    starter = processes.start("-c", PROGRAM, str(ROOT), str(tmp_path / "kafka"))
    starter.wait_for("started")
    pid = int(starter.stdout.split()[1])

    starter.kill()

    wait_until_gone(pid)


@pytest.mark.usefixtures("broker")
def test_one_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    two_folders_to_kafka = tmp_path / "a,b"

    with pytest.raises(RuntimeError, match=r"(?s)ended; its log ends with:.*meta\.properties"):
        Broker.start(two_folders_to_kafka)


@pytest.mark.usefixtures("bare_machine")
def test_missing_names_what_is_not_there() -> None:
    assert missing() == "java, mvn"


@pytest.mark.usefixtures("broker")
def test_maven_is_not_missed_where_the_jars_are_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    assert list(jars().glob("kafka_*.jar"))
    assert missing() == "java"


@pytest.mark.usefixtures("bare_machine")
def test_tests_are_skipped_loudly_where_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match="KAFKA NOT TESTED: java, mvn not found"):
        next(broker_or_skip())


@pytest.mark.usefixtures("bare_machine")
def test_tests_fail_in_ci_where_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match="KAFKA NOT TESTED: java, mvn not found"):
        next(broker_or_skip())


def produce(broker: Broker, topic: str, value: bytes) -> None:
    """Produce a record, and wait until the broker has acknowledged it."""
    errors: list[KafkaError | None] = []

    def acknowledged(error: KafkaError | None, _message: Message) -> None:
        errors.append(error)

    producer = Producer({"bootstrap.servers": broker.address, "acks": "all", "log_level": 0})
    producer.produce(topic, value, on_delivery=acknowledged)
    producer.flush(PATIENCE)
    assert errors == [None]


def consume(broker: Broker, topic: str) -> bytes | None:
    """The value of the topic's first record."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "test", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    [message] = consumer.consume(1, PATIENCE)
    consumer.close()
    return message.value()
