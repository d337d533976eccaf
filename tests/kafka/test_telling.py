"""What conversations tell their agents' topics, on Kafka: the same records, in the same order."""

import asyncio

import msgspec
import pytest

from holdfast.bus.messages import ConversationMessage, message_of, sequence_of
from holdfast.conversations import NodeInput
from holdfast.engine import Engine
from tests.conformance.consumers import PATIENCE
from tests.kafka.plain import Plain
from tests.told import define, told

USER = "text:user:ann"
CANARY = "canary-7f3a"
WRITERS = 8


@pytest.mark.req("TALK-01", "TALK-02", "BUS-01")
async def test_a_plain_client_reads_what_a_conversation_tells_and_no_content(engine: Engine, plain: Plain) -> None:
    topic = await define(engine, "support")
    talk = await engine.conversations.create(user="ann", agent="support")
    asked = await engine.conversations.append(talk.id, CANARY, context=USER, state={"step": CANARY})
    call = {"id": "c1", "name": "track", "arguments": {"parcel": "Köln"}}
    looks = await engine.conversations.append(
        talk.id, CANARY, context="text:agent:support", payload={"tool_calls": [call]}, form="adk", native="{}"
    )
    await engine.conversations.edit(asked.id, CANARY + "!", version=1)

    seen = await plain.read(topic, 3, partitions=4)

    messages = [msgspec.json.decode(record.value or b"", type=ConversationMessage) for record in seen]
    assert [(message.action, message.agent_id, message.node_id) for message in messages] == [
        ("create", "ui", asked.id),
        ("tool_invoke", "support", looks.id),
        ("edit", "system", asked.id),
    ]
    assert messages[1].command == ["track", '{"parcel": "Köln"}']
    assert {record.key for record in seen} == {str(talk.id).encode()}
    headers = [dict(record.headers) for record in seen]
    assert [header["holdfast-sequence"] for header in headers] == [b"1", b"2", b"3"]
    assert [header.get("holdfast-form") for header in headers] == [None, b"adk", None]
    assert {header["holdfast-schema"] for header in headers} == {b"conversation-message/1.0.0"}
    assert not any(CANARY.encode() in (record.value or b"") for record in seen)


@pytest.mark.req("TALK-01", "TALK-03", "BUS-03")
async def test_a_group_gets_every_revision_of_every_conversation_once_and_in_order(engine: Engine) -> None:
    topic = await define(engine, "support")
    talks = [await engine.conversations.create(user="ann", agent="support") for _ in range(4)]

    async def write(writer: int) -> None:
        talk = talks[writer % len(talks)]
        for number in range(5):
            node = await engine.conversations.append(talk.id, "x", context=USER)
            await engine.conversations.append_all(talk.id, [NodeInput(content="x", context=USER)] * 3)
            await engine.conversations.edit(node.id, "y", version=1)
            await engine.state.set(talk.id, {f"{writer}": number})

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for writer in range(WRITERS):
            group.create_task(write(writer))
    expected = {talk.id: (await engine.conversations.get(talk.id)).revision for talk in talks}
    read: dict[object, list[int | None]] = {talk.id: [] for talk in talks}
    async with asyncio.timeout(PATIENCE), engine.log.subscribe([topic], group="agent-support") as records:
        while sum(map(len, read.values())) < sum(expected.values()):
            for record in await records.batch():
                read[message_of(record).conversation_id].append(sequence_of(record))
                await records.commit(record)

    assert read == {talk: list(range(1, revision + 1)) for talk, revision in expected.items()}
    assert len(await told(engine, topic)) == sum(expected.values())
