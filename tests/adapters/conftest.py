from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.core.config import load_config
from holdfast.engine import Engine, open_engine


@pytest.fixture
async def another_engine(engine: Engine, tmp_path: Path) -> AsyncIterator[Engine]:
    """A second engine on the same database, as another process has it."""
    config = load_config({"database.url": engine.place.owner_url, "data": tmp_path / "other"}, environ={}, cwd=tmp_path)
    async with open_engine(config=config) as other:
        yield other
