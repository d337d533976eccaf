import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from holdfast.core.errors import HoldfastError, NotFound, Unavailable
from holdfast.engine import Engine
from holdfast.memory import Memories, Owner, agent, organization, session, user
from holdfast.memory import memories as module
from tests.clock import Clock
from tests.memory.conftest import OpenWith

ANN = user("ann")
BOB = user("bob")


async def contents(memories: Memories, owner: Owner, query: str) -> list[str]:
    return [hit.memory.content for hit in await memories.search(owner, query, limit=100)]


@pytest.mark.req("MEM-02")
async def test_a_memory_keeps_all_that_was_said_of_it(words_only: Engine) -> None:
    at, source = datetime(2026, 3, 1, 9, 30, tzinfo=UTC), uuid4()

    written = await words_only.memory.remember(
        session("web-1", agent="support", user="ann"),
        "Prefers tea\u0000 over coffee",
        type="preference",
        importance=0.75,
        ttl=timedelta(hours=3),
        trust="tool",
        metadata={"lang": "en", "tags": ["drink", 7, None]},
        source=source,
        key="msg-7",
        conversation="web-1",
        seq=7,
        author="Ann",
        at=at,
    )
    read = await words_only.memory.get(written.id)

    assert read == written
    assert read.owner == session("web-1", agent="support", user="ann")
    assert (read.content, read.type, read.importance) == ("Prefers tea\u0000 over coffee", "preference", 0.75)
    assert (read.trust, read.source, read.key) == ("tool", str(source), "msg-7")
    assert read.metadata == {"lang": "en", "tags": ["drink", 7, None]}
    assert (read.conversation, read.seq, read.author, read.at) == ("web-1", 7, "Ann", at)
    assert read.expires_at == read.created_at + timedelta(hours=3)
    assert (read.version, read.pinned, read.buried, read.valid_to) == (1, False, False, None)


@pytest.mark.req("MEM-02")
@pytest.mark.parametrize(
    ("owner", "type"),
    [(session("s"), "turn"), (ANN, "fact"), (agent("support"), "learning"), (organization(), "knowledge")],
    ids=["session", "user", "agent", "organization"],
)
async def test_each_scope_has_its_type_and_only_sessions_end(words_only: Engine, owner: Owner, type: str) -> None:
    memory = await words_only.memory.remember(owner, "The courier comes at noon")

    assert memory.type == type
    assert (memory.importance, memory.trust, memory.metadata) == (1.0, "user", {})
    assert (memory.expires_at is not None) == (owner.scope == "session")


@pytest.mark.req("MEM-02", "MEM-06")
async def test_a_session_memory_is_gone_after_an_hour(engine: Engine, clock: Clock) -> None:
    memory = await engine.memory.remember(session("web"), "Wants a window seat")
    await engine.memory.remember(session("web"), "Wants a seat near the door", ttl=2 * 3600)
    assert memory.expires_at == memory.created_at + timedelta(minutes=60)

    await clock.advance(timedelta(minutes=59))
    before = await contents(engine.memory, session("web"), "which seat?")
    await clock.advance(timedelta(minutes=1))
    after = await contents(engine.memory, session("web"), "which seat?")

    assert sorted(before) == ["Wants a seat near the door", "Wants a window seat"]
    assert after == ["Wants a seat near the door"]


@pytest.mark.req("MEM-02")
async def test_past_the_limit_of_a_session_the_least_important_go_then_the_oldest_and_the_pinned_never(
    open_with: OpenWith,
) -> None:
    async with open_with(short_term={"max_memories": 3}) as engine:
        pinned = await engine.memory.remember(session("web"), "seat A", importance=0.01)
        await engine.memory.pin(pinned.id)
        await engine.memory.remember(session("web"), "seat B", importance=0.9)
        low = await engine.memory.remember(session("web"), "seat C", importance=0.2)
        for letter in "DE":
            await engine.memory.remember(session("web"), f"seat {letter}", importance=0.9)
        after_low = await contents(engine.memory, session("web"), "seat")
        await engine.memory.remember(session("web"), "seat F", importance=0.9)
        after_old = await contents(engine.memory, session("web"), "seat")

        assert sorted(after_low) == ["seat A", "seat B", "seat D", "seat E"]
        assert sorted(after_old) == ["seat A", "seat D", "seat E", "seat F"]
        with pytest.raises(NotFound, match="limit"):
            await engine.memory.get(low.id)


@pytest.mark.req("MEM-02")
async def test_the_limit_of_a_session_counts_no_memory_that_is_recalled_no_more(words_only: Engine) -> None:
    memories = words_only.memory
    [first, hidden, *_] = await memories.remember_many(session("web"), [f"seat {number}" for number in range(91)])

    last = first
    for number in range(40):
        last = await memories.supersede(last.id, f"seat {1000 + number}")
    await memories.bury(hidden.id)
    await memories.remember_many(session("web"), [f"seat {2000 + number}" for number in range(10)])
    at_the_limit = await contents(memories, session("web"), "seat")
    await memories.remember(session("web"), "seat 3000")
    past_it = await contents(memories, session("web"), "seat")

    assert set(at_the_limit) == {f"seat {number}" for number in (1039, *range(2, 91), *range(2000, 2010))}
    assert len(at_the_limit) == len(past_it) == 100
    assert (await memories.get(first.id)).superseded_by is not None
    assert (await memories.get(hidden.id)).buried


@pytest.mark.req("MEM-02")
async def test_other_scopes_have_no_limit(open_with: OpenWith) -> None:
    async with open_with(short_term={"max_memories": 2}) as engine:
        await engine.memory.remember_many(ANN, [f"seat {number}" for number in range(5)])

        assert len(await contents(engine.memory, ANN, "seat")) == 5


@pytest.mark.req("MEM-02")
async def test_what_matters_little_is_recalled_only_when_it_is_asked_for(words_only: Engine) -> None:
    for importance in (0.0, 0.49, 0.5, 1.0):
        await words_only.memory.remember(ANN, f"weighs {importance}", importance=importance)
        await words_only.memory.remember(session("web"), f"weighs {importance}", importance=importance)

    usual = await words_only.memory.search(ANN, "weighs")
    asked = await words_only.memory.search(ANN, "weighs", min_importance=0)
    of_the_session = await words_only.memory.search(session("web"), "weighs")

    assert sorted(hit.memory.importance for hit in usual) == [0.5, 1.0]
    assert sorted(hit.memory.importance for hit in asked) == [0.0, 0.49, 0.5, 1.0]
    assert sorted(hit.memory.importance for hit in of_the_session) == [0.0, 0.49, 0.5, 1.0]


@pytest.mark.req("MEM-02")
async def test_what_is_said_again_is_folded_into_what_is_there(words_only: Engine) -> None:
    first = await words_only.memory.remember(ANN, "Prefers tea", importance=0.6, ttl=timedelta(hours=1))

    again = await words_only.memory.remember(ANN, "Prefers tea", importance=0.8, ttl=timedelta(hours=2))
    less = await words_only.memory.remember(ANN, "Prefers tea", importance=0.1, ttl=timedelta(minutes=1))
    lasting = await words_only.memory.remember(ANN, "Prefers tea", importance=0.1)

    assert first.id == again.id == less.id == lasting.id
    assert again.importance == less.importance == 0.8
    assert first.expires_at is not None
    assert again.expires_at is not None
    assert again.expires_at > first.expires_at
    assert less.expires_at == again.expires_at
    assert lasting.expires_at is None
    assert await contents(words_only.memory, ANN, "tea") == ["Prefers tea"]


@pytest.mark.req("MEM-02")
@pytest.mark.parametrize(
    "elsewhere",
    [
        {"type": "preference"},
        {"conversation": "c", "seq": 1},
        {"author": "Bob"},
        {"at": datetime(2026, 1, 1, tzinfo=UTC)},
    ],
)
async def test_the_same_words_in_another_place_are_another_memory(
    words_only: Engine, elsewhere: dict[str, object]
) -> None:
    first = await words_only.memory.remember(ANN, "Yes")

    [second] = await words_only.memory.remember_many(ANN, [{"content": "Yes", **elsewhere}])
    of_another = await words_only.memory.remember(user("bob"), "Yes")

    assert len({first.id, second.id, of_another.id}) == 3


@pytest.mark.req("MEM-02")
async def test_a_batch_that_says_a_thing_twice_stores_it_once(words_only: Engine) -> None:
    [one, two, other] = await words_only.memory.remember_many(ANN, ["Prefers tea", "Prefers tea", "Likes milk"])

    assert one.id == two.id != other.id
    assert sorted(await contents(words_only.memory, ANN, "tea milk")) == ["Likes milk", "Prefers tea"]


@pytest.mark.req("MEM-02")
async def test_a_key_stores_one_memory_however_many_write_it_at_once(words_only: Engine) -> None:
    async def write(number: int):
        return await words_only.memory.remember(ANN, f"Order {number} is late", key="order")

    written = await asyncio.gather(*(write(number) for number in range(16)))
    again = await words_only.memory.remember(ANN, "Order 99 is late", key="order")

    assert len({memory.id for memory in [*written, again]}) == 1
    assert len({memory.content for memory in [*written, again]}) == 1
    assert len(await contents(words_only.memory, ANN, "order")) == 1


@pytest.mark.req("MEM-02")
async def test_the_same_words_written_by_many_at_once_are_one_memory(words_only: Engine) -> None:
    batches = [["tea", "milk", "bread"], ["bread", "milk", "tea"]] * 8

    written = await asyncio.gather(*(words_only.memory.remember_many(ANN, batch) for batch in batches))

    assert len({memory.id for batch in written for memory in batch}) == 3


@pytest.mark.req("MEM-02")
async def test_one_key_may_be_used_by_every_owner(words_only: Engine) -> None:
    owners = [ANN, user("bob"), session("ann"), agent("ann"), organization()]

    written = [await words_only.memory.remember(owner, "It is late", key="k") for owner in owners]

    assert len({memory.id for memory in written}) == len(owners)


@pytest.mark.req("MEM-02")
async def test_a_transaction_that_rolls_back_remembers_nothing(words_only: Engine) -> None:
    async def remember_and_fail() -> None:
        async with words_only.transaction() as tx:
            await words_only.memory.remember(ANN, "Prefers tea", key="drink", tx=tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await remember_and_fail()
    after = await contents(words_only.memory, ANN, "tea")
    again = await words_only.memory.remember(ANN, "Prefers milk", key="drink")

    assert after == []
    assert again.content == "Prefers milk"


@pytest.mark.req("MEM-02")
async def test_what_is_in_a_transaction_is_seen_by_others_when_it_commits(words_only: Engine) -> None:
    async with words_only.transaction() as tx:
        memory = await words_only.memory.remember(ANN, "Prefers tea", tx=tx)
        within = await words_only.memory.get(memory.id, tx=tx)
        outside = await contents(words_only.memory, ANN, "tea")

    assert within == memory
    assert outside == []
    assert await contents(words_only.memory, ANN, "tea") == ["Prefers tea"]


@pytest.mark.req("MEM-02")
async def test_nothing_to_remember_is_nothing(words_only: Engine) -> None:
    assert await words_only.memory.remember_many(ANN, []) == []


@pytest.mark.req("MEM-06")
async def test_a_memory_is_found_by_words_and_meaning_as_soon_as_it_is_written(memories: Memories) -> None:
    await memories.remember_many(ANN, ["Lives in Oslo", "Plays chess on Sundays"])

    memory = await memories.remember(ANN, "Prefers tea over coffee")
    hits = await memories.search(ANN, "What would she like to drink?", limit=1)

    assert memory.embedded
    assert [hit.memory.id for hit in hits] == [memory.id]
    assert hits.reduced == ""


@pytest.mark.req("SAFE-06")
async def test_large_batches_are_read_and_stored_in_slices_all_of_them_or_none(
    words_only: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLICE", 200)
    monkeypatch.setattr(module, "LITTLE", 50)
    texts = [f"number {number} 中文没有空格{number} {'word ' * number}" for number in range(40)]

    stored = await words_only.memory.remember_many(ANN, texts)
    with pytest.raises(HoldfastError):
        await words_only.memory.remember_many(
            BOB, [*({"content": text} for text in texts), {"content": "x", "seq": 2**70}]
        )
    async with words_only.database.transaction() as tx:
        inside = await words_only.memory.remember_many(agent("support"), texts, tx=tx)

    assert [memory.content for memory in stored] == [memory.content for memory in inside] == texts
    assert await words_only.memory.list(BOB) == []
    assert (await words_only.memory.search(ANN, "number 39"))[0].memory.content == texts[39]
    assert [memory.id for memory in await words_only.memory.remember_many(ANN, texts)] == [each.id for each in stored]


@pytest.mark.req("SAFE-06")
async def test_a_batch_that_fails_at_its_last_slice_stores_nothing(
    words_only: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLICE", 10)
    store_part = Memories._store_part  # pyright: ignore[reportPrivateUsage]
    parts = 0

    async def fail_at_the_third(self: Memories, *given: Any, **options: Any) -> Any:
        nonlocal parts
        parts += 1
        if parts == 3:
            raise Unavailable("it fails here")
        return await store_part(self, *given, **options)

    monkeypatch.setattr(Memories, "_store_part", fail_at_the_third)

    with pytest.raises(Unavailable, match="it fails here"):
        await words_only.memory.remember_many(ANN, ["one text of them", "another text", "a third text"])

    assert await words_only.memory.list(ANN) == []
