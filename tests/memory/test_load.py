import asyncio
import random

import pytest

from holdfast.engine import Engine
from holdfast.memory import user

WRITERS = SEARCHERS = 32


@pytest.mark.req("MEM-06")
@pytest.mark.parametrize("writes", [640, pytest.param(10_000, marks=pytest.mark.soak(minutes=5))])
async def test_every_writer_finds_at_once_what_it_wrote_while_others_search(words_only: Engine, writes: int) -> None:
    memories, missed = words_only.memory, list[str]()
    done = asyncio.Event()

    async def write(number: int) -> None:
        owner = user(f"user {number % 4}")
        for turn in range(writes // WRITERS):
            word = f"parcel{number}x{turn}"
            memory = await memories.remember(owner, f"{word} is on its way")
            hits = await memories.search(owner, word, limit=3)
            if memory.id not in [hit.memory.id for hit in hits]:
                missed.append(word)

    async def search(number: int) -> int:
        dice, searches = random.Random(number), 0
        while not done.is_set():
            owner = user(f"user {dice.randrange(4)}")
            hits = await memories.search(owner, f"parcel{dice.randrange(WRITERS)}x0 way", limit=5)
            assert all(hit.memory.owner == owner for hit in hits)
            searches += 1
        return searches

    searchers = [asyncio.create_task(search(number)) for number in range(SEARCHERS)]
    async with asyncio.timeout(600):
        await asyncio.gather(*(write(number) for number in range(WRITERS)))
        done.set()
        searches = await asyncio.gather(*searchers)

    assert missed == []
    assert all(searches)
    for number in range(4):
        hits = await memories.search(user(f"user {number}"), "on its way", limit=1000)
        assert len(hits) == min(1000, writes // WRITERS * WRITERS // 4) or writes > 4000


@pytest.mark.req("MEM-02")
async def test_writers_of_the_same_texts_in_any_order_wait_for_one_another(words_only: Engine) -> None:
    texts = [f"fact number {n}" for n in range(40)]

    async def write(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(4):
            await words_only.memory.remember_many(user("ann"), dice.sample(texts, 15))

    async with asyncio.timeout(60):
        await asyncio.gather(*(write(seed) for seed in range(16)))

    assert len(await words_only.memory.search(user("ann"), "fact", limit=100)) == len(texts)
