"""Ten agents and a thousand conversations: ten topics, and every conversation is answered once and in order."""

import asyncio
from collections import Counter

import pytest

from holdfast.engine import Engine
from tests.acceptance.clerks import ANSWER, WHERE, Clerks, drained, ended
from tests.told import told

AGENTS = [f"agent-{number}" for number in range(10)]
EACH = 100  # conversations of each
HANDS = 20  # that send at once


@pytest.mark.acceptance
@pytest.mark.req("TALK-01", "TALK-02", "TALK-05", "AGENT-06")
async def test_ten_agents_and_a_thousand_conversations_are_ten_topics(engine: Engine, clerks: Clerks) -> None:
    for name in AGENTS:
        await engine.agents.definitions.put(name, instructions="Help.", tools=["track"], memory=name == AGENTS[0])
    for _ in range(2):
        await clerks.start()
    free = asyncio.Semaphore(HANDS)

    async def send(agent: str, number: int) -> None:
        async with free:
            message = WHERE if number % 10 == 0 else "Hello!"
            await engine.agents.send(agent, message, user=f"user-{number}", session_id=f"{agent}/{number}")

    await asyncio.gather(*(send(agent, number) for agent in AGENTS for number in range(EACH)))
    await ended(engine, len(AGENTS) * EACH)

    topics = [topic for topic in await engine.log.topics() if topic.name.startswith("llm-agent-")]
    assert sorted(topic.name for topic in topics) == sorted(f"llm-{name}" for name in AGENTS)
    for agent in AGENTS:
        await drained(engine, f"agent-{agent}")
        records = await told(engine, f"llm-{agent}")
        for number in range(EACH):
            await check(engine, agent, number, [each.brief for each in records])
        assert len({each.message.conversation_id for each in records}) == EACH
    done = Counter(line.split()[1] for line in clerks.lines("asked"))
    assert done.total() == len(AGENTS) * EACH * 11 // 10
    assert len(done) == 2, "both took part"


async def check(engine: Engine, agent: str, number: int, records: list[tuple[object, ...]]) -> None:
    """A conversation was answered once: its nodes, and the records of them, are in order and without a gap."""
    talk = await engine.conversations.find(session_id=f"{agent}/{number}")
    assert talk is not None
    said = await engine.conversations.since(talk.id, 0)
    user, agents = f"text:user:user-{number}", f"text:agent:{agent}"
    asks, answers = (1, "create", "ui", said[0].id), (len(said), "append", agent, said[-1].id)
    mine = {node.id for node in said}
    if number % 10:
        assert [node.context for node in said] == [user, agents]
        assert [record for record in records if record[3] in mine] == [asks, answers]
        assert said[-1].content == "Good morning."
    else:
        assert [node.context for node in said] == [user, agents, "text:agent:tool", agents]
        acts = [(2, "tool_invoke", agent, said[1].id), (3, "tool_result", "tool", said[2].id)]
        assert [record for record in records if record[3] in mine] == [asks, *acts, answers]
        assert said[-1].content == ANSWER
