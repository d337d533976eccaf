"""Agents talk over the log: a topic each, records without content, whoever publishes them, in whatever shape."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from holdfast import App
from holdfast.agents import Agent
from holdfast.agents.mailbox import Mailbox
from holdfast.bus.records import Record
from holdfast.conversations import Conversation, Node
from holdfast.core.errors import DatabaseAway, TimedOut
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from tests.agents.stage import PATIENCE, Player, Stage, calls, nodes, reached, told, until


async def topic(engine: Engine, name: str) -> list[Record]:
    """What is on a topic, in order."""
    return sorted(
        [record async for record in engine.log.read(name)], key=lambda record: (record.partition, record.offset)
    )


def message(talk: Conversation, node: UUID, **changes: Any) -> dict[str, Any]:
    """A message as any program can write it."""
    return {
        "version": "1.0.0",
        "conversation_id": str(talk.id),
        "agent_id": "ui",
        "timestamp": datetime.now(UTC).isoformat(),
        "docmem_node_id": str(talk.id),
        "node_id": str(node),
        "action": "append",
        **changes,
    }


async def before_the_agent(engine: Engine, text: str, context: str = "text:user:ann") -> tuple[Conversation, Node]:
    """A node in a conversation that tells no topic, since there was no agent when it was made."""
    talk = await engine.conversations.create(user="ann", agent="support")
    return talk, await engine.conversations.append(talk.id, text, context=context)


async def answered(engine: Engine, talk: UUID, *, runs: int = 1) -> None:
    """Wait until so many runs of a conversation have ended."""
    ended = 0
    async with engine.agents.watch(talk, "support") as events:

        def is_last(event: Any) -> bool:
            nonlocal ended
            ended += event.kind in ("done", "error")
            return ended == runs

        await until(events, is_last)


@pytest.mark.req("TALK-01", "TALK-03")
async def test_ten_agents_are_ten_topics_however_many_conversations_there_are(stage: Stage) -> None:
    app = App()
    names = [f"agent{number}" for number in range(10)]
    for name in names:
        app.agent(name)
    engine = await stage.serve(app)

    async with asyncio.TaskGroup() as group:
        for number in range(40):
            group.create_task(told(engine, names[number % 10], "Hello!", user=f"user{number}"))

    topics = [each.name for each in await engine.log.topics()]
    assert sorted(topics) == sorted(f"llm-{name}" for name in names)
    for name in names:
        records = await topic(engine, f"llm-{name}")
        assert len({record.key for record in records}) == 4
        assert {record.value["agent_id"] for record in records} == {"ui", name}
    assert {lag.group for lag in await engine.log.lag()} >= {f"agent-{name}" for name in names}


@pytest.mark.req("TALK-02", "TALK-05")
async def test_the_tool_flow_goes_over_the_agents_own_topic_without_content(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.serve(app)
    model.says(calls(("track", {"parcel": "AB-1"}), text="Let me look."), "It is in Cologne.")

    await told(engine, "support", "Where is my parcel?", user="ann", session_id="web-1")

    records = await topic(engine, "llm-support")
    talk = await engine.conversations.find(session_id="web-1") or pytest.fail("no session")
    said = await nodes(engine, talk.id)
    assert [(record.value["agent_id"], record.value["action"]) for record in records] == [
        ("ui", "create"), ("support", "tool_invoke"), ("tool", "tool_result"), ("support", "append"),
    ]  # fmt: skip
    assert [record.value["node_id"] for record in records] == [str(node.id) for node in said]
    assert records[1].value["command"] == ["track", '{"parcel": "AB-1"}']
    assert {record.key for record in records} == {str(talk.id)}
    assert not any(text in str(record.value) for record in records for text in ("Where is", "Let me", "Cologne"))


@pytest.mark.req("TALK-03")
async def test_an_agent_does_not_answer_itself_a_tool_or_the_system(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    await told(engine, "support", "Hello!", user="ann", session_id="web-1")
    talk = await engine.conversations.find(session_id="web-1") or pytest.fail("no session")

    for context in ("text:agent:support", "text:agent:tool", "text:system:system", "summary:agent:support"):
        await engine.conversations.append(talk.id, "Not a question.", context=context)
    await told(engine, "support", "And now?", user="ann", session_id="web-1")

    runs = await engine.agents.runs.list(conversation=talk.id)
    assert len(runs) == 2
    assert len(model.requests) == 2


@pytest.mark.req("TALK-03", "TALK-05")
async def test_a_node_that_anybody_appends_is_answered(stage: Stage, app: App) -> None:
    engine, other = await stage.serve(app), await stage.open()
    talk = await other.conversations.create(user="ann", agent="support", session_id="web-1")

    node = await other.conversations.append(talk.id, "Is anybody there?", context="text:user:ann")
    await answered(engine, talk.id)

    [run] = await engine.agents.runs.list(conversation=talk.id)
    assert (run.trigger, run.state, run.user, run.agent) == (node.id, "done", "ann", "support")


@pytest.mark.req("TALK-02", "TALK-03")
async def test_a_record_that_a_stranger_publishes_is_answered_once_however_often_it_comes(
    stage: Stage, app: App
) -> None:
    engine = await stage.open()
    talk, node = await before_the_agent(engine, "Is anybody there?")
    await stage.serving(engine, app)

    for _ in range(3):
        await engine.log.publish("llm-support", key=str(talk.id), value=message(talk, node.id))
    await answered(engine, talk.id)
    await engine.log.publish("llm-support", key=str(talk.id), value=message(talk, node.id))
    await told(engine, "support", "Hello!", user="bob")

    [run] = await engine.agents.runs.list(conversation=talk.id)
    assert (run.trigger, run.state) == (node.id, "done")
    assert [node.content for node in await nodes(engine, talk.id)] == ["Is anybody there?", "Done."]


@pytest.mark.req("TALK-02", "TALK-03")
@pytest.mark.parametrize(
    "changes",
    [
        {"agent_id": "tool"},
        {"agent_id": "tool", "action": "tool_result"},
        {"agent_id": "support"},
        {"agent_id": "system"},
        {"action": "edit"},
        {"action": "delete"},
        {"action": "something of our own"},
        {"version": "2.0.0"},
        {"node_id": str(uuid7())},
        {"node_id": "no uuid"},
        {"agent_id": None},
    ],
)
async def test_a_record_that_asks_for_nothing_or_cannot_be_read_is_passed_by(
    stage: Stage, app: App, model: Player, changes: dict[str, Any]
) -> None:
    engine = await stage.open()
    talk, node = await before_the_agent(engine, "Is anybody there?")
    await stage.serving(engine, app)
    second = await engine.conversations.create(user="ann", agent="support", session_id="web-2")

    await engine.log.publish("llm-support", key=str(talk.id), value=message(talk, node.id, **changes))
    strangest: list[Any] = [None, 7, "text", [], {}, {"version": 1}]
    for strange in strangest:
        await engine.log.publish("llm-support", key=str(talk.id), value=strange)
    await engine.conversations.append(second.id, "And you?", context="text:user:ann")
    await answered(engine, second.id)
    async with asyncio.timeout(PATIENCE):
        while any(lag.lag for lag in await engine.log.lag("agent-support")):  # noqa: ASYNC110 - until all were read
            await asyncio.sleep(0.05)

    assert await engine.agents.runs.list(conversation=talk.id) == []
    assert len(model.requests) == 1


@pytest.mark.req("TALK-03")
async def test_a_record_cannot_have_an_agent_answer_in_a_conversation_with_another(stage: Stage, app: App) -> None:
    app.agent("billing")
    engine = await stage.serve(app)
    await told(engine, "billing", "My card is 1234.", user="bob", session_id="bobs")
    talk = await engine.conversations.find(session_id="bobs") or pytest.fail("no session")
    node = (await nodes(engine, talk.id))[0]

    await engine.log.publish("llm-support", key=str(talk.id), value=message(talk, node.id))
    async with asyncio.timeout(PATIENCE):
        while any(lag.lag for lag in await engine.log.lag("agent-support")):  # noqa: ASYNC110 - until all were read
            await asyncio.sleep(0.05)

    assert [run.agent for run in await engine.agents.runs.list(conversation=talk.id)] == ["billing"]


@pytest.mark.req("TALK-03")
async def test_what_a_framework_with_an_agent_of_its_own_writes_is_not_answered(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.serve(app)
    talk = await engine.conversations.create(user="ann", agent="support", session_id="web-1")

    await engine.conversations.append(talk.id, "Hello!", context="text:user:ann", form="langchain", native="{}")
    await told(engine, "support", "And you?", user="ann", session_id="web-1")

    assert len(await engine.agents.runs.list(conversation=talk.id)) == 1
    assert len(model.requests) == 1


@pytest.mark.req("TALK-03", "STM-06")
async def test_what_was_said_while_nobody_served_the_agent_is_answered_later(stage: Stage, app: App) -> None:
    engine = await stage.open()
    async with engine.serving(app):
        await told(engine, "support", "Hello!", user="ann", session_id="web-1")
    sent = await engine.agents.send("support", "Anybody?", user="ann", session_id="web-1")
    node = await engine.conversations.append(sent.conversation, "Nobody?", context="text:user:ann")

    await stage.serving(engine, app)
    await answered(engine, sent.conversation, runs=3)

    runs = await engine.agents.runs.list(conversation=sent.conversation)
    assert [run.trigger for run in runs][:2] == [node.id, sent.node_id]
    assert (await reached(engine, runs[0].id, "done")).number == 3


@pytest.mark.req("TALK-03", "TALK-07")
async def test_a_record_whose_sequence_is_no_number_that_anybody_counts_stops_nobody(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)
    talk = await engine.conversations.create(user="ann", agent="support")
    value = message(talk, talk.id, action="edit")

    await engine.log.publish("llm-support", key=str(talk.id), value=value, headers={"holdfast-sequence": "9" * 5000})
    await engine.conversations.append(talk.id, "Is anybody there?", context="text:user:ann")
    await answered(engine, talk.id)

    [run] = await engine.agents.runs.list(conversation=talk.id)
    assert run.state == "done"


@pytest.mark.req("TALK-03", "TALK-07")
async def test_a_record_that_breaks_its_handling_is_passed_by_and_the_others_are_handled(
    words_only: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    engine, agent = words_only, Agent("support")
    await engine.definitions.declare([agent])
    talks = [await engine.conversations.create(user="ann", agent="support") for _ in range(5)]
    asked = [(await engine.conversations.append(talk.id, "Hello?", context="text:user:ann")).id for talk in talks]
    taken: set[UUID] = set()

    async def take(_: Agent, nodes: Sequence[UUID]) -> None:
        if asked[2] in nodes:
            raise ValueError("this one breaks")
        taken.update(nodes)

    async with asyncio.timeout(PATIENCE), Mailbox(agent, engine.log, take):
        while any(lag.lag for lag in await engine.log.lag("agent-support")) or not taken:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    assert taken == {*asked} - {asked[2]}
    assert "this one breaks" in caplog.text


@pytest.mark.req("TALK-03", "TALK-07")
@pytest.mark.parametrize("error", [TimedOut("a lock"), DatabaseAway("gone")])
async def test_what_may_pass_is_tried_again(words_only: Engine, error: Exception) -> None:
    engine, agent = words_only, Agent("support")
    await engine.definitions.declare([agent])
    talk = await engine.conversations.create(user="ann", agent="support")
    node = await engine.conversations.append(talk.id, "Hello?", context="text:user:ann")
    tries: asyncio.Queue[Sequence[UUID]] = asyncio.Queue()

    async def take(_: Agent, nodes: Sequence[UUID]) -> None:
        tries.put_nowait(nodes)
        if tries.qsize() == 1:
            raise error

    async with asyncio.timeout(PATIENCE), Mailbox(agent, engine.log, take):
        while tries.qsize() < 2:  # noqa: ASYNC110 - until it has come again
            await asyncio.sleep(0.05)

    assert [await tries.get(), await tries.get()] == [[node.id], [node.id]]
