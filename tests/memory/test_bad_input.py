import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast
from uuid import uuid4

import pytest

from holdfast.core.errors import HoldfastError, InvalidInput, NotFound, TooLarge
from holdfast.engine import Engine
from holdfast.memory import Memories, Owner, session, user
from tests.memory.conftest import OpenWith

ANN = user("ann")
ROWS = """
select (select count(*) from memory) + (select count(*) from memory_vector) + (select count(*) from memory_term)
  + (select count(*) from memory_revision) + (select count(*) from memory_tombstone)
"""
Do = Callable[[Any], Awaitable[object]]

FIRST = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))  # in UTC a year that is none
LAST = datetime.max.replace(tzinfo=timezone(-timedelta(hours=14)))

WRITES: dict[str, Do] = {
    "no text": lambda m: m.remember(ANN, ""),
    "blanks": lambda m: m.remember(ANN, " \n\t\u3000"),
    "a megabyte": lambda m: m.remember(ANN, "x" * 1_000_000),
    "bytes": lambda m: m.remember(ANN, b"tea"),
    "None": lambda m: m.remember(ANN, None),
    "an importance that is no number": lambda m: m.remember(ANN, "tea", importance=math.nan),
    "an importance over one": lambda m: m.remember(ANN, "tea", importance=1.01),
    "an importance below zero": lambda m: m.remember(ANN, "tea", importance=-0.01),
    "an importance of text": lambda m: m.remember(ANN, "tea", importance="high"),
    "an importance of truth": lambda m: m.remember(ANN, "tea", importance=True),
    "a lifetime below zero": lambda m: m.remember(ANN, "tea", ttl=-1),
    "no lifetime": lambda m: m.remember(ANN, "tea", ttl=timedelta(0)),
    "an endless lifetime": lambda m: m.remember(ANN, "tea", ttl=math.inf),
    "a lifetime that is no number": lambda m: m.remember(ANN, "tea", ttl=math.nan),
    "a lifetime of text": lambda m: m.remember(ANN, "tea", ttl="1h"),
    "a lifetime past the end of time": lambda m: m.remember(ANN, "tea", ttl=timedelta.max),
    "metadata in a list": lambda m: m.remember(ANN, "tea", metadata=[1]),
    "metadata in a text": lambda m: m.remember(ANN, "tea", metadata="{}"),
    "metadata with numbers as keys": lambda m: m.remember(ANN, "tea", metadata={1: 2}),
    "metadata that is no JSON": lambda m: m.remember(ANN, "tea", metadata={"a": object()}),
    "unknown trust": lambda m: m.remember(ANN, "tea", trust="boss"),
    "a type of many": lambda m: m.remember(ANN, "tea", type=["fact"]),
    "a type too long": lambda m: m.remember_many(ANN, [{"content": "tea", "type": "x" * 5000}]),
    "an empty key": lambda m: m.remember(ANN, "tea", key=""),
    "a key of numbers": lambda m: m.remember(ANN, "tea", key=7),
    "a conversation of numbers": lambda m: m.remember(ANN, "tea", conversation=7),
    "a place in no conversation": lambda m: m.remember(ANN, "tea", seq=1),
    "a place in text": lambda m: m.remember(ANN, "tea", conversation="c", seq="1"),
    "a place past all numbers": lambda m: m.remember(ANN, "tea", conversation="c", seq=2**63),
    "an author of numbers": lambda m: m.remember(ANN, "tea", author=7),
    "a time in text": lambda m: m.remember(ANN, "tea", at="yesterday"),
    "a time before all years": lambda m: m.remember(ANN, "tea", at=FIRST),
    "a time after all years": lambda m: m.remember_many(ANN, [{"content": "tea", "at": LAST}]),
    "a successor from a time in text": lambda m: m.supersede(uuid4(), "milk", at="x"),
    "a successor from before all years": lambda m: m.supersede(uuid4(), "milk", at=FIRST),
    "a successor from after all years": lambda m: m.supersede(uuid4(), "milk", at=LAST),
    "an owner in text": lambda m: m.remember("ann", "tea"),
    "one bad of many": lambda m: m.remember_many(ANN, ["tea", "milk", ""]),
    "a field that no memory has": lambda m: m.remember_many(ANN, [{"content": "tea", "weight": 1}]),
    "a memory without content": lambda m: m.remember_many(ANN, [{"importance": 1}]),
    "numbers for memories": lambda m: m.remember_many(ANN, [1, 2]),
    "a text for many": lambda m: m.remember_many(ANN, "tea"),
    "too many": lambda m: m.remember_many(ANN, ["tea"] * 10_001),
    "an edit of nothing": lambda m: m.edit(uuid4()),
    "an id of text": lambda m: m.get("7"),
}
SEARCHES: dict[str, Do] = {
    "no question": lambda m: m.search(ANN, ""),
    "blanks": lambda m: m.search(ANN, "  "),
    "None": lambda m: m.search(ANN, None),
    "bytes": lambda m: m.search(ANN, b"tea"),
    "a question too long": lambda m: m.search(ANN, "tea " * 10_000),
    "a limit below zero": lambda m: m.search(ANN, "tea", limit=-1),
    "a huge limit": lambda m: m.search(ANN, "tea", limit=10**9),
    "a limit of text": lambda m: m.search(ANN, "tea", limit="3"),
    "a limit of truth": lambda m: m.search(ANN, "tea", limit=True),
    "metadata in a list": lambda m: m.search(ANN, "tea", where=[1]),
    "metadata that is no JSON": lambda m: m.search(ANN, "tea", where={"a": object()}),
    "types in a text": lambda m: m.search(ANN, "tea", types="fact"),
    "types of numbers": lambda m: m.search(ANN, "tea", types=[7]),
    "times of text": lambda m: m.search(ANN, "tea", since="yesterday"),
    "since before all years": lambda m: m.search(ANN, "tea", since=FIRST),
    "until after all years": lambda m: m.search(ANN, "tea", until=LAST),
    "as of before all years": lambda m: m.search(ANN, "tea", as_of=FIRST),
    "as of after all years": lambda m: m.search(ANN, "tea", as_of=LAST),
    "an importance that is no number": lambda m: m.search(ANN, "tea", min_importance=math.nan),
    "an owner in text": lambda m: m.search("ann", "tea"),
    "a session of numbers": lambda m: m.context("tea", session=7),
    "an empty user": lambda m: m.context("tea", user=""),
    "limits for what is no scope": lambda m: m.context("tea", limits={"world": 1}),
    "limits in a list": lambda m: m.context("tea", limits=[1]),
}


@pytest.mark.req("MEM-02")
async def test_bad_memories_are_refused_and_nothing_is_half_written(words_only: Engine) -> None:
    wrong: dict[str, object] = {}

    for name, write in WRITES.items():
        try:
            wrong[name] = await write(words_only.memory)
        except HoldfastError as error:
            if not (isinstance(error, InvalidInput | TooLarge) and error.what):
                wrong[name] = error
        except Exception as error:  # noqa: BLE001
            wrong[name] = error

    assert wrong == {}
    async with words_only.postgres.owner() as owner:
        assert await owner.value(ROWS) == 0
    assert (await words_only.memory.remember(ANN, "tea")).content == "tea"


@pytest.mark.req("MEM-03")
async def test_bad_questions_are_refused_and_good_ones_are_answered_after(words_only: Engine) -> None:
    await words_only.memory.remember(ANN, "tea")
    wrong: dict[str, object] = {}

    for name, ask in SEARCHES.items():
        try:
            wrong[name] = await ask(words_only.memory)
        except InvalidInput:
            continue
        except Exception as error:  # noqa: BLE001
            wrong[name] = error

    assert wrong == {}
    assert len(await words_only.memory.search(ANN, "tea")) == 1


@pytest.mark.req("MEM-02")
@pytest.mark.parametrize("name", ["", "x" * 5000, 7, None])
def test_an_owner_needs_a_name_and_a_scope_that_there_is(name: Any) -> None:
    with pytest.raises((InvalidInput, TooLarge)):
        user(name)
    with pytest.raises((InvalidInput, TooLarge)):
        session(name)
    with pytest.raises(InvalidInput, match=r"the scope .* is unknown"):
        Owner(cast(Any, "world"), "ann")


@pytest.mark.req("MEM-02")
@pytest.mark.parametrize(
    "content", ["a\u0000b", "\ud800 alone", "🫖" * 3000, "\u202etfel", "x" * 65_536, "!!!", "'; drop table memory;--"]
)
async def test_any_text_comes_back_as_it_was(memories: Memories, content: str) -> None:
    written = await memories.remember(ANN, content)

    assert (await memories.get(written.id)).content == content
    assert [hit.memory.content for hit in await memories.search(ANN, content[:2000])] == [content]


@pytest.mark.req("MEM-02")
async def test_times_without_a_zone_are_taken_for_utc(words_only: Engine) -> None:
    nine = datetime(2026, 3, 1, 9, tzinfo=UTC).replace(tzinfo=None)

    memory = await words_only.memory.remember(ANN, "tea", at=nine)
    hits = await words_only.memory.search(ANN, "tea", since=nine, until=nine + timedelta(minutes=1))

    assert memory.at is not None
    assert memory.at.isoformat() == "2026-03-01T09:00:00+00:00"
    assert [hit.memory.id for hit in hits] == [memory.id]


@pytest.mark.req("MEM-02")
async def test_a_time_is_taken_from_any_zone_that_there_could_be(words_only: Engine) -> None:
    far = datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=20)))
    near = datetime(2026, 2, 28, 13, tzinfo=UTC)  # the same moment
    later = far + timedelta(days=1)

    memory = await words_only.memory.remember(ANN, "tea", at=far)
    again = await words_only.memory.remember(ANN, "tea", at=near)
    since = await words_only.memory.search(ANN, "tea", since=far, until=far + timedelta(minutes=1))
    successor = await words_only.memory.supersede(memory.id, "milk", at=later)
    as_of = await words_only.memory.search(ANN, "tea", as_of=later - timedelta(minutes=1))

    assert (memory.at, memory.valid_from, again.id) == (near, near, memory.id)
    assert [hit.memory.id for hit in since] == [hit.memory.id for hit in as_of] == [memory.id]
    assert (successor.at, successor.valid_from) == (later, later)
    assert (await words_only.memory.get(memory.id)).valid_to == later


@pytest.mark.req("MEM-02")
async def test_what_is_not_true_or_false_pins_and_buries_as_if_it_were(words_only: Engine) -> None:
    memory = await words_only.memory.remember(ANN, "tea")

    pinned = await words_only.memory.pin(memory.id, pinned=cast(Any, object()))
    unpinned = await words_only.memory.pin(memory.id, pinned=cast(Any, None))
    buried = await words_only.memory.bury(memory.id, buried=cast(Any, object()))

    assert (pinned.pinned, unpinned.pinned, buried.buried) == (True, False, True)


@pytest.mark.req("MEM-02", "MEM-03")
@pytest.mark.parametrize("is_used", [True, False], ids=["used", "unused"])
@pytest.mark.usefixtures("models")
async def test_a_closed_engine_says_so_and_keeps_nobody_waiting(
    words_only: Engine, open_with: OpenWith, monkeypatch: pytest.MonkeyPatch, is_used: bool
) -> None:
    monkeypatch.undo()  # the models are here
    memory = await words_only.memory.remember(ANN, "tea")
    lines = [line.encode() async for line in words_only.memory_transfer.export(ANN)]
    async with open_with() as engine:
        memories, transfer = engine.memory, engine.memory_transfer
        if is_used:
            await memories.search(ANN, "tea")

    async def export() -> None:
        _ = [line async for line in transfer.export(ANN)]

    uses: dict[str, Callable[[], Awaitable[object]]] = {
        "remember": lambda: memories.remember(ANN, "milk"),
        "edit": lambda: memories.edit(memory.id, content="milk"),
        "get": lambda: memories.get(memory.id),
        "search": lambda: memories.search(ANN, "tea"),
        "context": lambda: memories.context("tea", user="ann"),
        "sweep": memories.sweep,
        "export": export,
        "import": lambda: transfer.load(lines),
    }
    wrong: dict[str, object] = {}
    for name, use in uses.items():
        try:
            async with asyncio.timeout(10):
                wrong[name] = await use()
        except HoldfastError:
            continue
        except Exception as error:  # noqa: BLE001
            wrong[name] = error

    assert wrong == {}


@pytest.mark.req("MEM-02")
async def test_a_writer_who_is_cancelled_leaves_all_or_nothing(words_only: Engine) -> None:
    for delay in range(5):
        task = asyncio.create_task(words_only.memory.remember_many(ANN, [f"tea {delay} {n}" for n in range(200)]))
        for _ in range(delay):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    async with words_only.postgres.owner() as owner:
        counts = await owner.all("select count(*) % 200 as rest from memory group by split_part(content, ' ', 2)")
    assert all(row["rest"] == 0 for row in counts)
    assert (await words_only.memory.remember(ANN, "tea")).content == "tea"


@pytest.mark.req("MEM-02")
@pytest.mark.parametrize("verb", ["get", "pin", "bury", "forget", "history"])
async def test_an_unknown_id_is_not_found(words_only: Engine, verb: str) -> None:
    with pytest.raises(NotFound, match="there is no memory"):
        await getattr(words_only.memory, verb)(uuid4())
