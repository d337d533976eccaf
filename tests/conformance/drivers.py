"""The drivers of the log, and the settings that choose one."""

from uuid import uuid4

import pytest

DRIVERS = ["postgres", "kafka"]
QUICK = ("session.timeout.ms=3000",)  # a dead consumer is missed soon


def settings_of(driver: str, request: pytest.FixtureRequest) -> dict[str, object]:
    """What the section `bus` needs for a log of a test's own; only the one on Kafka starts a broker."""
    if driver == "postgres":
        return {}
    broker = request.getfixturevalue("broker")
    return {"url": f"kafka://{broker.address}", "prefix": f"t{uuid4().hex[:12]}-", "options": ",".join(QUICK)}
