import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web

from holdfast.embeddings.onnx import OnnxModel
from holdfast.memory import memory_indexer, user
from holdfast.memory.memory_indexer import Indexer
from tests.embeddings.endpoint import FakeEndpoint
from tests.embeddings.models import english
from tests.memory.conftest import OpenWith

__all__ = ["english"]

ANN = user("ann")
INSERT = "insert into user_memories (agent_id, user_id, content) select $2, $2, 'likes tea' where $1::uuid is not null"
READ = "select length is not null from memory where tenant_id = $1"


@pytest.fixture
async def endpoint(english: OnnxModel) -> AsyncIterator[FakeEndpoint]:
    """An endpoint that serves the English model."""
    endpoint = FakeEndpoint(english)
    async with endpoint.serving():
        yield endpoint


@pytest.mark.req("MEM-06", "EMB-02", "EMB-03")
async def test_what_an_embedder_that_goes_away_leaves_out_is_stored_and_found_by_its_words(
    endpoint: FakeEndpoint, open_with: OpenWith
) -> None:
    texts = [f"parcel{number} is late" for number in range(200)]

    def broken(_: dict[str, Any]) -> web.Response | None:
        return web.Response(status=503) if len(endpoint.requests) > 1 else None

    endpoint.broken = broken
    async with open_with(embedding={"url": endpoint.url, "model": "m", "chinese_model": ""}) as engine:
        written = await engine.memory.remember_many(ANN, texts)
        hits = await engine.memory.search(ANN, "parcel199", limit=1)

    assert [memory.content for memory in written] == texts
    assert {memory.embedded for memory in written} == {True, False}
    assert [hit.memory.content for hit in hits] == ["parcel199 is late"]
    assert hits.reduced != ""


@pytest.mark.req("EMB-03", "MEM-02")
async def test_vectors_of_the_wrong_length_are_never_stored(endpoint: FakeEndpoint, open_with: OpenWith) -> None:
    settings = {"url": endpoint.url, "model": "m", "chinese_model": "", "dimensions": 128}

    async with open_with(embedding=settings) as engine:
        memory = await engine.memory.remember(ANN, "Prefers tea")
        hits = await engine.memory.search(ANN, "tea")
        async with engine.postgres.owner() as owner:
            stored = await owner.value("select count(*) from memory_vector where dimensions <> 128")

    assert stored == 0
    assert not memory.embedded
    assert [hit.memory.id for hit in hits] == [memory.id]
    assert hits.reduced != ""


@pytest.mark.req("EMB-02")
async def test_without_a_model_what_comes_by_plain_sql_is_read_and_all_that_lack_a_vector_are_not_looked_at(
    no_models: None, open_with: OpenWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_indexer, "FIRST", 0)
    monkeypatch.setattr(memory_indexer, "GATHER", 0)
    looks, looked, catch_up = list[int](), asyncio.Event(), Indexer.catch_up

    async def spied(self: Indexer) -> int:
        looks.append(await catch_up(self))
        looked.set()
        return looks[-1]

    monkeypatch.setattr(Indexer, "catch_up", spied)
    async with open_with() as engine, asyncio.timeout(20):
        await looked.wait()
        await engine.database.run(INSERT, uuid4())
        while not await engine.database.value(READ):
            pass

    assert len(looks) == 1
