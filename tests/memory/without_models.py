"""An engine without embedding models, on whichever machine: it finds by words alone, and says so."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.core.config import Config


def without_models(config: Config, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of an engine that has no model and fetches none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    return with_embedding(config, folder=folder / "models", fetch=False)


def with_embedding(config: Config, **changes: Any) -> Config:
    """The settings with other ones for embedding."""
    embedding = config.memory.embedding.model_copy(update=changes)
    return config.model_copy(update={"memory": config.memory.model_copy(update={"embedding": embedding})})
