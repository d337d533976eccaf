"""A stop reaches the indexers, at whichever moment of a pause it comes."""

import asyncio

import pytest

from holdfast.core.memory_settings import MemorySettings
from holdfast.engine import Engine
from holdfast.memory import memory_indexer as memory_indexing
from holdfast.skills import registry_indexer

pytestmark = pytest.mark.req("UI-05")

MOMENTS = 12  # turns of the event loop in which a pause ends


@pytest.mark.parametrize("kind", ["skills", "memories"])
async def test_a_cancelled_pause_is_cancelled(engine: Engine, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_indexer, "GATHER", 0.01)
    indexer = (
        registry_indexer.RegistryIndexer(engine.postgres, engine.embeddings)
        if kind == "skills"
        else memory_indexing.Indexer(engine.postgres, engine.embeddings, MemorySettings())
    )
    lost: list[int] = []
    for moment in range(MOMENTS):
        notified = asyncio.Event()
        pause = asyncio.create_task(indexer.rest(60, notified))
        await asyncio.sleep(0)
        notified.set()
        for _ in range(moment):
            await asyncio.sleep(0)
        was_cancelled = pause.cancel()
        await asyncio.wait([pause])
        if was_cancelled and not pause.cancelled():
            lost.append(moment)

    assert lost == []
