import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.core.config import Config
from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.language import Language
from holdfast.embeddings.onnx import OnnxModel
from holdfast.embeddings.store import Store
from holdfast.engine import Engine, open_engine
from holdfast.memory import memory_indexer, session, user
from holdfast.memory.memory_indexer import LEASE, Indexer
from holdfast.postgres.database import OwnerConnection
from tests.clock import Clock
from tests.embeddings.endpoint import FakeEndpoint
from tests.embeddings.models import CHINESE, ENGLISH, english, models
from tests.processes import Processes

__all__ = ["english", "models"]

FACTS = [f"Ann has visited {place} twice" for place in ("Oslo", "Rome", "Lima", "Kyoto", "Cairo", "Quito", "Perth")]
QUESTION = "When was she in the capital of Italy?"
INSERT = """
insert into user_memories (agent_id, user_id, content)
select $2, $2, content from unnest($3::text[]) as content where $1::uuid is not null
"""
INSERT_INTO_SESSION = """
insert into session_memories (agent_id, session_id, content, importance_score)
select $2, $2, 'turn ' || n, n / 10.0 from generate_series(1, 5) n where $1::uuid is not null
"""
STUCK = """
import asyncio, sys
from pathlib import Path
from holdfast.core.config import load_config
from holdfast.engine import open_engine
from holdfast.memory.memory_indexer import Indexer

async def never(texts, languages):
    print("embedding", len(texts), flush=True)
    await asyncio.Event().wait()

async def main():
    url, data = sys.argv[1:]
    async with open_engine(config=load_config({"database.url": url, "data": Path(data)}, environ={})) as engine:
        engine.embeddings.vectors = never
        await Indexer(engine.postgres, engine.embeddings, engine.config.memory).catch_up()

asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Held:
    """Models that are held up: `asked` for a vector, and let go by `go_on`."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)


class Shortened(FakeEndpoint):
    """An endpoint that makes vectors as long as one wants."""

    length = 384

    def answer(self, texts: list[str]) -> dict[str, Any]:
        """What the real ones answer, with the beginnings of the vectors."""
        answer = super().answer(texts)
        return {**answer, "data": [{**row, "embedding": row["embedding"][: self.length]} for row in answer["data"]]}


def with_models(config: Config, folder: Path, **embedding: object) -> Config:
    """The settings with other models, of which those in the folder are there."""
    changed = config.memory.embedding.model_copy(update={"folder": folder, "fetch": False, **embedding})
    return config.model_copy(update={"memory": config.memory.model_copy(update={"embedding": changed})})


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own indexer stays out of the way."""
    monkeypatch.setattr(memory_indexer, "FIRST", 3600)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: Store) -> Path:
    """A folder for models without any, and no others to be had."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


@pytest.fixture
async def wordy(config: Config, folder: Path) -> AsyncIterator[Engine]:
    """An engine without a model."""
    async with open_engine(config=with_models(config, folder)) as engine:
        yield engine


@pytest.fixture
def held(engine: Engine, models: Store, monkeypatch: pytest.MonkeyPatch) -> Held:
    """The engine's models, which embed nothing until they are let go."""
    held, embed = Held(), engine.embeddings.vectors

    async def vectors(texts: Sequence[str], languages: Sequence[Language]) -> list[Vector | None]:
        held.asked.set()
        await held.go_on.wait()
        return await embed(texts, languages)

    monkeypatch.setattr(engine.embeddings, "vectors", vectors)
    return held


def indexer_of(engine: Engine) -> Indexer:
    """One more indexer, as another process has it."""
    return Indexer(engine.postgres, engine.embeddings, engine.config.memory)


def put(models: Store, folder: Path, *, name: str = ENGLISH) -> None:
    """Put the English model into the folder, under a name."""
    files = models.find(ENGLISH)
    assert files is not None
    (folder / name).symlink_to(files.onnx.parent)


async def models_of(owner: OwnerConnection) -> dict[str, int]:
    """How many vectors there are of each model."""
    rows = await owner.all("select model, count(*) from memory_vector group by model")
    return {row["model"]: row["count"] for row in rows}


@pytest.mark.req("EMB-02")
async def test_what_was_missed_is_embedded_when_a_model_arrives(
    wordy: Engine, models: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_indexer, "FIRST", 0)
    missed = await wordy.memory.remember(user("ann"), "prefers tea over coffee")
    before = await wordy.memory.search(user("ann"), "which beverage does she like?")

    async with asyncio.timeout(30), indexer_of(wordy):
        put(models, folder)
        while not (await wordy.memory.get(missed.id)).embedded:
            pass
    after = await wordy.memory.search(user("ann"), "which beverage does she like?", explain=True)

    assert not missed.embedded
    assert "by words only" in before.reduced
    assert not after.reduced
    assert after[0].parts is not None
    assert after[0].parts.vector > 0


@pytest.mark.req("EMB-02")
async def test_it_is_known_how_many_memories_are_still_to_embed(wordy: Engine) -> None:
    await wordy.memory.remember_many(user("ann"), FACTS)
    indexer = indexer_of(wordy)

    await indexer.catch_up()

    assert indexer.left(await wordy.database.tenant()) == len(FACTS)
    assert indexer.state == ("reduced", "7 texts still to embed")


@pytest.mark.req("EMB-03")
async def test_another_model_embeds_anew_while_searches_serve_and_find(
    config: Config, folder: Path, models: Store, owner: OwnerConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(models, folder)
    put(models, folder, name="mine")
    async with open_engine(config=with_models(config, folder)) as engine:
        await engine.memory.remember_many(user("ann"), [f"{fact}, in {n}" for n in range(20) for fact in FACTS])
    old = await models_of(owner)
    monkeypatch.setattr(memory_indexer, "TOGETHER", 4)

    found: list[str] = []
    async with open_engine(config=with_models(config, folder, model="mine")) as engine:
        await engine.memory.search(user("ann"), QUESTION)  # both models are loaded now
        embedding = asyncio.create_task(indexer_of(engine).catch_up())
        while not embedding.done():
            hits = await engine.memory.search(user("ann"), QUESTION, limit=1)
            found.append(hits[0].memory.content)
        new_name = engine.embeddings.model("en")

    new = await models_of(owner)
    assert list(old) == [ENGLISH]
    assert new == {new_name: old[ENGLISH]}
    assert new_name != ENGLISH
    assert len(found) > 3
    assert all("Rome" in each for each in found)


@pytest.mark.req("EMB-03")
async def test_vectors_of_another_length_by_the_same_remote_model_are_made_anew(
    config: Config, folder: Path, english: OnnxModel, owner: OwnerConnection
) -> None:
    endpoint = Shortened(english)
    async with endpoint.serving():
        behind = {"url": endpoint.url, "model": "m", "chinese_model": ""}
        async with open_engine(config=with_models(config, folder, **behind)) as engine:
            await engine.memory.remember_many(user("ann"), FACTS)
        endpoint.length = 128
        async with open_engine(config=with_models(config, folder, **behind, dimensions=128)) as engine:
            before = await engine.memory.search(user("ann"), "Rome", explain=True)
            indexed = await indexer_of(engine).catch_up()
            after = await engine.memory.search(user("ann"), "Rome", explain=True)

    lengths = await owner.all("select model, dimensions, count(*) from memory_vector group by model, dimensions")
    assert "Rome" in before[0].memory.content
    assert {hit.parts.vector for hit in before if hit.parts} == {0}
    assert not before.reduced
    assert indexed == len(FACTS)
    assert [tuple(row.values()) for row in lengths] == [("m@128", 128, len(FACTS))]
    assert "Rome" in after[0].memory.content
    assert 0 not in {hit.parts.vector for hit in after if hit.parts}


@pytest.mark.req("EMB-03")
async def test_each_of_two_with_different_models_finds_by_meaning_what_the_other_embedded(
    config: Config, models: Store, owner: OwnerConnection
) -> None:
    one_for_all = {"model": CHINESE, "dimensions": 512, "chinese_model": ""}
    async with (
        open_engine(config=config) as usual,
        open_engine(config=with_models(config, models.cache, **one_for_all)) as other,
    ):
        await usual.memory.remember_many(user("ann"), FACTS)
        await other.memory.remember_many(user("bob"), FACTS)

        of_other = await usual.memory.search(user("bob"), "Was she ever in Rome?", explain=True)
        of_usual = await other.memory.search(user("ann"), "Was she ever in Rome?", explain=True)

    assert await models_of(owner) == {ENGLISH: len(FACTS), CHINESE: len(FACTS)}
    for hits in (of_other, of_usual):
        cosines = {hit.memory.content: hit.parts.vector for hit in hits if hit.parts}
        assert len(cosines) == len(FACTS)
        assert 0 not in cosines.values()
        assert "Rome" in max(cosines, key=lambda content: cosines[content])
        assert not hits.reduced


@pytest.mark.req("EMB-03")
async def test_the_clients_own_vectors_stay_when_the_model_changes(
    config: Config, folder: Path, models: Store, owner: OwnerConnection
) -> None:
    put(models, folder, name="mine")
    statement = INSERT.replace("content)", "content, embedding)").replace(
        "select $2, $2, content", "select $2, $2, content, $4"
    )
    async with open_engine(config=with_models(config, folder, model="mine")) as engine:
        await engine.database.run(statement, uuid4(), FACTS, [0.5] * 384)
        await indexer_of(engine).catch_up()
        name = engine.embeddings.model("en")

        shown = await engine.database.all("select embedding from user_memories where $1::uuid is not null")

    assert await models_of(owner) == {"": len(FACTS), name: len(FACTS)}
    assert [row["embedding"] for row in shown] == [[0.5] * 384] * len(FACTS)


async def test_several_indexers_share_the_work_and_do_none_of_it_twice(
    engine: Engine, models: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, embed = list[str](), engine.embeddings.vectors

    async def vectors(texts: Sequence[str], languages: Sequence[Language]) -> list[Vector | None]:
        asked.extend(texts)
        return await embed(texts, languages)

    monkeypatch.setattr(engine.embeddings, "vectors", vectors)
    facts = [f"fact {n}" for n in range(100)]
    await engine.database.run(INSERT, uuid4(), facts)

    done = await asyncio.gather(*(indexer_of(engine).catch_up() for _ in range(3)))

    assert sum(done) == 100
    assert sorted(asked) == sorted(facts)


async def test_to_catch_up_twice_at_once_does_it_once(wordy: Engine) -> None:
    await wordy.tenants.create("acme")
    for each in (wordy, wordy.tenant("acme")):
        await each.database.run(INSERT, uuid4(), [f"fact {n}" for n in range(100)])
    indexer = indexer_of(wordy)

    done = await asyncio.gather(indexer.catch_up(), indexer.catch_up())

    assert done == [200, 0]


@pytest.mark.req("EMB-02")
async def test_nobody_waits_for_a_memory_that_is_being_embedded(engine: Engine, held: Held) -> None:
    indexer = indexer_of(engine)
    await engine.database.run(INSERT, uuid4(), FACTS)
    id = await engine.database.value("select id from memory where tenant_id = $1 limit 1")

    async with asyncio.timeout(20):
        embedding = asyncio.create_task(indexer.catch_up())
        await held.asked.wait()
        pinned = await engine.memory.pin(id)
        held.go_on.set()
        await embedding
        seen_again = await indexer.catch_up()

    assert pinned.pinned
    assert embedding.result() + seen_again == len(FACTS)
    assert (await engine.memory.get(id)).embedded


@pytest.mark.req("EMB-02")
async def test_what_is_changed_while_it_is_embedded_gets_the_vector_of_what_it_says_now(
    engine: Engine, held: Held, owner: OwnerConnection
) -> None:
    indexer = indexer_of(engine)
    await engine.database.run(INSERT, uuid4(), ["likes tea"])

    async with asyncio.timeout(20):
        embedding = asyncio.create_task(indexer.catch_up())
        await held.asked.wait()
        await engine.database.run("update user_memories set content = 'flies kites' where $1::uuid is not null")
        held.go_on.set()
        await embedding
        left_alone = await models_of(owner)
        await indexer.catch_up()

    [expected] = await engine.embeddings.vectors(["flies kites"], ["en"])
    assert embedding.result() == 0
    assert left_alone == {}
    assert await owner.value("select embedding <=> $1::halfvec < 0.001 from memory_vector", str(expected))


@pytest.mark.req("EMB-03")
async def test_of_two_with_different_models_the_last_to_open_replaces_vectors_and_the_other_none(
    config: Config, folder: Path, models: Store, owner: OwnerConnection
) -> None:
    put(models, folder)
    put(models, folder, name="mine")
    async with (
        open_engine(config=with_models(config, folder)) as old,
        open_engine(config=with_models(config, folder, model="mine")) as new,
    ):
        before, after = indexer_of(old), indexer_of(new)
        await old.memory.remember_many(user("ann"), FACTS)
        await before.catch_up()

        replaced = await after.catch_up()
        back = await before.catch_up()
        mine = await models_of(owner)
        await old.database.run(INSERT, uuid4(), ["likes tea"])
        added = await before.catch_up()
        both = await models_of(owner)
        name = new.embeddings.model("en")

    assert (replaced, back, added) == (len(FACTS), 0, 1)
    assert mine == {name: len(FACTS)}
    assert both == {name: len(FACTS), ENGLISH: 1}
    assert before.state == ("ok", "all memories are indexed")


@pytest.mark.req("EMB-02")
async def test_without_a_model_nothing_is_written_of_what_was_read(wordy: Engine) -> None:
    indexer = indexer_of(wordy)
    await wordy.database.run(INSERT, uuid4(), FACTS)
    await indexer.catch_up()
    rows = "select array_agg(xmin::text order by id) from memory where tenant_id = $1"
    before = await wordy.database.value(rows)

    await indexer.catch_up()

    assert await wordy.database.value(rows) == before


@pytest.mark.req("EMB-02")
async def test_an_indexer_that_is_killed_in_the_middle_loses_nothing(
    engine: Engine, database_url: str, tmp_path: Path, processes: Processes, models: Store, clock: Clock
) -> None:
    ann, script = uuid4(), tmp_path / "stuck.py"
    script.write_text(STUCK)
    await engine.database.run(INSERT, ann, FACTS)

    stuck = processes.start(str(script), database_url, str(tmp_path / "elsewhere"))
    await asyncio.to_thread(stuck.wait_for, f"embedding {len(FACTS)}")
    while_held = await indexer_of(engine).catch_up()
    await asyncio.to_thread(stuck.kill)
    too_early = await indexer_of(engine).catch_up()
    await clock.advance(LEASE)
    indexed = await indexer_of(engine).catch_up()

    hits = await engine.memory.search(user(str(ann)), QUESTION)
    assert (while_held, too_early, indexed) == (0, 0, len(FACTS))
    assert "Rome" in hits[0].memory.content


@pytest.mark.req("EMB-02")
async def test_an_indexer_that_is_closed_in_the_middle_keeps_nobody_waiting(
    engine: Engine, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_indexer, "FIRST", 0)
    await engine.database.run(INSERT, uuid4(), FACTS)

    async with asyncio.timeout(20):
        async with indexer_of(engine):
            await held.asked.wait()
        held.go_on.set()

    assert await indexer_of(engine).catch_up() == len(FACTS)


async def test_an_error_with_one_tenant_keeps_no_other_waiting(wordy: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("acme", "zoo"):
        await wordy.tenants.create(name)
        await wordy.tenant(name).database.run(INSERT, uuid4(), FACTS)
    embed, failed = wordy.embeddings.vectors, list[int]()

    async def vectors(texts: Sequence[str], languages: Sequence[Language]) -> list[Vector | None]:
        if not failed:
            failed.append(len(texts))
            raise RuntimeError("planted")
        return await embed(texts, languages)

    monkeypatch.setattr(wordy.embeddings, "vectors", vectors)

    assert await indexer_of(wordy).catch_up() == len(FACTS)


async def test_a_text_that_the_model_refuses_keeps_no_other_waiting_and_is_not_tried_again_at_once(
    engine: Engine, models: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ann, asked = uuid4(), list[str]()
    embed = engine.embeddings.vectors

    async def vectors(texts: Sequence[str], languages: Sequence[Language]) -> list[Vector | None]:
        asked.extend(texts)
        return [
            None if "Rome" in text else vector
            for text, vector in zip(texts, await embed(texts, languages), strict=True)
        ]

    monkeypatch.setattr(engine.embeddings, "vectors", vectors)
    indexer = indexer_of(engine)
    await engine.database.run(INSERT, ann, FACTS)
    with caplog.at_level(logging.WARNING, logger=memory_indexer.__name__):
        for _ in range(3):
            await indexer.catch_up()

    hits = await engine.memory.search(user(str(ann)), "Rome")
    assert sum("Rome" in text for text in asked) == 1
    assert len([record for record in caplog.records if "returned no vector" in record.message]) == 1
    assert [hit.memory.content for hit in hits if not hit.memory.embedded] == ["Ann has visited Rome twice"]
    assert "Rome" in hits[0].memory.content
    assert indexer.state == ("reduced", "1 texts still to embed")


@pytest.mark.parametrize("change", ["update user_memories set content = 'in Rome'", "delete from user_memories"])
async def test_a_refusal_is_forgotten_when_the_memory_is_changed_or_gone(
    engine: Engine, models: Store, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    asked = list[str]()

    async def vectors(texts: Sequence[str], languages: Sequence[Language]) -> list[Vector | None]:
        asked.extend(texts)
        return [None] * len(texts)

    monkeypatch.setattr(engine.embeddings, "vectors", vectors)
    indexer = indexer_of(engine)
    await engine.database.run(INSERT, uuid4(), ["was in Rome", "was in Oslo"])
    await indexer.catch_up()
    where = "where content = 'was in Rome' and $1::uuid is not null"

    await engine.database.run(f"{change} {where}")
    await indexer.catch_up()
    await indexer.catch_up()

    [refused] = vars(indexer)["_refused"].values()
    assert len(refused) == (2 if "update" in change else 1)
    assert asked[2:] == (["in Rome"] if "update" in change else [])


@pytest.mark.req("MEM-02")
async def test_a_session_drops_its_least_important_memories_past_its_limit_also_those_of_plain_sql(
    config: Config, folder: Path
) -> None:
    short = config.memory.short_term.model_copy(update={"max_memories": 3})
    few = config.model_copy(update={"memory": config.memory.model_copy(update={"short_term": short})})
    web = uuid4()
    async with open_engine(config=with_models(few, folder)) as engine:
        await engine.database.run(INSERT_INTO_SESSION, web)
        await indexer_of(engine).catch_up()

        hits = await engine.memory.search(session(str(web)), "turn")

    assert sorted(hit.memory.content for hit in hits) == ["turn 3", "turn 4", "turn 5"]


@pytest.mark.req("MEM-02")
async def test_what_came_by_plain_sql_drops_nothing_for_what_is_recalled_no_more(config: Config, folder: Path) -> None:
    short = config.memory.short_term.model_copy(update={"max_memories": 7})
    few = config.model_copy(update={"memory": config.memory.model_copy(update={"short_term": short})})
    web = uuid4()
    async with open_engine(config=with_models(few, folder)) as engine:
        last, hidden = await engine.memory.remember_many(session(str(web)), ["turn of Ann", "turn of Bob"])
        for number in range(4):
            last = await engine.memory.supersede(last.id, f"turn {number} of Ann")
        await engine.memory.bury(hidden.id)
        await engine.memory.remember(session(str(web)), "turn of Cid", importance=0)
        await engine.database.run(INSERT_INTO_SESSION, web)
        await indexer_of(engine).catch_up()

        hits = await engine.memory.search(session(str(web)), "turn", limit=100)

    assert sorted(hit.memory.content for hit in hits) == [
        "turn 1", "turn 2", "turn 3", "turn 3 of Ann", "turn 4", "turn 5", "turn of Cid"
    ]  # fmt: skip


async def test_every_tenant_is_indexed_each_as_itself(wordy: Engine) -> None:
    await wordy.tenants.create("acme")
    acme, owner = wordy.tenant("acme"), uuid4()
    for each in (wordy, acme):
        await each.database.run(INSERT, owner, FACTS)

    assert await indexer_of(wordy).catch_up() == 2 * len(FACTS)

    for each in (wordy, acme):
        assert len(await each.memory.search(user(str(owner)), "Rome")) == len(FACTS)


async def test_what_was_inserted_twice_stays_twice_and_what_is_said_again_is_folded(wordy: Engine) -> None:
    ann = uuid4()
    await wordy.database.run(INSERT, ann, ["likes tea", "likes tea"])
    await indexer_of(wordy).catch_up()

    again = await wordy.memory.remember(user(str(ann), agent=str(ann)), "likes tea")

    rows = await wordy.database.all("select id from user_memories where $1::uuid is not null")
    assert len(rows) == 2
    assert again.id in [UUID(str(row["id"])) for row in rows]
