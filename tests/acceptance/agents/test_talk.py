"""Users and agents in different processes talk over the log, and nobody misses or hears twice what was said."""

import asyncio
import os
import random
import signal
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from holdfast import App
from holdfast.agents import Event
from holdfast.agents.conversation_views import NODES, ConversationView, ConversationViews
from holdfast.core.config import Config, load_config
from holdfast.engine import Engine, open_engine
from tests.acceptance.clerks import (
    ANSWER,
    CONTEXTS,
    MUCH,
    PATIENCE,
    SHORT,
    TOPIC,
    WHERE,
    WHOLE,
    Clerks,
    ask,
    check,
    drained,
    ended,
    gone,
    happened,
    heard,
    watched,
)
from tests.acceptance.folders import first_number
from tests.agents.stage import Player, caller_of
from tests.processes import Process, Processes, wait_until_gone
from tests.told import told

pytestmark = pytest.mark.acceptance

TALKS = 100  # under way when everything is killed
CHANGES = 10_000
SCRIBES = 2
VIEWS, BUSY = 40, 4  # of the agent, and those of them that are full
SEED = 7


def events_of(*viewers: Process) -> list[Event]:
    """What viewers were told, one after another; a line that was cut off by the kill was not."""
    lines = [line for viewer in viewers for line in viewer.stdout.splitlines(keepends=True) if line.endswith("\n")]
    return [msgspec.json.decode(line, type=Event) for line in lines]


def streamed(events: Iterable[Event]) -> str:
    """The pieces of the answer, as a window shows them."""
    said = ""
    for event in events:
        if event.kind == "token":
            said = event.text if event.reset else said + event.text
        elif event.kind == "observation":
            said = ""
    return said


@pytest.mark.req("TALK-01", "TALK-02", "TALK-03", "TALK-05")
async def test_a_question_goes_from_the_user_over_agent_and_tool_to_the_answer_by_records_without_content(
    engine: Engine, clerks: Clerks
) -> None:
    await clerks.start()

    async with asyncio.timeout(PATIENCE):
        events = [event async for event in engine.agents.run("support", message=WHERE, user="ann", session_id="web-1")]

    await drained(engine)
    talk = await engine.conversations.find(session_id="web-1")
    assert talk is not None
    said = await engine.conversations.since(talk.id, 0)
    records = await told(engine, TOPIC)
    assert happened(events) == list(WHOLE[1:])
    assert [each.brief for each in records] == [
        (1, "create", "ui", said[0].id),
        (2, "tool_invoke", "support", said[1].id),
        (3, "tool_result", "tool", said[2].id),
        (4, "append", "support", said[3].id),
    ]
    assert [node.context for node in said] == CONTEXTS
    assert records[1].message.command == ["track", '{"parcel": "AB-1"}']
    assert all(each.message.conversation_id == each.message.docmem_node_id == talk.id for each in records)
    assert {each.record.key for each in records} == {str(talk.id)}
    assert len({each.record.partition for each in records}) == 1
    assert {each.message.version for each in records} == {"1.0.0"}
    assert not any(node.content in str(each.record.value) for each in records for node in said), "no content"
    assert [topic.name for topic in await engine.log.topics() if topic.name.startswith("llm-")] == [TOPIC]


@pytest.mark.req("WS-02", "STM-06", "AGENT-01")
@pytest.mark.parametrize("fate", ["waits", "dies"])
async def test_who_watched_on_one_node_goes_on_at_another_in_the_middle_of_an_answer(
    engine: Engine, clerks: Clerks, fate: str
) -> None:
    clerk = await clerks.start(fate, "streaming")
    sent = await ask(engine, WHERE)
    first = clerks.run("viewer.py", str(sent.conversation))
    await heard(first, ANSWER[11:20])

    first.kill()
    seen = events_of(first)
    second = clerks.run("viewer.py", str(sent.conversation), seen[-1].cursor)
    if fate == "dies":
        await clerks.start()
    else:
        clerk.send(signal.SIGUSR1)
    assert await gone(second) == 0, second.stderr

    events = events_of(first, second)
    assert happened(events) == list(WHOLE)
    assert [event.text for event in events if event.kind == "answer"] == [ANSWER]
    assert len({event.cursor for event in events}) == len(events)
    async with watched(engine, sent) as watcher:
        await watcher.until("done")
        await check(engine, sent, watcher)


@pytest.mark.req("WS-02")
@pytest.mark.parametrize("pieces", [1, 2, 3])
async def test_a_cursor_between_two_pieces_of_a_stream_is_good_on_every_node(
    config: Config, clerks: Clerks, monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    model, app = Player(), App()
    app.agent("support", memory=False)
    monkeypatch.setattr("holdfast.engine.Caller", caller_of(model))
    model.says({"text": ANSWER, "chunks": 5})
    model.hold(after=3)
    async with asyncio.timeout(PATIENCE), open_engine(config=config) as engine, engine.serving(app):
        sent = await ask(engine, WHERE)
        async with engine.agents.watch(sent.conversation, "support") as watch:
            seen = [await anext(watch) for _ in range(1 + pieces)]
        elsewhere = clerks.run("viewer.py", str(sent.conversation), seen[-1].cursor)
        rest = ANSWER[11 * pieces : 33]
        if rest:
            await heard(elsewhere, rest[:11])
        model.release()
        assert await gone(elsewhere) == 0, elsewhere.stderr

    after = events_of(elsewhere)
    assert streamed(seen) == ANSWER[: 11 * pieces]
    assert streamed([*seen, *after]) == ANSWER[: len(streamed([*seen, *after]))]
    assert streamed(after).startswith(rest)
    assert happened([*seen, *after]) == ["message", "answer", "done"]


@pytest.mark.req("TALK-04")
async def test_a_view_that_was_kept_record_by_record_equals_one_that_is_rebuilt(
    config: Config, clerks: Clerks, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, reads = App(), 0
    app.agent("support")
    read = ConversationViews._read  # pyright: ignore[reportPrivateUsage]

    async def counted(views: ConversationViews, conversation: UUID) -> ConversationView:
        nonlocal reads
        reads += 1
        return await read(views, conversation)

    monkeypatch.setattr(ConversationViews, "_read", counted)
    monkeypatch.setattr("holdfast.engine.Caller", caller_of(Player()))
    async with open_engine(config=config) as engine, engine.serving(app) as serving:
        talks = [(await engine.agents.send("support", "Hello!", user="ann")).conversation for _ in range(VIEWS)]
        await ended(engine, VIEWS)
        views = serving._turns.views  # pyright: ignore[reportPrivateUsage]
        live = dict(views._views)  # pyright: ignore[reportPrivateUsage]
        reads = 0
        share = str(CHANGES // SCRIBES)
        scribes = [clerks.run("scribe.py", f"{SEED} {n}", share, *map(str, talks)) for n in range(SCRIBES)]

        for scribe in scribes:
            assert await gone(scribe, within=MUCH) == 0, scribe.stderr
        await ended(engine)
        await drained(engine)

        records = [each.record for each in await told(engine, TOPIC)]
        kept = {talk: views._views[talk] for talk in talks}  # pyright: ignore[reportPrivateUsage]
        rebuilt = {talk: await ConversationViews(engine.database).current(talk) for talk in talks}
        again = [random.Random(SEED).choice(records) for _ in records]
        rereads = reads - len(talks)
        await views.follow([*again, *records])
        after = {talk: views._views[talk] for talk in talks}  # pyright: ignore[reportPrivateUsage]

    assert set(live) == set(talks), "they were there before"
    assert len(records) >= CHANGES
    assert {talk: shown(view) for talk, view in kept.items()} == {talk: shown(view) for talk, view in rebuilt.items()}
    assert [len(kept[talk].nodes) == NODES for talk in talks] == [True] * BUSY + [False] * (VIEWS - BUSY), "bounded"
    assert rereads < len(records) / 2, "most records were applied"
    assert after == kept, "what was told before changes nothing"


@pytest.mark.req("STM-06", "AGENT-01", "ENG-02")
async def test_everything_is_killed_in_the_middle_of_many_turns_and_each_ends_once(
    empty: Path, processes: Processes, tmp_path: Path, no_models: None
) -> None:
    settings = {"data": empty, "memory.embedding.fetch": False, "bus.lease": 1}
    clerks = Clerks(processes, tmp_path, settings)
    config = load_config(settings, environ={}, cwd=tmp_path)
    async with open_engine(config=config) as engine:
        serving = [await clerks.start(lease=SHORT) for _ in range(2)]
        sent = [
            await engine.agents.send("support", WHERE, user="ann", session_id=f"web-{number}")
            for number in range(TALKS)
        ]
        await clerks.wrote("used", TALKS // 2)

        killed = first_number(empty / "postgres" / "postmaster.pid")
        os.kill(killed, signal.SIGKILL)
        for clerk in serving:
            clerk.kill()
        wait_until_gone(killed)

    async with open_engine(config=config) as engine:
        for _ in range(2):
            await clerks.start()
        await ended(engine, TALKS)
        await drained(engine)
        talks = {each.conversation: await engine.conversations.since(each.conversation, 0) for each in sent}
        records = await told(engine, TOPIC)
        processes.end_all()

    assert all([node.context for node in said] == CONTEXTS for said in talks.values())
    assert {said[-1].content for said in talks.values()} == {ANSWER}
    for talk in talks:
        assert [each.sequence for each in records if each.message.conversation_id == talk] == [1, 2, 3, 4]
    assert len({line.split()[1] for line in clerks.lines("used")}) == TALKS


def shown(view: ConversationView) -> tuple[object, ...]:
    """What a view shows."""
    return view.revision, view.seq, view.session_id, view.user, view.nodes
