"""Views: however records come, a view that lived through them equals one that is read from zero."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

import pytest

from holdfast.agents import Agent
from holdfast.agents import conversation_views as views_module
from holdfast.agents.conversation_views import ConversationView, ConversationViews
from holdfast.bus.records import Record
from holdfast.bus.subscription import Subscription
from holdfast.conversations import Node, NodeInput
from holdfast.core.errors import HoldfastError, NotFound
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.postgres.database import Database, Row

TALKS = 8
WRITERS = 4
CONTEXTS = [
    "text:user:ann", "text:user:bob", "text:agent:support", "text:agent:tool", "text:system:system",
    "summary:agent:support",
]  # fmt: skip


@pytest.fixture
async def engine(words_only: Engine) -> Engine:
    """An engine in which the agent `support` is defined."""
    await words_only.definitions.declare([Agent("support")])
    return words_only


async def talk_of(engine: Engine) -> UUID:
    return (await engine.conversations.create(user="ann", agent="support")).id


async def say(engine: Engine, talk: UUID, *texts: str) -> list[Node]:
    return await engine.conversations.append_all(talk, [NodeInput(content=text, context=CONTEXTS[0]) for text in texts])


async def told(records: Subscription, count: int) -> list[Record]:
    """The next records, so many."""
    found: list[Record] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += await records.batch(count - len(found))
    return found


async def records_of(engine: Engine, talk: UUID) -> list[Record]:
    found = [record async for record in engine.log.read("llm-support") if record.key == str(talk)]
    return sorted(found, key=lambda record: record.offset)


async def fresh(engine: Engine, conversation: UUID) -> ConversationView:
    return await ConversationViews(engine.database).current(conversation)


def same(one: ConversationView, other: ConversationView) -> None:
    assert (one.id, one.revision, one.seq, one.user, one.session_id) == (
        other.id, other.revision, other.seq, other.user, other.session_id,
    )  # fmt: skip
    assert list(one.nodes) == list(other.nodes)


def delivered(records: list[Record], chance: random.Random) -> Iterator[list[Record]]:
    """Records as a bad network delivers them: doubled, dropped, late, in batches of any size."""
    late: list[Record] = []
    batch: list[Record] = []
    for record in records:
        lot = chance.random()
        if lot < 0.05:
            late.append(record)
        elif lot < 0.15:
            batch += [record, record]
        elif lot > 0.02:
            batch.append(record)
        if late and chance.random() < 0.2:
            batch.append(late.pop(chance.randrange(len(late))))
        if chance.random() < 0.1:
            yield batch
            batch = []
    yield [*batch, *late]


class Slow:
    """Has what a database answers wait, each time, until it is released."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self._all = database.all
        self._answered: asyncio.Queue[asyncio.Event] = asyncio.Queue()
        monkeypatch.setattr(database, "all", self._slowly)

    async def _slowly(self, statement: str, *arguments: object) -> list[Row]:
        rows, released = await self._all(statement, *arguments), asyncio.Event()
        self._answered.put_nowait(released)
        await released.wait()
        return rows

    async def answered(self) -> asyncio.Event:
        """Wait for the next answer; what is given releases it."""
        async with asyncio.timeout(20):
            return await self._answered.get()


class Writer:
    """Does anything to conversations that their topic is told of."""

    def __init__(self, engine: Engine, talks: list[UUID], chance: random.Random) -> None:
        self._engine = engine
        self._talks = talks
        self._chance = chance
        self._known: list[Node] = []

    async def write(self, times: int) -> None:
        """Change something so many times; what another has changed meanwhile is refused, and left."""
        for _ in range(times):
            with suppress(HoldfastError):
                self._known = [*self._known, *await self._change(self._chance.random())][-30:]

    async def _change(self, lot: float) -> list[Node]:
        talks, state, chance = self._engine.conversations, self._engine.state, self._chance
        text = "x" * min(20_000, int(chance.paretovariate(0.6))) if lot < 0.2 else f"text {chance.randrange(1000)}"
        talk, node = chance.choice(self._talks), chance.choice(self._known) if self._known else None
        if node is None or lot < 0.5:
            return [await talks.append(talk, text, context=chance.choice(CONTEXTS))]
        if lot < 0.7:
            drafts = [
                NodeInput(content=f"{text} {n}", context=chance.choice(CONTEXTS)) for n in range(chance.randint(1, 9))
            ]
            return await talks.append_all(talk, drafts)
        self._known.remove(node)
        if lot < 0.82:
            return [await talks.edit(node.id, text, version=node.version)]
        if lot < 0.90:
            await talks.delete(node.id, version=node.version)
        elif lot < 0.96:
            await state.set(talk, {"step": chance.randrange(100)})
        elif lot < 0.97:
            await talks.clear(talk)
        else:
            return [await talks.append(node.root, text, context=CONTEXTS[0], parent=node.id)]
        return []


@pytest.mark.req("TALK-04")
@pytest.mark.parametrize("number", [2000, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_after_thousands_of_records_a_view_that_lived_equals_one_from_zero(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(views_module, "NODES", 40)
    monkeypatch.setattr(views_module, "BYTES", 30_000)
    chance = random.Random(7)
    talks = [await talk_of(engine) for _ in range(TALKS)]
    views, writers = ConversationViews(engine.database), [Writer(engine, talks, chance) for _ in range(WRITERS)]
    known = {talk: (await views.current(talk)).revision for talk in talks}
    read = compared = 0

    async with engine.log.subscribe(["llm-support"]) as topic:
        while read < number:
            await asyncio.gather(*(writer.write(chance.randint(1, 60)) for writer in writers))
            zeros = [await fresh(engine, talk) for talk in talks]
            records = await told(topic, sum(zero.revision - known[zero.id] for zero in zeros))
            for batch in delivered(records, chance):
                await views.follow(batch)
            for zero in zeros:
                live = await views.current(zero.id)
                if live.revision == zero.revision:  # else the last ones were dropped
                    same(live, zero)
                    compared += 1
                known[zero.id] = zero.revision
            read += len(records)

    for talk in talks:
        await say(engine, talk, "the end")
        await views.follow(await records_of(engine, talk))
        same(await views.current(talk), await fresh(engine, talk))
    assert compared > number // 100


@pytest.mark.req("TALK-04")
async def test_records_that_come_one_by_one_need_no_rebuilding(engine: Engine) -> None:
    talk = await talk_of(engine)
    views = ConversationViews(engine.database)
    view = await views.current(talk)
    [first, *_] = await say(engine, talk, "one", "two", "three")
    await engine.conversations.edit(first.id, "ONE", version=1)
    await engine.state.set(talk, {"step": 1})

    await views.follow(await records_of(engine, talk))
    followed = await views.current(talk)
    await say(engine, talk, "four")
    await views.follow(await records_of(engine, talk))

    same(followed, await fresh(engine, talk))
    assert [node.content for node in view.nodes] == []  # what was edited since is read anew
    assert await views.current(talk) is followed


@pytest.mark.req("TALK-04")
async def test_a_gap_is_filled_from_the_nodes(engine: Engine) -> None:
    talk = await talk_of(engine)
    views = ConversationViews(engine.database)
    await views.current(talk)
    await say(engine, talk, "one", "two", "three")

    await views.follow((await records_of(engine, talk))[2:])

    view = await views.current(talk)
    assert [node.content for node in view.nodes] == ["one", "two", "three"]


@pytest.mark.req("TALK-04")
async def test_a_view_is_bounded_in_number_and_in_bytes_and_keeps_the_newest(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "NODES", 5)
    monkeypatch.setattr(views_module, "BYTES", 10_000)
    talk = await talk_of(engine)
    views = ConversationViews(engine.database)
    await views.current(talk)

    await say(engine, talk, *map(str, range(9)))
    await views.follow(await records_of(engine, talk))
    by_number = [node.content for node in (await views.current(talk)).nodes]
    await say(engine, talk, "x" * 9000, "y" * 5000)
    await views.follow(await records_of(engine, talk))
    by_bytes = [node.content[0] for node in (await views.current(talk)).nodes]
    await say(engine, talk, "z" * 50_000)
    await views.follow(await records_of(engine, talk))
    larger = [node.content[0] for node in (await views.current(talk)).nodes]

    assert by_number == ["4", "5", "6", "7", "8"]
    assert by_bytes == ["y"]
    assert larger == ["z"]
    same(await views.current(talk), await fresh(engine, talk))


@pytest.mark.req("TALK-04")
async def test_views_that_were_not_used_for_longest_are_dropped(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "VIEWS", 3)
    talks = [await talk_of(engine) for _ in range(4)]
    views = ConversationViews(engine.database)
    kept = [await views.current(talk) for talk in talks[:3]]
    await views.current(talks[0])

    await views.current(talks[3])

    assert await views.current(talks[0]) is kept[0]
    assert await views.current(talks[2]) is kept[2]
    assert await views.current(talks[1]) is not kept[1]


@pytest.mark.req("TALK-03", "TALK-04")
async def test_a_record_that_lies_about_its_conversation_brings_no_node_of_another(engine: Engine) -> None:
    talk, other = await talk_of(engine), await talk_of(engine)
    views = ConversationViews(engine.database)
    await views.current(talk)
    [secret] = await say(engine, other, "of another")
    [record] = await records_of(engine, other)

    await views.follow([
        Record(
            record.topic, record.partition, record.offset, str(talk), uuid7(), record.headers,
            {**record.value, "conversation_id": str(talk), "node_id": str(secret.id)}, record.at,
        )
    ])  # fmt: skip

    assert list((await views.current(talk)).nodes) == []
    same(await views.current(talk), await fresh(engine, talk))


@pytest.mark.req("TALK-04")
async def test_a_conversation_that_was_removed_has_no_view(engine: Engine) -> None:
    talk = await talk_of(engine)
    views = ConversationViews(engine.database)
    await say(engine, talk, "one")
    await views.current(talk)
    await say(engine, talk, "two", "three")
    records = await records_of(engine, talk)
    await engine.conversations.remove(talk)

    await views.follow(records)

    with pytest.raises(NotFound):
        await views.current(talk)


@pytest.mark.req("TALK-04", "AGENT-01")
async def test_what_is_appended_here_while_a_view_is_read_is_in_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk, views = await talk_of(engine), ConversationViews(engine.database)
    await say(engine, talk, "one")
    slow = Slow(engine.database, monkeypatch)
    reading = asyncio.create_task(views.current(talk))
    release = await slow.answered()
    node = await engine.conversations.append(talk, "two", context=CONTEXTS[3])
    views.add(node)

    release.set()
    view = await reading

    assert [each.content for each in view.nodes] == ["one", "two"]
    assert await views.current(talk, seq=1) is view


@pytest.mark.req("TALK-04", "AGENT-01")
async def test_a_view_is_read_again_where_more_happened_meanwhile_than_is_known_here(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk, views = await talk_of(engine), ConversationViews(engine.database)
    slow = Slow(engine.database, monkeypatch)
    reading = asyncio.create_task(views.current(talk))
    release = await slow.answered()
    await engine.conversations.append(talk, "of another process", context=CONTEXTS[0])
    views.add(await engine.conversations.append(talk, "ours", context=CONTEXTS[3]))
    release.set()

    (await slow.answered()).set()
    view = await reading

    assert [each.content for each in view.nodes] == ["of another process", "ours"]


@pytest.mark.req("TALK-04", "AGENT-01")
async def test_who_reads_a_view_slowly_does_not_undo_a_newer_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk, views = await talk_of(engine), ConversationViews(engine.database)
    slow = Slow(engine.database, monkeypatch)
    first = asyncio.create_task(views.current(talk))
    release_first = await slow.answered()
    await engine.conversations.append(talk, "one", context=CONTEXTS[0])
    second = asyncio.create_task(views.current(talk))
    (await slow.answered()).set()
    newer = await second

    release_first.set()

    assert await first is newer
    assert await views.current(talk) is newer


@pytest.mark.req("TALK-04", "STM-06")
async def test_a_view_that_is_forgotten_while_it_is_read_is_read_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk, views = await talk_of(engine), ConversationViews(engine.database)
    slow = Slow(engine.database, monkeypatch)
    reading = asyncio.create_task(views.current(talk))
    release = await slow.answered()
    await engine.conversations.append(talk, "of who had the run before", context=CONTEXTS[3])

    views.forget(talk)
    release.set()
    (await slow.answered()).set()
    view = await reading

    assert [each.content for each in view.nodes] == ["of who had the run before"]


@pytest.mark.req("TALK-04")
async def test_all_views_together_are_bounded_in_bytes_and_payloads_count(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "ALL_BYTES", 25_000)
    talks = [await talk_of(engine) for _ in range(3)]
    views = ConversationViews(engine.database)
    kept = [await views.current(talk) for talk in talks]

    for talk in talks:
        payload = {"tool_calls": [{"id": "c", "name": "track", "arguments": {"parcel": "x" * 10_000}}]}
        views.add(await engine.conversations.append(talk, "", context=CONTEXTS[2], payload=payload))

    assert [view.bytes > 10_000 for view in kept] == [True, True, True]
    assert await views.current(talks[1]) is kept[1]
    assert await views.current(talks[2]) is kept[2]
    assert await views.current(talks[0]) is not kept[0]


@pytest.mark.req("TALK-04")
async def test_an_edit_of_what_a_framework_wrote_changes_all_that_belonged_to_it(engine: Engine) -> None:
    talk = await talk_of(engine)
    views = ConversationViews(engine.database)
    await views.current(talk)
    drafts = [
        NodeInput(content="one", context=CONTEXTS[0], form="adk", native="{}"),
        NodeInput(content="two", context=CONTEXTS[0], form="adk"),
    ]
    [_, second] = await engine.conversations.append_all(talk, drafts)
    await views.follow(await records_of(engine, talk))

    await engine.conversations.edit(second.id, "TWO", version=1)
    await views.follow(await records_of(engine, talk))

    same(await views.current(talk), await fresh(engine, talk))


@pytest.mark.req("TALK-03", "TALK-04")
async def test_records_that_lie_about_revisions_cost_one_reading_at_most(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk, views = await talk_of(engine), ConversationViews(engine.database)
    await say(engine, talk, "one")
    await views.current(talk)
    [record] = await records_of(engine, talk)
    lies = [
        Record(
            record.topic, record.partition, record.offset, record.key, uuid7(),
            {**record.headers, "holdfast-sequence": sequence}, record.value, record.at,
        )
        for sequence in ("9" * 5000, "7", "99", "5", "")
    ]  # fmt: skip
    read = views_of(engine, monkeypatch)

    await views.follow(lies)

    assert len(read) == 1
    same(await views.current(talk), await fresh(engine, talk))


def views_of(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that read a whole view from now on."""
    found: list[str] = []
    read = engine.database.all

    async def counted(statement: str, *arguments: object) -> list[Row]:
        if "last_seq" in statement:
            found.append(statement)
        return await read(statement, *arguments)

    monkeypatch.setattr(engine.database, "all", counted)
    return found
