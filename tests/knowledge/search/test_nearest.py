"""Whether the nearest are found among many chunks: by the vector index, by comparison, and with filters."""

import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.knowledge.hits import PassageHits
from holdfast.memory import indexes, user
from holdfast.memory.indexes import Indexes
from holdfast.memory.query import PreparedQuery
from holdfast.postgres.database import OwnerConnection
from tests.knowledge.made_up import MODEL, SHARES, Clusters, halfvecs, store_many, words
from tests.knowledge.stored import StoredChunk, StoredDocument, store

pytestmark = pytest.mark.req("KNOW-02", "MEM-05")

SOME = 10_000
MANY = 100_000
QUESTIONS = 20
FILTERS: dict[str, dict[str, Any] | None] = {
    "no filter": None,
    **{share: {share: True} for share in SHARES},
    "one topic of 50": {"topic": 3},
    "all but some": {"10 %": False},
}
# The nearest chunks, by comparing all vectors.
EXACT = """
select array_agg(c.id order by n.distance) from (
  select v.document_id, v.chunk_index, min(v.embedding <#> $2) as distance from chunk_vector v
  where v.tenant_id = $1 and v.model = $3
    and v.document_id in (select d.id from document d where d.tenant_id = $1 and d.metadata @> $4)
  group by v.document_id, v.chunk_index order by distance limit 10
) n join chunk c on c.tenant_id = $1 and c.document_id = n.document_id and c.chunk_index = n.chunk_index
"""
# The statement that `nearest_passages` makes, as its role sees it.
PLAN = """
explain select v.document_id from (
  select v.document_id from chunk_vector v
  where v.tenant_id = '{tenant}' and v.model = '{model}' and v.dimensions = 384 and $1::uuid is not null
  order by v.embedding::halfvec(384) <#> $2 limit 300
) v cross join lateral (
  select from document d where d.tenant_id = '{tenant}' and d.id = v.document_id offset 0) d limit 100
"""
Ask = Callable[..., Awaitable[PassageHits]]


@pytest.fixture
def config(config: Config, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Settings by which a thousand vectors are many. The test builds the index, not the engine's own job."""
    monkeypatch.setattr(indexes, "FIRST", 3600)
    scoring = config.memory.scoring.model_copy(update={"index_from": 1000})
    return config.model_copy(update={"memory": config.memory.model_copy(update={"scoring": scoring})})


@pytest.fixture
async def engine(config: Config, no_models: None) -> Any:
    """An engine without a model: all vectors are made up."""
    async with open_engine(config=config) as engine:
        yield engine


@pytest.fixture
def ask(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Search with a made-up vector: `ask(vector, "words", **arguments of search)`."""
    search = engine.knowledge._search  # pyright: ignore[reportPrivateUsage]

    async def asked(vector: bytes, text: str = "unheard", **limits: Any) -> PassageHits:
        async def prepare(question: str, asker: object) -> PreparedQuery:
            return PreparedQuery(question, (question,), {MODEL: [vector]}, {MODEL: 0.5}, [], "")

        monkeypatch.setattr(search._queries, "prepare", prepare)  # pyright: ignore[reportPrivateUsage]
        return await engine.knowledge.search(text, **limits)

    return asked


async def build_index(engine: Engine) -> None:
    """Create the vector index, and analyze, as autovacuum would."""
    done = await Indexes(engine.postgres.owner, engine.config.memory).tend()
    assert done is not None
    assert [each.indexed for each in done.make] == ["chunk"]
    async with engine.postgres.owner() as owner:
        await owner.script("analyze")


async def plan_of(engine: Engine) -> str:
    """The plan of the scan of the index."""
    async with engine.transaction() as tx:
        await tx.run("select set_config('enable_sort', 'off', true), $1::uuid")
        statement = PLAN.format(tenant=await engine.database.tenant(), model=MODEL)
        rows = await tx.all(statement, halfvecs(Clusters().question())[0])
    return "\n".join(row[0] for row in rows)


async def measured(engine: Engine, ask: Ask) -> dict[str, tuple[float, float]]:
    """For each filter: which part of the ten nearest is found, and the median of the times, in ms."""
    clusters, dice = Clusters(seed=7), random.Random(5)
    found: dict[str, tuple[float, float]] = {}
    for name, where in FILTERS.items():
        times: list[float] = []
        hits = wanted = 0
        for _ in range(QUESTIONS):
            vector = halfvecs(clusters.question())[0]
            start = time.perf_counter()
            await ask(vector, words(dice, 8), where=where)
            times.append(time.perf_counter() - start)
            nearest = await engine.database.value(EXACT, vector, MODEL, where or {})
            hits += len({hit.id for hit in await ask(vector, where=where)} & set(nearest))
            wanted += len(nearest)
        found[name] = hits / wanted, 1e3 * float(np.median(times))
    return found


async def test_the_nearest_of_ten_thousand_chunks_are_found_with_and_without_filters(
    engine: Engine, ask: Ask, record_property: Callable[[str, object], None]
) -> None:
    await store_many(engine, Clusters(), SOME, passages=1)
    await build_index(engine)

    found = await measured(engine, ask)

    record_property("measured", told(SOME, found))
    assert "chunk_nearest_" in await plan_of(engine)
    assert {name: recall for name, (recall, _) in found.items() if recall < 0.99} == {}


@pytest.mark.soak(minutes=5)
async def test_the_nearest_of_a_hundred_thousand_chunks_are_found_with_and_without_filters(
    engine: Engine, ask: Ask, record_property: Callable[[str, object], None]
) -> None:
    await store_many(engine, Clusters(), MANY, passages=2)
    await build_index(engine)

    found = await measured(engine, ask)

    record_property("measured", told(MANY, found))
    assert {name: recall for name, (recall, _) in found.items() if recall < 0.99} == {}


def told(chunks: int, found: dict[str, tuple[float, float]]) -> str:
    """The figures in a line."""
    figures = "; ".join(f"{name}: {recall:.4f}, {ms:.1f} ms" for name, (recall, ms) in found.items())
    return f"{chunks} chunks, recall@10 and median time: {figures}"


async def test_a_filter_that_hides_all_of_the_nearest_does_not_empty_the_result(engine: Engine, ask: Ask) -> None:
    clusters = Clusters(topics=2)
    await store_many(engine, clusters, 6000, passages=1)
    await build_index(engine)
    vector = halfvecs(clusters.document(0, 1))[0]  # topic 0: documents with even numbers

    hits = await ask(vector, where={"half": 1})

    nearest = await engine.database.value(EXACT, vector, MODEL, {"half": 1})
    assert [hit.id for hit in hits] == nearest
    assert {int(hit.name.split()[-1]) % 2 for hit in hits} == {1}


async def test_the_index_shows_nobody_the_documents_of_others(engine: Engine, ask: Ask) -> None:
    await engine.tenants.create("acme")
    clusters = Clusters()
    await store_many(engine, clusters, 3000, passages=1)
    await store_many(engine.tenant("acme"), clusters, 3000, passages=1)
    vectors = halfvecs(clusters.document(0, 40))
    private = StoredDocument(
        "private", [StoredChunk(f"p{n}", vectors=[each]) for n, each in enumerate(vectors)], owner=user("ann")
    )
    await store(engine, private, model=MODEL)
    await Indexes(engine.postgres.owner, engine.config.memory).tend()

    ours = await ask(vectors[0])
    hers = await ask(vectors[0], owners=[user("ann")])

    assert "private" not in {hit.name for hit in ours}
    assert len(ours) == 10
    assert [hit.name for hit in hers] == ["private"] * 10
    assert hers[0].text == "p0"
    assert {hit.document for hit in ours} <= {
        row["id"] for row in await engine.database.all("select id from document where tenant_id = $1")
    }


async def test_removed_and_new_documents_need_no_new_index(engine: Engine, ask: Ask) -> None:
    clusters = Clusters()
    await store_many(engine, clusters, 3000, passages=1)
    await build_index(engine)
    vector = halfvecs(clusters.question())[0]
    [before, *_] = await ask(vector, limit=1)

    await engine.knowledge.remove(before.document)
    [after, *_] = await ask(vector, limit=1)
    [new] = await store(engine, StoredDocument("new", [StoredChunk("new", vectors=[vector])]), model=MODEL)
    [again, *_] = await ask(vector, limit=1)

    assert after.document != before.document
    assert again.document == new


async def test_an_index_is_registered_with_its_size_and_dropped_when_few_vectors_are_left(
    engine: Engine, owner: OwnerConnection
) -> None:
    maintenance = Indexes(engine.postgres.owner, engine.config.memory)
    await store_many(engine, Clusters(), 1200, passages=1)
    await maintenance.tend()
    registered = "select indexed, model, vectors from memory_index where tenant_id = $1"
    first = [tuple(row) for row in await engine.database.all(registered)]
    await store_many(engine, Clusters(), 1200, passages=1, first=60)
    await maintenance.tend()
    grown = [tuple(row) for row in await engine.database.all(registered)]
    await engine.database.run("delete from chunk_vector where tenant_id = $1")

    await maintenance.tend()

    assert (first, grown) == ([("chunk", MODEL, 1200)], [("chunk", MODEL, 2400)])
    assert await engine.database.all(registered) == []
    assert await owner.value("select count(*) from pg_class where relname ^@ 'chunk_nearest_'") == 0
