import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from holdfast.core.config import Config
from holdfast.core.errors import Broken
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.memory.indexes import IndexChanges, IndexedVectors, Indexes, plan_changes
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import OwnerConnection

pytestmark = pytest.mark.req("MEM-05")

MODEL = "bge-small-en-v1.5-q"
ADD = """
with added as (
  insert into memory (tenant_id, scope, id, owner, digest, content, length, language, embedded)
  select $1, 'organization', id, $1, id, 'a fact', 0, 'en', $2 from unnest($3::uuid[]) as id returning id
)
insert into memory_vector (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
select $1, 'organization', $1, id, 384, 1, 'infinity', $2, embedding
from unnest($3::uuid[], $4::halfvec[]) as v (id, embedding) returning memory_id
"""
NEAREST = "select holdfast.nearest_indexed($1, $2, $3, holdfast.now(), 0, $4)"
EXACT = """
select array(select memory_id from memory_vector
  where tenant_id = $1 and scope = 'organization' and owner = $1 and model = $2 and live_until > holdfast.now()
  order by (embedding <#> $3) + 0 limit $4)
"""
EXPIRE = """
update memory_vector set live_until = holdfast.now()
where tenant_id = $1 and scope = 'organization' and owner = $1 and model = $2 and memory_id = any($3)
"""
INDEXES = """
select relname, indisvalid from pg_index join pg_class on oid = indexrelid where relname like 'memory_nearest_%'
"""
# The statement that `nearest_indexed` makes, as its role sees it.
PLAN = """
explain select memory_id from memory_vector
where tenant_id = '{tenant}' and scope = 'organization' and owner = '{tenant}' and model = '{model}'
  and dimensions = 384 and live_until > holdfast.now() and importance >= 0 and $1::uuid is not null
order by embedding::halfvec(384) <#> $2 limit 100
"""
ANN, BOB = UUID(int=1), UUID(int=2)
TOPICS = random.Random(7)
LATENT = 24  # in how many ways texts differ, about: those of a model lie far from filling its space
AXES = np.array([[TOPICS.gauss(0, 1) for _ in range(384)] for _ in range(LATENT)])


@pytest.fixture
def config(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Settings by which a hundred memories are many; without a model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    memory = config.memory
    embedding = memory.embedding.model_copy(update={"folder": tmp_path / "models", "fetch": False})
    scoring = memory.scoring.model_copy(update={"index_from": 100})
    return config.model_copy(update={"memory": memory.model_copy(update={"embedding": embedding, "scoring": scoring})})


@pytest.fixture
def indexes(engine: Engine) -> Indexes:
    """What tends the indexes of the test's database."""
    return Indexes(engine.postgres.owner, engine.config.memory)


def vector(dice: random.Random) -> bytes:
    """A unit vector that has something in common with the others."""
    weights = [dice.gauss(0, 1) for _ in range(LATENT)]
    numbers = np.array(weights) @ AXES
    return encode_halfvec((numbers / np.linalg.norm(numbers)).tolist())


async def add(engine: Engine, count: int, *, model: str = MODEL) -> list[UUID]:
    """That many organizational memories of a tenant."""
    dice = random.Random(count)
    ids = [uuid7() for _ in range(count)]
    await engine.database.run(ADD, model, ids, [vector(dice) for _ in ids])
    return ids


async def names(owner: OwnerConnection) -> dict[str, bool]:
    """The indexes there are, and whether each is whole."""
    return {row["relname"]: row["indisvalid"] for row in await owner.all(INDEXES)}


async def plan_of(engine: Engine) -> str:
    tenant = await engine.database.tenant()
    async with engine.transaction() as tx:
        await tx.run("select set_config('enable_sort', 'off', true), $1::uuid")
        rows = await tx.all(PLAN.format(tenant=tenant, model=MODEL), vector(random.Random(1)))
    return "\n".join(row[0] for row in rows)


async def recall(engine: Engine, questions: Sequence[bytes], count: int) -> float:
    """Which part of the nearest the index finds."""
    hits = 0
    for question in questions:
        found = await engine.database.value(NEAREST, MODEL, question, 100)
        nearest = await engine.database.value(EXACT, MODEL, question, count)
        hits += len(set(found[:count]) & set(nearest))
    return hits / (len(questions) * count)


async def test_a_tenant_with_many_organizational_memories_gets_an_index_that_its_searches_use(
    engine: Engine, indexes: Indexes, owner: OwnerConnection
) -> None:
    await engine.tenants.create("acme")
    await add(engine, 120)
    await add(engine.tenant("acme"), 60)

    done = await indexes.tend()

    library = IndexedVectors("memory", await engine.database.tenant(), MODEL, 384)
    assert done is not None
    assert [each.index for each in done.make] == [library.index]
    assert await names(owner) == {library.index: True}
    assert library.index in await plan_of(engine)
    assert library.index not in await plan_of(engine.tenant("acme"))
    assert await engine.database.value("select model from memory_index where tenant_id = $1") == MODEL


async def test_it_stays_while_half_of_them_are_left_and_goes_when_fewer_are(
    engine: Engine, indexes: Indexes, owner: OwnerConnection
) -> None:
    ids = await add(engine, 120)
    await indexes.tend()

    left: list[int] = []
    for gone in (ids[:60], ids[60:80]):
        await engine.database.value("select holdfast.delete_memories($1, 'organization', $1, $2, 'forgotten')", gone)
        await indexes.tend()
        left.append(len(await names(owner)))

    assert left == [1, 0]
    assert await owner.value("select count(*) from memory_index") == 0


async def test_of_two_who_tend_at_once_one_does_and_the_other_leaves_it_to_them(
    engine: Engine, indexes: Indexes, owner: OwnerConnection
) -> None:
    await add(engine, 120)

    done = await asyncio.gather(indexes.tend(), Indexes(engine.postgres.owner, engine.config.memory).tend())

    assert [len(each.make) for each in done if each is not None][:1] == [1]
    assert list((await names(owner)).values()) == [True]


async def test_what_a_killed_process_left_half_made_is_made_anew(
    engine: Engine, indexes: Indexes, owner: OwnerConnection
) -> None:
    await add(engine, 120)
    await indexes.tend()
    await owner.script(
        "update pg_index set indisvalid = false where indexrelid::regclass::text like 'memory_nearest_%'"
    )

    await indexes.tend()

    assert list((await names(owner)).values()) == [True]
    assert "memory_nearest_" in await plan_of(engine)


async def test_an_index_that_cannot_be_made_keeps_no_other_from_being_made(
    engine: Engine, indexes: Indexes, owner: OwnerConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.tenants.create("acme")
    for each in (engine, engine.tenant("acme")):
        await add(each, 120)
    tenants = sorted([await engine.database.tenant(), await engine.tenant("acme").database.tenant()])
    libraries = [IndexedVectors("memory", tenant, MODEL, 384) for tenant in tenants]
    script = OwnerConnection.script

    async def failing(self: OwnerConnection, text: str) -> None:
        if "create index" in text and libraries[0].index in text:
            raise Broken("planted")
        await script(self, text)

    monkeypatch.setattr(OwnerConnection, "script", failing)
    await indexes.tend()

    assert await names(owner) == {libraries[1].index: True}
    assert [row["tenant_id"] for row in await owner.all("select tenant_id from memory_index")] == [tenants[1]]


async def test_it_goes_on_after_an_error_that_nobody_thought_of(
    indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "_first", 0)
    monkeypatch.setattr(indexes, "_pause", 0)
    tries, again = list[int](), asyncio.Event()

    async def failing() -> IndexChanges:
        tries.append(1)
        if len(tries) > 1:
            again.set()
        raise RuntimeError("planted")

    monkeypatch.setattr(indexes, "tend", failing)

    async with asyncio.timeout(5), indexes:
        await again.wait()


async def test_the_index_finds_what_comparing_all_would_find(engine: Engine, indexes: Indexes) -> None:
    await add(engine, 12_000)
    await indexes.tend()
    dice = random.Random(99)

    found = await recall(engine, [vector(dice) for _ in range(40)], 10)

    assert "memory_nearest_" in await plan_of(engine)
    assert found >= 0.99


async def test_memories_that_are_over_among_the_nearest_never_empty_what_is_found(
    engine: Engine, indexes: Indexes
) -> None:
    await add(engine, 2_000)
    await indexes.tend()
    question = vector(random.Random(99))
    nearest = await engine.database.value(EXACT, MODEL, question, 1_950)
    await engine.database.run(EXPIRE, MODEL, nearest)

    found = await engine.database.value(NEAREST, MODEL, question, 40)

    assert found == await engine.database.value(EXACT, MODEL, question, 40)
    assert len(found) == 40


def test_the_steps_lead_from_whatever_is_there_to_what_should_be() -> None:
    many, kept = IndexedVectors("memory", ANN, "a", 384, 9), IndexedVectors("chunk", BOB, "b", 384, 6)
    stray = IndexedVectors("memory", BOB, "gone", 384)
    wanted = {many.index: many}, {many.index: many, kept.index: kept}

    fresh = plan_changes(*wanted, {}, {})
    settled = plan_changes(*wanted, {many.index: True, kept.index: True}, {many.index: many, kept.index: kept})
    broken = plan_changes(*wanted, {many.index: False, kept.index: True, stray.index: True}, {stray.index: stray})

    assert fresh == IndexChanges([], [], [many], [many])
    assert settled == IndexChanges([], [], [], [])
    assert broken == IndexChanges(
        [stray], sorted([many.index, stray.index]), [many], sorted([many, kept], key=lambda x: x.index)
    )
    assert max(len(each.index) for each in (many, kept, stray)) <= 63
