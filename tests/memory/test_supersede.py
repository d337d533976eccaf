import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from holdfast.core.errors import Conflict, InvalidInput, NotFound
from holdfast.engine import Engine
from holdfast.memory import Memories, Memory, session, user
from tests.clock import Clock
from tests.memory.conftest import OpenWith

ANN = user("ann")
pytestmark = pytest.mark.req("MEM-09")


async def found(memories: Memories, query: str, as_of: datetime | None = None) -> list[str]:
    return [hit.memory.content for hit in await memories.search(ANN, query, as_of=as_of)]


async def test_a_search_finds_what_was_true_at_the_moment_it_asks_about(engine: Engine, clock: Clock) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    await clock.set(start)
    oslo = await engine.memory.remember(ANN, "Lives in Oslo", importance=0.9, metadata={"kind": "home"}, trust="agent")
    await clock.set(start + timedelta(days=10))
    rome = await engine.memory.supersede(oslo.id, "Lives in Rome")
    await clock.set(start + timedelta(days=20))
    paris = await engine.memory.supersede(rome.id, "Lives in Paris")

    answers = {
        days: await found(engine.memory, "lives in", start + timedelta(days=days)) for days in (-1, 5, 10, 15, 25)
    }

    assert await found(engine.memory, "lives in") == ["Lives in Paris"]
    assert answers == {
        -1: [],
        5: ["Lives in Oslo"],
        10: ["Lives in Rome"],
        15: ["Lives in Rome"],
        25: ["Lives in Paris"],
    }
    assert (paris.importance, paris.metadata, paris.trust, paris.type) == (0.9, {"kind": "home"}, "agent", "fact")
    old, then = await engine.memory.get(oslo.id), await engine.memory.get(rome.id)
    assert (old.superseded_by, then.superseded_by, paris.superseded_by) == (rome.id, paris.id, None)
    assert (old.valid_from, old.valid_to) == (start, then.valid_from)
    assert (then.valid_to, paris.valid_to) == (paris.valid_from, None)


async def test_what_changed_earlier_is_superseded_from_then_on(engine: Engine, clock: Clock) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    await clock.set(start)
    oslo = await engine.memory.remember(ANN, "Lives in Oslo")
    await clock.set(start + timedelta(days=30))

    rome = await engine.memory.supersede(oslo.id, "Lives in Rome", at=start + timedelta(days=10))

    assert rome.valid_from == start + timedelta(days=10)
    assert await found(engine.memory, "lives in", start + timedelta(days=9)) == ["Lives in Oslo"]
    assert await found(engine.memory, "lives in", start + timedelta(days=11)) == ["Lives in Rome"]


async def test_the_history_tells_who_took_its_place_when(words_only: Engine) -> None:
    memory = await words_only.memory.remember(ANN, "Lives in Oslo", importance=0.5)
    await words_only.memory.edit(memory.id, importance=0.7)
    await words_only.memory.edit(memory.id, content="Lives in Oslo, Norway")
    await words_only.memory.supersede(memory.id, "Lives in Rome")

    history = await words_only.memory.history(memory.id)

    assert [(each.version, each.operation, each.content, each.importance) for each in history] == [
        (4, "supersede", "Lives in Oslo, Norway", 0.7),
        (3, "edit", "Lives in Oslo, Norway", 0.7),
        (2, "edit", "Lives in Oslo", 0.7),
        (1, "remember", "Lives in Oslo", 0.5),
    ]


async def test_the_history_of_what_was_never_changed_is_what_it_is(words_only: Engine) -> None:
    memory = await words_only.memory.remember(ANN, "Lives in Oslo")

    [only] = await words_only.memory.history(memory.id)

    assert (only.version, only.operation, only.content, only.at) == (1, "remember", "Lives in Oslo", memory.created_at)


async def test_what_was_superseded_can_be_said_anew(words_only: Engine) -> None:
    oslo = await words_only.memory.remember(ANN, "Lives in Oslo")
    await words_only.memory.supersede(oslo.id, "Lives in Rome")

    again = await words_only.memory.remember(ANN, "Lives in Oslo")

    assert again.id != oslo.id
    assert sorted(await found(words_only.memory, "lives in")) == ["Lives in Oslo", "Lives in Rome"]


async def test_nothing_is_superseded_twice_or_by_itself(words_only: Engine) -> None:
    oslo = await words_only.memory.remember(ANN, "Lives in Oslo")
    rome = await words_only.memory.supersede(oslo.id, "Lives in Rome")

    with pytest.raises(InvalidInput, match=str(rome.id)):
        await words_only.memory.supersede(oslo.id, "Lives in Paris")
    with pytest.raises(InvalidInput, match="already has this content"):
        await words_only.memory.supersede(rome.id, "Lives in Rome")

    assert await found(words_only.memory, "lives in") == ["Lives in Rome"]


async def test_a_stale_version_supersedes_nothing(words_only: Engine) -> None:
    oslo = await words_only.memory.remember(ANN, "Lives in Oslo")
    await words_only.memory.edit(oslo.id, importance=0.9)

    with pytest.raises(Conflict) as refused:
        await words_only.memory.supersede(oslo.id, "Lives in Rome", version=1)

    assert (refused.value.expected, refused.value.current) == (1, 2)
    assert await found(words_only.memory, "lives in") == ["Lives in Oslo"]


async def test_a_chain_in_one_transaction_is_undone_with_it(words_only: Engine) -> None:
    oslo = await words_only.memory.remember(ANN, "Lives in Oslo")

    async def move_and_fail() -> None:
        async with words_only.transaction() as tx:
            rome = await words_only.memory.supersede(oslo.id, "Lives in Rome", tx=tx)
            await words_only.memory.supersede(rome.id, "Lives in Paris", tx=tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await move_and_fail()

    assert await found(words_only.memory, "lives in") == ["Lives in Oslo"]
    assert (await words_only.memory.get(oslo.id)).superseded_by is None


async def test_what_is_not_there_cannot_be_superseded(words_only: Engine) -> None:
    memory = await words_only.memory.remember(ANN, "Lives in Oslo")
    await words_only.memory.forget(memory.id)

    with pytest.raises(NotFound, match="forgotten"):
        await words_only.memory.supersede(memory.id, "Lives in Rome")

    assert await found(words_only.memory, "lives in") == []


async def test_of_many_who_supersede_at_once_one_does(words_only: Engine) -> None:
    old = await words_only.memory.remember(ANN, "Lives in Oslo")

    outcomes = await asyncio.gather(
        *(words_only.memory.supersede(old.id, f"Lives in town {n}") for n in range(12)), return_exceptions=True
    )

    winners = [outcome for outcome in outcomes if isinstance(outcome, Memory)]
    assert len(winners) == 1
    assert {type(outcome) for outcome in outcomes} - {Memory} <= {Conflict, InvalidInput}
    assert await found(words_only.memory, "lives in") == [winners[0].content]


async def test_what_comes_later_takes_its_place_when_it_comes(engine: Engine, clock: Clock) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    await clock.set(now)
    oslo = await engine.memory.remember(ANN, "Lives in Oslo")

    await engine.memory.supersede(oslo.id, "Lives in Rome", at=now + timedelta(days=10))

    assert await found(engine.memory, "lives in") == ["Lives in Oslo"]
    await clock.set(now + timedelta(days=11))
    assert await found(engine.memory, "lives in") == ["Lives in Rome"]


async def test_superseding_what_is_not_there_takes_no_second_connection(words_only: Engine) -> None:
    async with asyncio.timeout(5):
        outcomes = await asyncio.gather(
            *(words_only.memory.supersede(uuid4(), "Lives in Rome") for _ in range(40)), return_exceptions=True
        )

    assert {type(outcome) for outcome in outcomes} == {NotFound}


async def test_the_oldest_of_a_full_session_is_superseded_like_any_other(open_with: OpenWith) -> None:
    async with open_with(short_term={"max_memories": 5}) as engine:
        turns = await engine.memory.remember_many(session("web-42"), [f"turn {n}" for n in range(5)])

        new = await engine.memory.supersede(turns[0].id, "turn of its own")

        kept = await engine.memory.search(session("web-42"), "turn", limit=10)
    assert {hit.memory.id for hit in kept} == {new.id, *(turn.id for turn in turns[1:])}


async def test_what_a_forgotten_memory_superseded_can_be_superseded_again(words_only: Engine) -> None:
    oslo = await words_only.memory.remember(ANN, "Lives in Oslo")
    rome = await words_only.memory.supersede(oslo.id, "Lives in Rome")
    await words_only.memory.forget(rome.id)

    paris = await words_only.memory.supersede(oslo.id, "Lives in Paris")

    assert (await words_only.memory.get(oslo.id)).superseded_by == paris.id


@pytest.mark.req("MEM-09", "UI-01")
async def test_a_chain_tells_from_any_of_them_what_took_whose_place(words_only: Engine) -> None:
    oslo, bergen, tea = await words_only.memory.remember_many(ANN, ["Lives in Oslo", "Lives in Bergen", "Likes tea"])
    rome = await words_only.memory.supersede(oslo.id, "Lives in Rome")
    assert (await words_only.memory.supersede(bergen.id, "Lives in Rome")).id == rome.id  # said already
    paris = await words_only.memory.supersede(rome.id, "Lives in Paris")

    chains = {id: await words_only.memory.chain(id) for id in (oslo.id, rome.id, paris.id, tea.id)}

    whole = [oslo.id, bergen.id, rome.id, paris.id]
    told = {id: [memory.id for memory in chain] for id, chain in chains.items()}
    assert told == {oslo.id: whole, rome.id: whole, paris.id: whole, tea.id: [tea.id]}
    assert [memory.superseded_by for memory in chains[paris.id]] == [rome.id, rome.id, paris.id, None]
    with pytest.raises(NotFound):
        await words_only.memory.chain(uuid4())
