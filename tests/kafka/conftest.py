"""An engine whose log is on Kafka, and a Kafka client that knows nothing of us beside it."""

import pytest

from holdfast.core.config import Config
from tests.conformance.conftest import acme, bus, config, effects, join, line, log, orders
from tests.kafka.broker import Broker
from tests.kafka.plain import Plain

__all__ = ["acme", "bus", "config", "effects", "join", "line", "log", "orders"]


@pytest.fixture
def driver() -> str:
    """Where the log's records travel."""
    return "kafka"


@pytest.fixture
def plain(broker: Broker, config: Config) -> Plain:
    """A Kafka client, and nothing else."""
    return Plain(broker.address, config.bus.prefix)
