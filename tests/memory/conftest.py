"""Memories with the real models, and settings that a test changes."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.embeddings.store import Store
from holdfast.engine import Engine, open_engine
from holdfast.memory import Memories

OpenWith = Callable[..., AbstractAsyncContextManager[Engine]]


@pytest.fixture
def memories(engine: Engine, models: Store) -> Memories:
    """The memories of an engine that has its models."""
    assert models.find(engine.config.memory.embedding.model)
    return engine.memory


@pytest.fixture
def open_with(config: Config) -> OpenWith:
    """Opens an engine on the test's database with other settings of memory: `open_with(scoring={"pool_from": 10})`."""

    @asynccontextmanager
    async def opened(**sections: dict[str, Any]) -> AsyncGenerator[Engine]:
        changed = {name: getattr(config.memory, name).model_copy(update=values) for name, values in sections.items()}
        async with open_engine(
            config=config.model_copy(update={"memory": config.memory.model_copy(update=changed)})
        ) as engine:
            yield engine

    return opened
