"""Processes that serve agents on the test's database, and an engine of the test that serves none."""

from pathlib import Path

import pytest

from holdfast.core.config import Config, load_config
from tests.acceptance.clerks import Clerks
from tests.processes import Processes


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> dict[str, object]:
    """Settings for all."""
    return {
        "database.url": database_url,
        "data": tmp_path / "data",
        "memory.embedding.fetch": False,
        "bus.lease": 1,
    }


@pytest.fixture
def config(settings: dict[str, object], tmp_path: Path, no_models: None) -> Config:
    """The settings, for the engine of the test."""
    return load_config(settings, environ={}, cwd=tmp_path)


@pytest.fixture
def clerks(processes: Processes, tmp_path: Path, settings: dict[str, object]) -> Clerks:
    """Processes that serve."""
    return Clerks(processes, tmp_path, settings)
