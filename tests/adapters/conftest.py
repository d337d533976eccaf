from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.core.config import Config, load_config
from holdfast.embeddings import Store
from holdfast.engine import Engine, open_engine
from tests.embeddings.models import models

__all__ = ["models"]


@pytest.fixture
async def another_engine(engine: Engine, tmp_path: Path) -> AsyncIterator[Engine]:
    """A second engine on the same database, as another process has it."""
    config = load_config({"database.url": engine.place.owner_url, "data": tmp_path / "other"}, environ={}, cwd=tmp_path)
    async with open_engine(config=config) as other:
        yield other


@pytest.fixture
def config_without_model(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Settings with which no embedding model can be had."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    embedding = config.memory.embedding.model_copy(update={"folder": tmp_path, "fetch": False})
    return config.model_copy(update={"memory": config.memory.model_copy(update={"embedding": embedding})})


@pytest.fixture
async def engine_without_model(config_without_model: Config) -> AsyncIterator[Engine]:
    """An engine that finds memories by their words alone."""
    async with open_engine(config=config_without_model) as engine:
        yield engine


@pytest.fixture
async def engine_with_models(models: Store, config: Config) -> AsyncIterator[Engine]:
    """An engine that has both embedding models: it finds memories by what they mean, too."""
    async with open_engine(config=config) as engine:
        yield engine
