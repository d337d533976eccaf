"""Engines whose sandbox has been tried in this session of tests, so that not every test tries it again."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.execution.composition import VERDICTS


@pytest.fixture
async def tried(config: Config, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    """An open engine. Verdicts on the sandbox are those of the tests before it; they hold for this machine only."""
    shared, own = tmp_path_factory.getbasetemp().parent / VERDICTS, config.data / VERDICTS
    config.data.mkdir(parents=True, exist_ok=True)
    if shared.exists():
        shutil.copy(shared, own)
    async with open_engine(config=config) as engine:
        yield engine
    if own.exists():
        shutil.copy(own, tmp_path / VERDICTS)
        (tmp_path / VERDICTS).replace(shared)
