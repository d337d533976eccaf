"""The log on each of its drivers: every test here runs once on each."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from holdfast.bus import Log
from holdfast.core.config import Config, load_config
from holdfast.engine import Engine
from tests.conformance.consumers import Consumer, Effects, Join
from tests.conformance.drivers import DRIVERS, settings_of


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    """Where the log's records travel."""
    return request.param


@pytest.fixture
def bus() -> dict[str, object]:
    """Settings of the log beside those that all tests have; parametrise it to change them."""
    return {}


@pytest.fixture
def config(
    driver: str, bus: dict[str, object], database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Config:
    """Settings of an engine whose log is the driver's: four partitions, and the dead are missed after a second."""
    given = {"lease": 1, "partitions": 4, **settings_of(driver, request), **bus}
    settings = {f"bus.{name}": value for name, value in given.items()}
    return load_config({"database.url": database_url, "data": tmp_path / "data", **settings}, environ={}, cwd=tmp_path)


@pytest.fixture
def log(engine: Engine) -> Log:
    """The log of the tenant `default`."""
    return engine.log


@pytest.fixture
async def orders(log: Log) -> str:
    """A topic with four partitions."""
    await log.create("orders")
    return "orders"


@pytest.fixture
async def line(log: Log) -> str:
    """A topic with one partition: everything in it has one order."""
    await log.create("line", partitions=1)
    return "line"


@pytest.fixture
async def effects(engine: Engine) -> Effects:
    """A table that consumers write to."""
    return await Effects.create(engine)


@pytest.fixture
async def join(engine: Engine, config: Config) -> AsyncIterator[Join]:
    """Joins a group with an engine of its own, as another process does; whoever is left at the end leaves."""
    async with AsyncExitStack() as stack:

        async def joined(*topics: str, group: str) -> Consumer:
            consumer = await Consumer.join(config, *topics, group=group)
            stack.push_async_callback(consumer.leave)
            return consumer

        yield joined


@pytest.fixture
async def acme(engine: Engine) -> Engine:
    """The same engine for another tenant."""
    await engine.tenants.create("acme")
    return engine.tenant("acme")
