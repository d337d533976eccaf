"""The real models: fetched once into the cache of whoever runs the tests."""

import os

import pytest

from holdfast.core.errors import Unavailable
from holdfast.embeddings.known_models import KNOWN
from holdfast.embeddings.onnx import OnnxModel
from holdfast.embeddings.store import Store

ENGLISH, CHINESE = KNOWN


def models_or_skip() -> Store:
    """A store that has every known model; without it tests are skipped, which a CI does not accept."""
    store = Store()
    try:
        for name in KNOWN:
            store.fetch(name)
    except Unavailable as error:
        message = f"EMBEDDING MODELS NOT TESTED: {error}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return store


@pytest.fixture(scope="session")
def models() -> Store:
    """The store of the known models."""
    return models_or_skip()


@pytest.fixture(scope="session")
def english(models: Store) -> OnnxModel:
    """The English model, loaded."""
    files = models.find(ENGLISH)
    assert files is not None
    return OnnxModel(files)
