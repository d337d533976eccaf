import asyncio
from datetime import timedelta
from itertools import product
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import AlreadyExists, Conflict, NotFound
from holdfast.engine import Engine
from holdfast.memory import Memories, Owner, agent, organization, session, user
from holdfast.memory.retention import retention
from holdfast.memory.why_not import WhyNot
from tests.clock import Clock
from tests.memory.conftest import OpenWith

ANN = user("ann")
KEPT_ROWS = """
select (select count(*) from memory where id = $1) + (select count(*) from memory_vector where memory_id = $1)
  + (select count(*) from memory_term where memory_id = $1)
  + (select count(*) from memory_revision where memory_id = $1)
"""

RETENTION = """
select power(2, -least(1000, holdfast.half_lives(greatest(0, 86400 * age), half_life, importance, uses))) as retention
from unnest($2::float8[], $3::float8[], $4::float8[], $5::int[])
  with ordinality as grid (age, half_life, importance, uses, place)
where $1::uuid is not null order by place
"""


async def found(memories: Memories, query: str, owner: Owner = ANN) -> list[str]:
    return [hit.memory.content for hit in await memories.search(owner, query)]


@pytest.mark.req("MEM-10")
async def test_a_memory_that_is_used_outranks_its_unused_twin(open_with: OpenWith) -> None:
    async with open_with() as engine:
        for type in ("unused", "used"):
            await engine.memory.remember(ANN, "Prefers tea", type=type)
        for _ in range(3):
            await engine.memory.search(ANN, "tea", types=["used"])
    async with open_with() as engine:  # what was counted is written at the latest when an engine closes
        await Clock(engine).advance(timedelta(days=60))
        hits = await engine.memory.search(ANN, "tea", explain=True)

    assert [(hit.memory.type, hit.memory.access_count) for hit in hits] == [("used", 3), ("unused", 0)]
    assert hits[0].score > hits[1].score


@pytest.mark.req("MEM-10")
async def test_what_has_faded_is_not_recalled_and_what_is_pinned_never_fades(engine: Engine, clock: Clock) -> None:
    for owner in (ANN, agent("support")):
        pinned = await engine.memory.remember(owner, "tea pinned", importance=0.5)
        await engine.memory.pin(pinned.id)
        await engine.memory.remember(owner, "tea faded", importance=0.5)
    await engine.memory.remember(organization(), "tea of all", importance=0.5)

    await clock.advance(timedelta(days=500))  # 2 ** -(500 / 90) = 0.021
    before = await found(engine.memory, "tea")
    await clock.advance(timedelta(days=500 + 20))

    assert sorted(before) == ["tea faded", "tea pinned"]
    assert await found(engine.memory, "tea", agent("support")) == ["tea pinned"]
    assert await found(engine.memory, "tea", organization()) == ["tea of all"]


@pytest.mark.req("MEM-10")
@given(
    age=st.floats(-10, 10_000),
    importance=st.floats(0, 1),
    uses=st.integers(0, 2**31 - 1),
    half_life=st.floats(0.1, 4000),
)
def test_a_memory_halves_every_half_life_and_use_and_importance_stretch_it(
    age: float, importance: float, uses: int, half_life: float
) -> None:
    def left(**changed: float) -> float:
        given = {"age": age, "importance": importance, "uses": uses} | changed
        return retention(
            timedelta(days=given["age"]),
            half_life=timedelta(days=half_life),
            importance=given["importance"],
            uses=int(given["uses"]),
        )

    assert 0 <= left() <= 1
    assert left(age=0) == 1
    assert left(age=half_life, importance=0.5, uses=0) == pytest.approx(0.5, abs=1e-6)
    assert left(importance=1) >= left() >= left(age=age + 1)
    assert left(uses=uses + 100) >= left()


@pytest.mark.req("MEM-10")
async def test_python_and_sql_compute_the_same_retention(engine: Engine) -> None:
    grid = list(product((-1, 0, 0.5, 30, 365, 4000), (0.1, 30, 4000), (0.0, 0.5, 1.0), (0, 1, 1000, 2**31 - 1)))

    rows = await engine.database.all(RETENTION, *map(list, zip(*grid, strict=True)))

    wanted = [
        retention(timedelta(days=age), half_life=timedelta(days=half_life), importance=importance, uses=uses)
        for age, half_life, importance, uses in grid
    ]
    assert [row["retention"] for row in rows] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.req("MEM-10")
async def test_the_statement_fades_by_the_formula(engine: Engine, clock: Clock) -> None:
    wanted: dict[str, float] = {}
    half_life = timedelta(days=engine.config.memory.retention.half_life_days)
    for number, (importance, uses) in enumerate([(0.5, 0), (1.0, 0), (0.7, 3), (1.0, 1000), (0.5, 2**31 - 1)]):
        memory = await engine.memory.remember(ANN, f"tea {number}", importance=importance)
        async with engine.postgres.owner() as owner:
            await owner.run("update memory set access_count = $1 where id = $2", uses, memory.id)
        wanted[memory.content] = retention(timedelta(days=123), half_life=half_life, importance=importance, uses=uses)
    moment = await engine.database.now() + timedelta(days=123)

    hits = await engine.memory.search(ANN, "tea", as_of=moment, explain=True)

    weight = engine.config.memory.scoring.recency
    recency = {hit.memory.content: hit.parts.recency / weight for hit in hits if hit.parts}
    assert recency == pytest.approx(wanted, abs=1e-6)


@pytest.mark.req("MEM-10")
async def test_what_is_buried_is_kept_and_recalled_no_more_until_it_is_brought_back(memories: Memories) -> None:
    memory = await memories.remember(ANN, "Prefers tea")

    buried = await memories.bury(memory.id)
    while_buried = await found(memories, "tea")
    back = await memories.bury(memory.id, buried=False)

    assert (buried.buried, back.buried) == (True, False)
    assert while_buried == []
    assert await found(memories, "tea") == ["Prefers tea"]
    assert [each.operation for each in await memories.history(memory.id)] == ["unbury", "bury", "remember"]


@pytest.mark.req("MEM-10")
async def test_what_is_forgotten_leaves_nothing_but_that_it_was_there(engine: Engine) -> None:
    memory = await engine.memory.remember(ANN, "Prefers tea")
    await engine.memory.edit(memory.id, content="Prefers green tea")

    await engine.memory.forget(memory.id)

    async with engine.postgres.owner() as owner:
        assert await owner.value(KEPT_ROWS, memory.id) == 0
    with pytest.raises(NotFound, match="forgotten"):
        await engine.memory.get(memory.id)
    with pytest.raises(NotFound, match="forgotten"):
        await engine.memory.forget(memory.id)
    assert await found(engine.memory, "tea") == []


@pytest.mark.req("MEM-02", "MEM-06")
async def test_an_edited_memory_is_found_by_its_new_words_and_meaning_only(memories: Memories) -> None:
    memory = await memories.remember(ANN, "Prefers tea over coffee")
    await memories.remember(ANN, "Keeps two cats")

    edited = await memories.edit(memory.id, content="Drives a motorcycle to work")
    by_meaning = await memories.search(ANN, "Which vehicle does she own?", limit=1, explain=True)
    by_words = await memories.search(ANN, "coffee", explain=True)

    assert (edited.version, edited.embedded) == (2, True)
    assert by_meaning[0].memory.id == memory.id
    assert {hit.parts.words for hit in by_words if hit.parts} == {0.0}


@pytest.mark.req("MEM-02")
async def test_an_edit_changes_what_is_given_and_nothing_else(words_only: Engine) -> None:
    memory = await words_only.memory.remember(ANN, "tea", importance=0.6, metadata={"a": 1}, trust="tool", key="k")

    edited = await words_only.memory.edit(memory.id, importance=0.0, metadata={}, ttl=60, version=1)

    assert (edited.importance, edited.metadata) == (0.0, {})
    assert edited.expires_at is not None
    assert (edited.content, edited.type, edited.trust, edited.key) == ("tea", "fact", "tool", "k")
    assert edited.version == 2


@pytest.mark.req("MEM-02")
async def test_an_edit_of_a_version_that_is_gone_changes_nothing(words_only: Engine) -> None:
    memory = await words_only.memory.remember(ANN, "tea")
    await words_only.memory.edit(memory.id, importance=0.7)

    with pytest.raises(Conflict):
        await words_only.memory.edit(memory.id, content="coffee", version=1)

    assert (await words_only.memory.get(memory.id)).content == "tea"
    assert await found(words_only.memory, "coffee") in ([], ["tea"])


@pytest.mark.req("MEM-02")
async def test_an_edit_to_what_another_memory_says_is_a_clear_refusal(words_only: Engine) -> None:
    await words_only.memory.remember(ANN, "tea")
    memory = await words_only.memory.remember(ANN, "coffee")

    with pytest.raises(AlreadyExists, match="already has this content"):
        await words_only.memory.edit(memory.id, content="tea")

    assert (await words_only.memory.get(memory.id)).content == "coffee"


@pytest.mark.req("MEM-12")
async def test_every_absence_has_its_reason(engine: Engine, clock: Clock) -> None:
    ids = {
        name: (await engine.memory.remember(ANN, f"tea {name}")).id
        for name in ("returned", "buried", "superseded", "deleted", "below the cut")
    }
    ids["expired"] = (await engine.memory.remember(ANN, "tea expired", ttl=1)).id
    ids["filtered"] = (await engine.memory.remember(ANN, "tea filtered", importance=0.1)).id
    ids["scope"] = (await engine.memory.remember(session("web"), "tea scope")).id
    ids["unknown"] = uuid4()
    await engine.memory.bury(ids["buried"])
    await engine.memory.supersede(ids["superseded"], "tea of today")
    await engine.memory.forget(ids["deleted"])
    await clock.advance(timedelta(seconds=2))

    async def why(name: str) -> WhyNot:
        return await engine.memory.why_not(ids[name], ANN, "tea returned", limit=1)

    assert {name: (await why(name)).reason for name in ids} == {name: name for name in ids}


@pytest.mark.req("MEM-12")
async def test_what_is_not_yet_valid_and_what_has_faded_have_their_reasons(engine: Engine, clock: Clock) -> None:
    memory = await engine.memory.remember(ANN, "tea", importance=0.5)
    now = await engine.database.now()

    early = await engine.memory.why_not(memory.id, ANN, "tea", as_of=now - timedelta(days=1))
    await clock.advance(timedelta(days=1000))
    late = await engine.memory.why_not(memory.id, ANN, "tea")

    assert early.reason == "not yet valid"
    assert late.reason == "faded"
    assert "0.0" in late.detail


@pytest.mark.req("MEM-12", "EMB-02")
async def test_a_memory_that_was_written_without_a_model_says_so(
    open_with: OpenWith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    async with open_with() as without:
        memory = await without.memory.remember(ANN, "Prefers Darjeeling")
        why = await without.memory.why_not(memory.id, ANN, "What does she drink?", limit=0)
        hits = await without.memory.search(ANN, "Darjeeling")

    assert not memory.embedded
    assert why.reason == "no embedding yet"
    assert "words only" in hits.reduced
    assert [hit.memory.id for hit in hits] == [memory.id]


@pytest.mark.req("MEM-10")
async def test_what_has_faded_and_is_said_again_is_fresh(engine: Engine, clock: Clock) -> None:
    first = await engine.memory.remember(ANN, "Prefers tea", importance=0.5)
    await clock.advance(timedelta(days=1000))
    assert await found(engine.memory, "tea") == []

    again = await engine.memory.remember(ANN, "Prefers tea", importance=0.5)

    assert again.id == first.id
    assert await found(engine.memory, "tea") == ["Prefers tea"]
    assert (await engine.memory.sweep()).total == 0


@pytest.mark.req("MEM-02")
async def test_what_has_expired_and_is_said_again_is_new(engine: Engine, clock: Clock) -> None:
    sunny = await engine.memory.remember(ANN, "It is sunny", key="weather", ttl=60)
    await clock.advance(timedelta(minutes=5))

    rainy = await engine.memory.remember(ANN, "It is rainy", key="weather", ttl=60)

    assert (rainy.content, rainy.id == sunny.id) == ("It is rainy", False)
    assert await found(engine.memory, "it is") == ["It is rainy"]
    with pytest.raises(NotFound, match="expired"):
        await engine.memory.get(sunny.id)


@pytest.mark.req("MEM-02", "MEM-09")
async def test_a_search_about_former_times_finds_nothing_that_has_expired(engine: Engine, clock: Clock) -> None:
    secret = await engine.memory.remember(session("web-42"), "The code is 4711")
    before = await engine.database.now()
    await clock.advance(timedelta(minutes=61))

    hits = await engine.memory.search(session("web-42"), "the code", as_of=before)
    why = await engine.memory.why_not(secret.id, session("web-42"), "the code", as_of=before)

    assert hits == []
    assert why.reason == "expired"


@pytest.mark.req("ENG-05")
async def test_edits_that_meet_each_other_leave_a_memory_that_stands_for_what_it_says(words_only: Engine) -> None:
    for n in range(10):
        memory = await words_only.memory.remember(ANN, f"alpha {n}")

        await asyncio.gather(
            words_only.memory.edit(memory.id, type="preference"),
            words_only.memory.edit(memory.id, content=f"beta {n}"),
        )

        again = await words_only.memory.remember(ANN, f"beta {n}", type="preference")
        other = await words_only.memory.remember(ANN, f"alpha {n}", type="preference")
        assert again.id == memory.id
        assert other.content == f"alpha {n}"
