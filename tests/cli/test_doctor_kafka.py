import socket

import pytest

from tests.cli.program import Program
from tests.kafka.broker import Broker

pytestmark = pytest.mark.req("UI-02", "BUS-01")


@pytest.fixture
def free_port() -> dict[str, str]:
    """Settings with a port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return {"HOLDFAST_SERVER__PORT": str(probe.getsockname()[1])}


def test_a_broker_that_answers_is_told_of(prepared: Program, free_port: dict[str, str], broker: Broker) -> None:
    done = prepared("doctor", "--json", environment={**free_port, "HOLDFAST_BUS__URL": f"kafka://{broker.address}"})

    (kafka,) = [check for check in done.json["checks"] if check["part"] == "kafka"]
    assert (done.code, kafka["state"]) == (0, "ok"), kafka
    assert broker.address in kafka["found"]
    assert "brokers: 1" in kafka["found"]


def test_a_broker_that_is_away_is_a_failure_that_hides_nothing(prepared: Program, free_port: dict[str, str]) -> None:
    done = prepared("doctor", "--json", environment={**free_port, "HOLDFAST_BUS__URL": "kafka://127.0.0.1:1"})

    found = {check["part"]: check for check in done.json["checks"]}
    assert (done.code, found["kafka"]["state"], found["kafka"]["code"]) == (6, "fail", "unavailable")
    assert "none is lost" in found["kafka"]["next"]
    assert (found["database"]["state"], found["port"]["state"]) == ("ok", "ok")
    assert done.stderr == ""


def test_settings_that_kafka_s_client_refuses_are_told(prepared: Program, free_port: dict[str, str]) -> None:
    settings = {"HOLDFAST_BUS__URL": "kafka://127.0.0.1:1", "HOLDFAST_BUS__OPTIONS": "no.such.setting=1"}

    done = prepared("doctor", "--json", environment={**free_port, **settings})

    (kafka,) = [check for check in done.json["checks"] if check["part"] == "kafka"]
    assert (done.code, kafka["state"], kafka["code"]) == (2, "fail", "bad_setting")
    assert "no.such.setting" in kafka["found"]


def test_without_kafka_there_is_nothing_to_check(prepared: Program, free_port: dict[str, str]) -> None:
    done = prepared("doctor", "--json", environment=free_port)

    assert "kafka" not in {check["part"] for check in done.json["checks"]}
