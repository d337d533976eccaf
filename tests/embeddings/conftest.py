"""Real models, in this process and behind an endpoint."""

import os
import shutil
from collections.abc import AsyncIterator, Callable

import pytest

from holdfast.embeddings.onnx import OnnxModel
from holdfast.embeddings.pool import EmbeddingPool
from tests.embeddings.endpoint import FakeEndpoint
from tests.embeddings.models import english, models

__all__ = ["english", "models"]


@pytest.fixture
async def pool() -> AsyncIterator[EmbeddingPool]:
    """Two threads for models."""
    pool = EmbeddingPool(2)
    yield pool
    pool.close()


@pytest.fixture
async def endpoint(english: OnnxModel) -> AsyncIterator[FakeEndpoint]:
    """An endpoint that serves the English model."""
    endpoint = FakeEndpoint(english)
    async with endpoint.serving():
        yield endpoint


@pytest.fixture
def needs() -> Callable[[str], None]:
    """Skips where a program is not installed, which a CI does not accept."""

    def check(program: str) -> None:
        if shutil.which(program) is None:
            message = f"NOT TESTED: there is no {program}"
            pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)

    return check
