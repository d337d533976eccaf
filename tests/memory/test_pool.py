"""Owners with more memories than are weighed: the best of them are, whatever is asked."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from holdfast.engine import Engine
from holdfast.memory import session, user
from tests.memory.conftest import OpenWith

pytestmark = pytest.mark.req("MEM-05")

ANN = user("ann")
MANY = 120


@pytest.fixture
async def engine(open_with: OpenWith, no_models: None) -> AsyncIterator[Engine]:
    """An engine by words only, which weighs ten of more than twenty."""
    async with open_with(scoring={"pool_from": 20, "pool": 10}) as engine:
        await engine.memory.remember_many(ANN, [f"tea number {n}" for n in range(MANY)])
        yield engine


async def test_as_many_are_found_as_are_wanted(engine: Engine) -> None:
    assert len(await engine.memory.search(ANN, "tea", limit=100)) == 100


async def test_a_question_that_nothing_can_be_compared_with_finds_the_newest(engine: Engine) -> None:
    hits = await engine.memory.search(ANN, "of the and", limit=5)

    assert [hit.memory.content for hit in hits] == [f"tea number {n}" for n in range(MANY - 1, MANY - 6, -1)]


async def test_why_not_weighs_what_the_search_weighs(engine: Engine) -> None:
    hits = await engine.memory.search(ANN, "tea", limit=5)
    others = await engine.memory.search(ANN, "tea", limit=100)

    returned = await engine.memory.why_not(hits[0].memory.id, ANN, "tea", limit=5)
    left = await engine.memory.why_not(others[-1].memory.id, ANN, "tea", limit=5)

    assert (returned.reason, returned.rank) == ("returned", 1)
    assert left.reason == "no embedding yet"
    assert left.rank is None or left.rank > 5


async def test_a_turn_without_a_place_has_no_neighbours(engine: Engine) -> None:
    turns = [{"content": f"tea {n}", "conversation": "chat-1", "author": "Ann"} for n in range(3)]
    await engine.memory.remember_many(user("bob"), [*turns, {"content": "nothing", "conversation": "chat-1"}])

    hits = await engine.memory.search(user("bob"), "tea", explain=True)

    assert [hit.parts.neighbours for hit in hits if hit.parts] == [0.0] * 4


async def test_a_session_and_a_user_of_one_name_stay_apart(engine: Engine) -> None:
    name = str(uuid4())
    await engine.memory.remember(session(name), "tea in the session")
    await engine.memory.remember(user(name), "tea of the user")

    hits = await engine.memory.context("tea", session=name, user=name)

    assert {(hit.memory.content, hit.memory.owner.scope) for hit in hits} == {
        ("tea in the session", "session"),
        ("tea of the user", "user"),
    }


async def test_a_question_of_twenty_thousand_characters_is_answered(engine: Engine) -> None:
    hits = await engine.memory.search(ANN, "茶很好喝" * 5000, limit=3)

    assert len(hits) == 3
