"""Turns whose vectors are made of the turn before, too."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from holdfast.embeddings.store import Store
from holdfast.engine import Engine
from holdfast.memory import indexing, user
from holdfast.memory.indexing import Indexer
from holdfast.postgres.database import Owner
from tests.memory.conftest import OpenWith

pytestmark = [pytest.mark.req("MEM-04", "EMB-03"), pytest.mark.usefixtures("models")]

ANN = user("ann")
VECTOR = "select embedding::text from memory_vector where memory_id = $1"


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own indexer stays out of the way."""
    monkeypatch.setattr(indexing, "FIRST", 3600)


@pytest.fixture
async def engine(open_with: OpenWith, models: Store) -> AsyncIterator[Engine]:
    """An engine that embeds turns with the ones before."""
    async with open_with(embedding={"with_previous_turn": True}) as engine:
        yield engine


def turn(seq: int, content: str) -> dict[str, object]:
    return {"content": content, "author": "Ann", "conversation": "chat-1", "seq": seq}


async def vector(owner: Owner, id: UUID) -> list[float]:
    """The one vector that a memory has."""
    [row] = await owner.all(VECTOR, id)
    return [float(number) for number in row["embedding"].strip("[]").split(",")]


async def expected(engine: Engine, text: str) -> list[float]:
    [made] = await engine.embeddings.vectors([text])
    assert made is not None
    return pytest.approx(made, abs=1e-3)  # pyright: ignore[reportReturnType]


async def test_a_short_turn_is_embedded_with_the_one_before_it(engine: Engine, owner: Owner) -> None:
    first, second = await engine.memory.remember_many(ANN, [turn(1, "Shall we go to Rome?"), turn(2, "Yes, in May.")])
    third = await engine.memory.remember(ANN, "Fine!", author="Ann", conversation="chat-1", seq=3)

    assert await vector(owner, first.id) == await expected(engine, "Ann: Shall we go to Rome?")
    assert await vector(owner, second.id) == await expected(engine, "Ann: Shall we go to Rome?\nAnn: Yes, in May.")
    assert await vector(owner, third.id) == await expected(engine, "Ann: Yes, in May.\nAnn: Fine!")


async def test_a_long_turn_and_a_fact_stand_alone(engine: Engine, owner: Owner) -> None:
    long = "It was a long day in the old city. " * 12
    _, told = await engine.memory.remember_many(ANN, [turn(1, "How was Rome?"), turn(2, long)])
    fact = await engine.memory.remember(ANN, "prefers tea over coffee")

    assert await vector(owner, told.id) == await expected(engine, f"Ann: {long}")
    assert await vector(owner, fact.id) == await expected(engine, "prefers tea over coffee")


@pytest.mark.parametrize("change", ["edit", "forget", "insert"])
async def test_what_changes_before_a_turn_has_it_embedded_anew(engine: Engine, owner: Owner, change: str) -> None:
    first, second = await engine.memory.remember_many(ANN, [turn(1, "Shall we go to Rome?"), turn(4, "Yes, in May.")])
    indexer = Indexer(engine.postgres, engine.embeddings, engine.config.memory)
    if change == "edit":
        await engine.memory.edit(first.id, content="Shall we go to Oslo?")
        said = "Ann: Shall we go to Oslo?\nAnn: Yes, in May."
    elif change == "forget":
        await engine.memory.forget(first.id)
        said = "Ann: Yes, in May."
    else:
        await engine.memory.remember(ANN, "Or rather to Lima?", author="Ann", conversation="chat-1", seq=2)
        said = "Ann: Or rather to Lima?\nAnn: Yes, in May."

    found = await engine.memory.search(ANN, "when do they travel?", limit=3)
    await indexer.catch_up()

    assert second.id in [hit.memory.id for hit in found], "the old vector serves until the new one is there"
    assert await vector(owner, second.id) == await expected(engine, said)


async def test_changing_the_setting_embeds_all_anew_and_leaves_no_vector_behind(
    engine: Engine, open_with: OpenWith, owner: Owner
) -> None:
    _, second = await engine.memory.remember_many(ANN, [turn(1, "Shall we go to Rome?"), turn(2, "Yes, in May.")])

    async with open_with(embedding={"with_previous_turn": False}) as plain:
        before = await plain.memory.search(ANN, "when do they travel?", explain=True)
        await Indexer(plain.postgres, plain.embeddings, plain.config.memory).catch_up()

    assert all(hit.parts is not None and hit.parts.vector != 0 for hit in before), "the former vectors serve"
    assert await vector(owner, second.id) == await expected(engine, "Ann: Yes, in May.")
