"""An engine whose research asks a model that answers by rules, and documents to ask about."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from tests.knowledge.research.scholar import Scholar, caller_of
from tests.knowledge.stored import StoredChunk, StoredDocument


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Scholar:
    """The model that all engines of the test ask."""
    model = Scholar()
    monkeypatch.setattr("holdfast.engine.Caller", caller_of(model))
    return model


@pytest.fixture
async def engine(config: Config, model: Scholar, no_models: None) -> AsyncIterator[Engine]:
    """An engine that finds by words alone; a test that hangs fails."""
    async with asyncio.timeout(120), open_engine(config=config) as engine:
        yield engine


def handbook(facts: int, *, name: str = "handbook.pdf", filler: int = 40, every: int = 1) -> StoredDocument:
    """A document with a fact in every so many of its chunks."""
    chunks = [
        StoredChunk(
            (f"Fact {n} is that tower {n} of the harbour has {n * 7} windows. " if n % every == 0 else "")
            + f"The harbour keeps record {n}. "
            + " ".join(f"Words about nothing fill line {n} part {m}." for m in range(filler)),
            section=("Towers", f"Part {n // 10}"),
            page=n + 1,
        )
        for n in range(facts * every)
    ]
    return StoredDocument(name, chunks, title="Handbook")
