import random
from typing import Any

import pytest

from holdfast.embeddings.store import Store
from holdfast.engine import Engine
from holdfast.memory import Memories, agent, memory_indexer, organization, session, user
from holdfast.postgres.database import Database
from tests.memory.conftest import OpenWith

ANN = user("ann")
SHARES = {"0.1 %": 1000, "1 %": 100, "5 %": 20, "30 %": 3}
# Vectors in all directions, which no model would give: nothing but the exact order finds the nearest.
VECTORS = """
insert into memory_vector (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
select m.tenant_id, m.scope, m.owner, m.id, 384, m.importance, 'infinity', $1,
  l2_normalize(r.numbers::vector)::halfvec
from memory m, lateral (select array_agg(random_normal()) as numbers from generate_series(1, 384 + 0 * m.length)) r
"""

NEARNESS = """
select m.content, -(v.embedding <#> $1::real[]::vector::halfvec) as nearness
from memory m join memory_vector v on v.memory_id = m.id
"""


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was sent to the database, from here on."""
    sent: list[str] = []
    for name in ("one", "all", "value", "run", "many"):
        real = getattr(Database, name)

        def spy(self: Database, statement: str, *args: Any, _real: Any = real, **options: Any) -> Any:
            sent.append(statement)
            return _real(self, statement, *args, **options)

        monkeypatch.setattr(Database, name, spy)
    return sent


@pytest.mark.req("MEM-04")
async def test_words_find_what_meaning_alone_does_not(memories: Memories) -> None:
    await memories.remember_many(ANN, [f"The order {number} was shipped by sea" for number in range(4700, 4720)])

    hits = await memories.search(ANN, "Where is order 4711?", limit=1, explain=True)

    assert hits[0].memory.content == "The order 4711 was shipped by sea"
    assert hits[0].parts is not None
    assert hits[0].parts.words > 0


@pytest.mark.req("MEM-04")
async def test_meaning_finds_what_words_alone_do_not(memories: Memories) -> None:
    await memories.remember_many(ANN, ["Her cat is called Miso", "Prefers Darjeeling", "Broke a leg while skiing"])

    hits = await memories.search(ANN, "injuries during winter sports", limit=1, explain=True)

    assert hits[0].memory.content == "Broke a leg while skiing"
    assert hits[0].parts is not None
    assert hits[0].parts.words == 0


@pytest.mark.req("MEM-04", "MEM-03")
async def test_a_search_of_one_scope_or_of_four_is_one_round_trip(memories: Memories, statements: list[str]) -> None:
    for owner in (ANN, agent("support"), organization()):
        await memories.remember(owner, "Prefers tea")
    web = (await memories.remember(session("web"), "Prefers tea")).owner.conversation
    await memories.context("tea", session="web", user="ann", agent="support")  # names are looked up once
    statements.clear()

    await memories.search(ANN, "What does she drink?", where={"a": 1}, limit=3)
    alone = len(statements)
    hits = await memories.context("What does she drink?", session="web", conversation=web, user="ann", agent="support")

    assert (alone, len(statements), len(hits)) == (1, 2, 4)


@pytest.mark.req("MEM-05")
@pytest.mark.parametrize("pool_from", [2000, 5000], ids=["pooled", "whole"])
async def test_narrow_filters_find_the_nearest_of_what_they_leave(
    models: Store, words_only: Engine, open_with: OpenWith, pool_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_indexer, "FIRST", 3600)  # no vectors of the model's own among these
    flags = [{share: n % every == 0 for share, every in SHARES.items()} for n in range(3000)]
    await words_only.memory.remember_many(ANN, [{"content": f"n{n}", "metadata": flags[n]} for n in range(3000)])
    async with open_with(embedding={"folder": models.cache}, scoring={"pool_from": pool_from}) as engine:
        model = engine.embeddings.model("en")
        asked = None if model is None else await engine.embeddings.query("unheard", model)
        assert asked is not None
        async with engine.postgres.owner() as owner:
            await owner.run(VECTORS, model)
            rows = await owner.all(NEARNESS, [float(number) for number in asked])
        nearness = {row["content"]: row["nearness"] for row in rows}

        for share, every in SHARES.items():
            exact = sorted((f"n{n}" for n in range(0, 3000, every)), key=lambda each: -nearness[each])[:10]
            hits = await engine.memory.search(ANN, "unheard", where={share: True}, limit=10)

            found = [hit.memory.content for hit in hits]
            assert len(found) == min(10, 3000 // every), share
            assert len(set(found) & set(exact)) >= 0.95 * len(exact), share


@pytest.mark.req("MEM-05", "EMB-02")
@pytest.mark.parametrize("hidden_by", ["buried_at = holdfast.now()", "importance = 0.1", "expires_at = holdfast.now()"])
async def test_what_is_hidden_does_not_crowd_out_what_is_not(
    no_models: None, open_with: OpenWith, hidden_by: str
) -> None:
    async with open_with(scoring={"pool_from": 10, "pool": 10}) as engine:
        await engine.memory.remember_many(ANN, [f"tea leaves {n}" for n in range(60)])
        async with engine.postgres.owner() as owner:
            await owner.script(f"update memory set {hidden_by}")
        await engine.memory.remember(ANN, "Drinks tea with a great many other people in the garden on Sundays")

        hits = await engine.memory.search(ANN, "tea leaves")

        assert [hit.memory.content[:10] for hit in hits] == ["Drinks tea"]


@pytest.mark.req("MEM-11")
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("她喜欢喝什么茶", "她最喜欢的是龙井茶"),
        ("龙井", "她最喜欢的是龙井茶"),
        ("订单4711在哪里", "订单 4711 已经发货"),
        ("GPU 服务器在哪个机房", "GPU服务器在上海机房"),
        ("東京の会議", "東京で会議がありました"),
        ("서울 회의", "서울에서 회의를 했습니다"),
        ("Shanghai GPU", "The GPU cluster is in Shanghai"),
    ],
)
async def test_chinese_japanese_and_korean_are_found_by_their_words(
    words_only: Engine, question: str, answer: str
) -> None:
    texts = [
        "她最喜欢的是龙井茶", "订单 4711 已经发货", "GPU服务器在上海机房", "東京で会議がありました",
        "서울에서 회의를 했습니다", "The GPU cluster is in Shanghai", "明天下午开会", "他住在杭州",
    ]  # fmt: skip
    await words_only.memory.remember_many(ANN, texts)

    hits = await words_only.memory.search(ANN, question, limit=1, explain=True)

    assert [hit.memory.content for hit in hits] == [answer]
    assert hits[0].parts is not None
    assert hits[0].parts.words > 0


@pytest.mark.req("MEM-11", "EMB-01")
async def test_a_chinese_question_finds_by_meaning_among_chinese_and_english_memories(memories: Memories) -> None:
    texts = ["他对花生过敏", "他住在杭州西湖边", "Prefers tea over coffee", "Works for a bank in Oslo"]
    random.Random(1).shuffle(texts)
    await memories.remember_many(ANN, texts)

    chinese = await memories.search(ANN, "他不能吃什么食物？", limit=1)  # noqa: RUF001
    english = await memories.search(ANN, "Who employs him?", limit=1)

    assert [hit.memory.content for hit in chinese] == ["他对花生过敏"]
    assert [hit.memory.content for hit in english] == ["Works for a bank in Oslo"]


@pytest.mark.req("MEM-02", "MEM-05")
@pytest.mark.usefixtures("models")
async def test_the_least_importance_asked_for_is_found_in_large_scopes_too(open_with: OpenWith) -> None:
    async with open_with(scoring={"pool_from": 5, "pool": 10}) as engine:
        facts = [{"content": f"Ann visited town {n}", "importance": 0.7} for n in range(20)]
        await engine.memory.remember_many(user("ann"), facts)

        hits = await engine.memory.search(user("ann"), "journeys abroad", min_importance=0.7, explain=True)

    assert len(hits) == 10
    assert all(hit.parts is not None and hit.parts.vector != 0 for hit in hits)


@pytest.mark.req("EMB-03")
@pytest.mark.usefixtures("models")
async def test_former_vectors_are_searched_in_large_scopes_too(open_with: OpenWith) -> None:
    async with open_with(scoring={"pool_from": 5, "pool": 10}) as engine:
        await engine.memory.remember_many(user("ann"), [f"Ann visited town {n}" for n in range(20)])

    former = {"with_previous_turn": True}  # another model, as far as vectors know
    async with open_with(scoring={"pool_from": 5, "pool": 10}, embedding=former) as engine:
        hits = await engine.memory.search(user("ann"), "journeys abroad", explain=True)

    assert len(hits) == 10
    assert all(hit.parts is not None and hit.parts.vector != 0 for hit in hits)


@pytest.mark.req("MEM-04", "MEM-10")
@pytest.mark.parametrize(
    "odd",
    [
        "last_accessed = holdfast.now() - interval '1000 years'",
        "last_accessed = holdfast.now() + interval '1000 years'",
        "access_count = 2147483647",
        "access_count = 2147483647, importance = 0",
    ],
)
@pytest.mark.parametrize("pool_from", [1, 2000], ids=["pooled", "whole"])
async def test_what_is_odd_about_a_memory_breaks_no_search_nor_the_sweep(
    no_models: None, open_with: OpenWith, odd: str, pool_from: int
) -> None:
    async with open_with(scoring={"pool_from": pool_from}) as engine:
        memory = await engine.memory.remember(ANN, "Prefers green tea")
        pinned = await engine.memory.remember(ANN, "Prefers black tea")
        await engine.memory.pin(pinned.id)
        async with engine.postgres.owner() as owner:
            await owner.script(f"update memory set {odd}, created_at = created_at - interval '1 year'")
        await engine.memory.remember(ANN, "Prefers white tea")

        hits = await engine.memory.search(ANN, "tea", min_importance=0)
        would = await engine.memory.sweep(dry_run=True)
        swept = await engine.memory.sweep()
        left = await engine.memory.search(ANN, "tea", min_importance=0)

    faded = [memory.id] if "- interval '1000 years'" in odd else []
    assert swept.ids == would.ids == faded
    assert len(hits) == len(left) == 3 - len(faded)
    assert pinned.id in [hit.memory.id for hit in left]
