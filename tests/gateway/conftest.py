"""A gateway in front of a small program, without a server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import App
from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from tests.agents.stage import Player, caller_of
from tests.gateway.shop import shop


@pytest.fixture
def settings() -> dict[str, Any]:
    """Settings of the gateway; parametrise it to change them."""
    return {}


@pytest.fixture
def config(config: Config, settings: dict[str, Any]) -> Config:
    """The settings of the engine, with those of the gateway."""
    return config.model_copy(update={"gateway": config.gateway.model_copy(update=settings)})


@pytest.fixture
def app() -> App:
    """The program."""
    return shop()


@pytest.fixture
def model() -> Player:
    """The model that every agent asks."""
    return Player()


@pytest.fixture
async def served(
    config: Config, app: App, model: Player, no_models: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Engine]:
    """An engine that serves the program to the tenant `default`, and has no embedding model."""
    monkeypatch.setattr("holdfast.engine.Caller", caller_of(model))
    async with open_engine(config=config) as engine:
        # By its id, as the gateway asks for it: then what is done here is told here at once.
        own = engine.tenant(await engine.tenants.id_of("default"))
        async with own.serving(app):
            yield own
            model.release()


@pytest.fixture
async def gateways(served: Engine, app: App) -> Gateways:
    """The gateways of all tenants of the engine."""
    return Gateways(served, app)


@pytest.fixture
async def gateway(gateways: Gateways, served: Engine) -> Gateway:
    """The gateway of the tenant `default`."""
    return gateways.of(await served.database.tenant())
