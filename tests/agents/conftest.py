"""An engine that serves agents whose model says what the test tells it to."""

from collections.abc import AsyncIterator

import pytest

from holdfast import App
from holdfast.core.config import Config
from tests.agents.stage import Player, Stage, caller_of


@pytest.fixture
def model() -> Player:
    """The model that every agent asks."""
    return Player()


@pytest.fixture
async def stage(
    config: Config, model: Player, no_models: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    """Engines on the test's database, which find by words alone; all are closed in the end."""
    monkeypatch.setattr("holdfast.engine.Caller", caller_of(model))
    stage = Stage(config, model)
    yield stage
    await stage.close()


@pytest.fixture
def app() -> App:
    """A program with an agent that can look where parcels are."""
    app = App()

    @app.tool(idempotent=True)
    async def track(parcel: str) -> dict[str, str]:
        """Where a parcel is."""
        return {"parcel": parcel, "where": "Cologne"}

    app.agent("support", instructions="You help customers of a shop.", tools=[track])
    return app
