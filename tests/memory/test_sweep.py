import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from holdfast.core.config import Config
from holdfast.core.errors import NotFound
from holdfast.core.memory_settings import RetentionSettings
from holdfast.engine import Engine
from holdfast.memory import Owner, agent, organization, session, user
from holdfast.memory.retention import retention
from holdfast.memory.sweeper import Fading, Sweeper, SweepResult, sql, sweep
from holdfast.postgres.database import Database, Row
from holdfast.postgres.database import OwnerConnection as DatabaseOwner
from tests.clock import Clock

pytestmark = pytest.mark.req("MEM-10")

DAY = timedelta(days=1)
ROWS = """
select (select count(*) from memory where id = any($1)) + (select count(*) from memory_vector where memory_id = any($1))
  + (select count(*) from memory_term where memory_id = any($1))
  + (select count(*) from memory_revision where memory_id = any($1)) as kept,
  (select count(*) from memory_tombstone where memory_id = any($1)) as tombstones
"""


@pytest.fixture
def config(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of an engine without a model: what is swept needs none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    embedding = config.memory.embedding.model_copy(update={"folder": tmp_path / "models", "fetch": False})
    return config.model_copy(update={"memory": config.memory.model_copy(update={"embedding": embedding})})


async def rows_of(owner: DatabaseOwner, ids: Sequence[UUID]) -> tuple[int, int]:
    """How many rows are kept of these memories in all tables, and how many tombstones."""
    row = await owner.one(ROWS, list(ids))
    assert row is not None
    return row["kept"], row["tombstones"]


async def test_what_has_expired_is_physically_gone_but_for_its_tombstone(
    engine: Engine, clock: Clock, owner: DatabaseOwner
) -> None:
    brief = await engine.memory.remember(user("ann"), "is in a meeting", ttl=timedelta(hours=1))
    brief = await engine.memory.edit(brief.id, content="is in a long meeting")
    vector = "update user_memories set embedding = $3 where id = $2 and $1::uuid is not null"
    await engine.database.run(vector, brief.id, [0.5] * 384)
    lasting = await engine.memory.remember(user("ann"), "likes tea", ttl=timedelta(days=2))
    before, _ = await rows_of(owner, [brief.id])
    await clock.advance(timedelta(hours=1))

    hidden = await engine.memory.search(user("ann"), "meeting")
    swept = await engine.memory.sweep()

    assert before == 6  # itself, two versions, two words, a vector
    assert [hit.memory.id for hit in hidden] == [lasting.id]
    assert (swept.counts, swept.ids, swept.total) == ({("user", "expired"): 1}, [brief.id], 1)
    assert await rows_of(owner, [brief.id]) == (0, 1)
    assert (await engine.memory.get(lasting.id)).content == "likes tea"
    with pytest.raises(NotFound, match="expired"):
        await engine.memory.get(brief.id)


async def test_a_dry_run_tells_what_would_go_and_deletes_nothing(
    engine: Engine, clock: Clock, owner: DatabaseOwner
) -> None:
    turns = await engine.memory.remember_many(session("web-42"), ["Where is my parcel?", "On its way."])
    fact = await engine.memory.remember(agent("support"), "customers ask for parcels", importance=0.1)
    await clock.advance(400 * DAY)
    ids = [*(turn.id for turn in turns), fact.id]
    before = await rows_of(owner, ids)

    told = await engine.memory.sweep(dry_run=True)

    assert told.counts == {("session", "expired"): 2, ("agent", "faded"): 1}
    assert sorted(told.ids) == sorted(ids)
    assert await rows_of(owner, ids) == before
    assert (await engine.memory.sweep()).counts == told.counts
    assert await rows_of(owner, ids) == (0, 3)
    assert (await engine.memory.sweep(dry_run=True)).total == 0


async def test_what_matters_is_used_is_pinned_or_is_the_organizations_outlives_what_fades(
    engine: Engine, clock: Clock
) -> None:
    faded = await engine.memory.remember(user("ann"), "once said hello", importance=0.0)
    mattering = await engine.memory.remember(user("ann"), "is allergic to nuts", importance=1.0)
    pinned = await engine.memory.remember(user("ann"), "was born in Oslo", importance=0.0)
    await engine.memory.pin(pinned.id)
    shared = await engine.memory.remember(organization(), "closed on Sundays", importance=0.0)
    used = await engine.memory.remember(user("ann"), "drinks tea", importance=0.0)
    await clock.advance(200 * DAY)
    await engine.database.run(
        "update memory set access_count = 3, last_accessed = holdfast.now() where tenant_id = $1 and id = $2", used.id
    )
    await clock.advance(100 * DAY)

    swept = await engine.memory.sweep()

    assert swept.ids == [faded.id]
    for kept in (mattering, pinned, shared, used):
        assert (await engine.memory.get(kept.id)).id == kept.id
    with pytest.raises(NotFound, match="faded"):
        await engine.memory.get(faded.id)


async def test_what_is_swept_is_what_the_formula_says(engine: Engine, clock: Clock) -> None:
    settings = engine.config.memory.retention
    half_life = timedelta(days=settings.half_life_days)
    cases = [
        (importance / 4, uses, days) for importance in range(5) for uses in (0, 1, 7) for days in (0, 100, 400, 600)
    ]
    for importance, uses, days in cases:
        one = await engine.memory.remember(user("ann"), f"{importance} {uses} {days}", importance=importance)
        await engine.database.run(
            "update memory set access_count = $3, last_accessed = created_at + $4 where tenant_id = $1 and id = $2",
            one.id,
            uses,
            days * DAY,
        )
    now = await clock.advance(1000 * DAY)

    told = await engine.memory.sweep(dry_run=True)

    memories = {id: await engine.memory.get(id) for id in told.ids}
    expected = {
        f"{importance} {uses} {days}"
        for importance, uses, days in cases
        if retention((1000 - days) * DAY, half_life=half_life, importance=importance, uses=uses) < settings.faded_below
    }
    assert {memory.content for memory in memories.values()} == expected
    assert 0 < len(expected) < len(cases)
    assert all(memory.created_at < now - (Fading.by(settings).shortest or DAY) for memory in memories.values())


@pytest.mark.parametrize("changes", [{"faded_below": 0.0}, {"half_life_days": 1e12}])
async def test_nothing_fades_where_the_settings_let_nothing_fade(
    engine: Engine, clock: Clock, changes: dict[str, float]
) -> None:
    await engine.memory.remember(user("ann"), "once said hello", importance=0.0)
    await clock.advance(10_000 * DAY)

    swept = await sweep(engine.database, engine.config.memory.retention.model_copy(update=changes))

    assert swept.total == 0


async def test_the_sweeper_sweeps_every_tenant_in_batches(
    engine: Engine, clock: Clock, owner: DatabaseOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.memory.sweeper.TOGETHER", 7)
    await engine.tenants.create("acme")
    ids: list[UUID] = []
    for each in (engine, engine.tenant("acme")):
        for whose in (user("ann"), user("bob"), session("web-42")):
            some = await each.memory.remember_many(whose, [{"content": f"fact {n}", "ttl": 60} for n in range(10)])
            ids += [one.id for one in some]
    await clock.advance(timedelta(minutes=2))

    swept = await Sweeper(engine.postgres, engine.config.memory).sweep()

    assert swept == len(ids) == 60
    assert await rows_of(owner, ids) == (0, 60)


async def test_a_dry_run_counts_all_and_shows_some(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.memory.sweeper.SHOWN", 3)
    await engine.memory.remember_many(session("web-42"), [f"turn {n}" for n in range(5)])
    await engine.memory.remember_many(agent("support"), [{"content": f"{n}", "importance": 0.1} for n in range(4)])
    await clock.advance(400 * DAY)
    read: list[int] = []
    query = engine.database.all

    async def counted(statement: str, *args: object) -> list[Row]:
        rows = await query(statement, *args)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(engine.database, "all", counted)
    told = await engine.memory.sweep(dry_run=True)

    assert told.counts == {("session", "expired"): 5, ("agent", "faded"): 4}
    assert len(told.ids) == 3
    assert max(read) == 3


@pytest.mark.parametrize("change", ["importance = 1.0", "access_count = 20", "pinned = true"])
async def test_what_came_to_matter_or_to_be_used_since_it_was_found_faded_is_kept(
    engine: Engine, clock: Clock, change: str
) -> None:
    fact = await engine.memory.remember(user("ann"), "once said hello", importance=0.0)
    await clock.advance(300 * DAY)
    fading = Fading.by(engine.config.memory.retention)
    parts = fading.half_life_days, fading.halvings
    [row] = await engine.database.all(sql("fading"), *parts, fading.shortest, 10)

    await engine.database.run(f"update memory set {change} where tenant_id = $1 and id = $2", fact.id)
    deleted = await engine.database.value(sql("sweep"), row["scope"], row["owner"], [row["id"]], "faded", *parts)

    assert (row["id"], deleted) == (fact.id, 0)


async def test_an_error_with_one_tenant_keeps_no_other_from_being_swept(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.tenants.create("acme")
    for each in (engine, engine.tenant("acme")):
        await each.memory.remember(user("ann"), "is in a meeting", ttl=60)
    await clock.advance(timedelta(minutes=2))
    failed: list[Database] = []

    async def once(database: Database, settings: RetentionSettings) -> SweepResult:
        if not failed:
            failed.append(database)
            raise RuntimeError("planted")
        return await sweep(database, settings)

    monkeypatch.setattr("holdfast.memory.sweeper.sweep", once)

    assert await Sweeper(engine.postgres, engine.config.memory).sweep() == 1
    assert "internal error" in caplog.text


async def test_the_sweeper_goes_on_after_an_error_that_nobody_thought_of(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = engine.config.memory
    often = memory.model_copy(update={"retention": memory.retention.model_copy(update={"sweep_minutes": 1e-6})})
    sweeper, tries, again = Sweeper(engine.postgres, often), list[int](), asyncio.Event()

    async def failing() -> int:
        tries.append(1)
        if len(tries) > 1:
            again.set()
        raise RuntimeError("planted")

    monkeypatch.setattr(sweeper, "sweep", failing)

    async with asyncio.timeout(5), sweeper:
        await again.wait()


async def test_a_tombstone_is_kept_for_ninety_days_and_that_of_a_key_for_good(
    engine: Engine, clock: Clock, owner: DatabaseOwner
) -> None:
    nameless = await engine.memory.remember(user("ann"), "likes tea")
    keyed = await engine.memory.remember(user("ann"), "likes coffee", key="event 7")
    for each in (nameless, keyed):
        await engine.memory.forget(each.id)
    sweeper = Sweeper(engine.postgres, engine.config.memory)

    await clock.advance(89 * DAY)
    await sweeper.sweep()
    _, early = await rows_of(owner, [nameless.id, keyed.id])
    await clock.advance(2 * DAY)
    await sweeper.sweep()

    assert early == 2
    assert await rows_of(owner, [nameless.id]) == (0, 0)
    assert await rows_of(owner, [keyed.id]) == (0, 1)


@pytest.mark.req("MEM-02")
async def test_the_memories_of_a_session_expire_at_once_when_it_ends(engine: Engine) -> None:
    await engine.conversations.create(session_id="web-42", user="ann")
    for whose in (session("web-42"), session("web-43"), user("ann")):
        await engine.memory.remember(whose, "asked for a parcel")

    await engine.sessions.end("web-42", user="ann")

    assert await found(engine, session("web-42")) == 0
    assert await found(engine, session("web-43")) == 1
    assert await found(engine, user("ann")) == 1
    assert (await engine.memory.sweep()).counts == {("session", "expired"): 1}


@pytest.mark.req("MEM-02")
async def test_the_memories_of_a_session_expire_at_once_when_its_conversation_is_removed(engine: Engine) -> None:
    talk = await engine.conversations.create(session_id="web-42", user="ann")
    for whose in (session("web-42"), session("web-43"), user("ann")):
        await engine.memory.remember(whose, "asked for a parcel")

    await engine.conversations.remove(talk.id)

    assert await found(engine, session("web-42")) == 0
    assert await found(engine, session("web-43")) == 1
    assert await found(engine, user("ann")) == 1


@pytest.mark.req("MEM-02")
async def test_a_session_that_only_has_memories_can_be_ended_and_one_that_has_nothing_cannot(engine: Engine) -> None:
    await engine.memory.remember(session("web-42"), "asked for a parcel")

    await engine.sessions.end("web-42")

    assert await found(engine, session("web-42")) == 0
    with pytest.raises(NotFound):
        await engine.sessions.end("web-43")


@pytest.mark.req("MEM-02")
async def test_memories_stay_when_the_end_of_their_session_is_rolled_back_or_another_users(engine: Engine) -> None:
    await engine.conversations.create(session_id="web-42", user="ann")
    await engine.memory.remember(session("web-42"), "asked for a parcel")

    with pytest.raises(NotFound):
        await engine.sessions.end("web-42", user="bob")
    with suppress(ZeroDivisionError):
        async with engine.transaction() as tx:
            await engine.sessions.end("web-42", user="ann", tx=tx)
            raise ZeroDivisionError

    assert await found(engine, session("web-42")) == 1


async def found(engine: Engine, owner: Owner) -> int:
    return len(await engine.memory.search(owner, "parcel"))
