"""Turns whose vectors are made of the turn before, too."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.language import Language
from holdfast.embeddings.store import Store
from holdfast.engine import Engine
from holdfast.memory import memory_indexer, user
from holdfast.memory.memory_indexer import Indexer
from holdfast.postgres.database import OwnerConnection
from holdfast.skills import registry_indexer
from tests.memory.conftest import OpenWith

pytestmark = [pytest.mark.req("MEM-04", "EMB-03"), pytest.mark.usefixtures("models")]

ANN = user("ann")
UPDATE = "update user_memories set content = 'Shall we go to Oslo?' where id = $2 and $1::uuid is not null"
VECTOR = "select embedding::text from memory_vector where memory_id = $1"


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own indexers stay out of the way."""
    monkeypatch.setattr(memory_indexer, "FIRST", 3600)
    monkeypatch.setattr(registry_indexer, "FIRST", 3600)


@pytest.fixture
async def engine(open_with: OpenWith, models: Store) -> AsyncIterator[Engine]:
    """An engine that embeds turns with the ones before."""
    async with open_with(embedding={"with_previous_turn": True}) as engine:
        yield engine


def turn(seq: int, content: str) -> dict[str, object]:
    return {"content": content, "author": "Ann", "conversation": "chat-1", "seq": seq}


@asynccontextmanager
async def listening(engine: Engine) -> AsyncGenerator[asyncio.Event]:
    """Whether the indexers were woken, from here on."""
    async with engine.postgres.listen(memory_indexer.CHANNEL) as notified:
        for attempt in itertools.count():  # until the newest one arrives: nothing that is older can come after it
            await engine.database.run("select pg_notify($2, $3), $1::uuid", memory_indexer.CHANNEL, str(attempt))
            await asyncio.sleep(0.02)
            if (memory_indexer.CHANNEL, str(attempt)) in notified.payloads:
                break
        notified.clear()
        yield notified


async def vector(owner: OwnerConnection, id: UUID) -> list[float]:
    """The one vector that a memory has."""
    [row] = await owner.all(VECTOR, id)
    return [float(number) for number in row["embedding"].strip("[]").split(",")]


async def expected(engine: Engine, text: str) -> list[float]:
    [made] = await engine.embeddings.vectors([text])
    assert made is not None
    return pytest.approx(made, abs=1e-3)  # pyright: ignore[reportReturnType]


async def test_a_short_turn_is_embedded_with_the_one_before_it(engine: Engine, owner: OwnerConnection) -> None:
    first, second = await engine.memory.remember_many(ANN, [turn(1, "Shall we go to Rome?"), turn(2, "Yes, in May.")])
    third = await engine.memory.remember(ANN, "Fine!", author="Ann", conversation="chat-1", seq=3)

    assert await vector(owner, first.id) == await expected(engine, "Ann: Shall we go to Rome?")
    assert await vector(owner, second.id) == await expected(engine, "Ann: Shall we go to Rome?\nAnn: Yes, in May.")
    assert await vector(owner, third.id) == await expected(engine, "Ann: Yes, in May.\nAnn: Fine!")


async def test_a_long_turn_and_a_fact_stand_alone(engine: Engine, owner: OwnerConnection) -> None:
    long = "It was a long day in the old city. " * 12
    _, told = await engine.memory.remember_many(ANN, [turn(1, "How was Rome?"), turn(2, long)])
    fact = await engine.memory.remember(ANN, "prefers tea over coffee")

    assert await vector(owner, told.id) == await expected(engine, f"Ann: {long}")
    assert await vector(owner, fact.id) == await expected(engine, "prefers tea over coffee")


@pytest.mark.parametrize("change", ["edit", "forget", "insert"])
async def test_what_changes_before_a_turn_has_it_embedded_anew(
    engine: Engine, owner: OwnerConnection, change: str
) -> None:
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
    engine: Engine, open_with: OpenWith, owner: OwnerConnection
) -> None:
    _, second = await engine.memory.remember_many(ANN, [turn(1, "Shall we go to Rome?"), turn(2, "Yes, in May.")])

    async with open_with(embedding={"with_previous_turn": False}) as plain:
        before = await plain.memory.search(ANN, "when do they travel?", explain=True)
        await Indexer(plain.postgres, plain.embeddings, plain.config.memory).catch_up()

    assert all(hit.parts is not None and hit.parts.vector != 0 for hit in before), "the former vectors serve"
    assert await vector(owner, second.id) == await expected(engine, "Ann: Yes, in May.")


@pytest.mark.parametrize("change", ["edit", "forget", "insert", "plain SQL"])
async def test_what_has_a_turn_embedded_anew_wakes_the_indexer(engine: Engine, change: str) -> None:
    first, _ = await engine.memory.remember_many(ANN, [turn(1, "Shall we go to Rome?"), turn(4, "Yes, in May.")])

    async with asyncio.timeout(10), listening(engine) as notified:
        match change:
            case "edit":
                await engine.memory.edit(first.id, content="Shall we go to Oslo?")
            case "forget":
                await engine.memory.forget(first.id)
            case "insert":
                await engine.memory.remember(ANN, "Or to Lima?", author="Ann", conversation="chat-1", seq=2)
            case _:
                await engine.database.run(UPDATE, first.id)
        await notified.wait()


async def test_an_edited_turn_has_its_vector_soon_also_if_it_is_the_last(
    engine: Engine, owner: OwnerConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_indexer, "FIRST", 0)
    _, last = await engine.memory.remember_many(ANN, [turn(1, "Shall we go to Rome?"), turn(2, "Yes, in May.")])

    indexer, looked = Indexer(engine.postgres, engine.embeddings, engine.config.memory), asyncio.Event()
    look = indexer.catch_up

    async def catch_up() -> int:
        done = await look()
        looked.set()
        return done

    monkeypatch.setattr(indexer, "catch_up", catch_up)
    async with asyncio.timeout(10), listening(engine), indexer:
        await looked.wait()
        await engine.memory.edit(last.id, content="No, I am busy.")
        while not (await engine.memory.get(last.id)).embedded:
            pass

    assert await vector(owner, last.id) == await expected(engine, "Ann: Shall we go to Rome?\nAnn: No, I am busy.")


async def test_a_turn_that_is_edited_twice_has_the_next_one_embedded_with_what_it_says_last(
    engine: Engine, owner: OwnerConnection
) -> None:
    first, second = await engine.memory.remember_many(ANN, [turn(1, "Shall we go to Rome?"), turn(2, "Yes, in May.")])
    indexer = Indexer(engine.postgres, engine.embeddings, engine.config.memory)
    await engine.memory.edit(first.id, content="Shall we go to Oslo?")
    await owner.run("update memory set embedded = rtrim(embedded) where id = $1", second.id)  # as if it were made

    await engine.memory.edit(first.id, content="Shall we go to Lima?")
    await indexer.catch_up()

    assert await vector(owner, second.id) == await expected(engine, "Ann: Shall we go to Lima?\nAnn: Yes, in May.")


async def test_a_turn_is_never_left_with_a_vector_of_what_was_said_before_it_once(
    engine: Engine, owner: OwnerConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await engine.memory.remember_many(ANN, [turn(1, "Shall we go to Rome?"), turn(2, "Yes, in May.")])
    indexer = Indexer(engine.postgres, engine.embeddings, engine.config.memory)
    await engine.memory.edit(first.id, content="Shall we go to Oslo?")
    embed, edited = engine.embeddings.vectors, asyncio.Event()

    async def vectors(texts: Sequence[str], languages: Sequence[Language] | None = None) -> list[Vector | None]:
        if not edited.is_set():
            edited.set()
            await engine.memory.edit(first.id, content="Shall we go to Lima?")
        return await embed(texts, languages)

    monkeypatch.setattr(engine.embeddings, "vectors", vectors)
    await indexer.catch_up()
    await indexer.catch_up()

    assert edited.is_set()
    assert await vector(owner, second.id) == await expected(engine, "Ann: Shall we go to Lima?\nAnn: Yes, in May.")
