"""System agents: functions that answer on a topic of their own."""

import asyncio

import pytest

from holdfast import App
from holdfast.agents import Incoming
from holdfast.core.errors import Busy, DatabaseAway, NotFound, Overloaded
from tests.agents.stage import PATIENCE, Player, Stage, answer, kinds, nodes, reached, told


@pytest.mark.req("AGENT-06", "TALK-01")
async def test_a_function_answers_on_its_own_topic_without_a_model(stage: Stage, model: Player) -> None:
    app = App()
    asked: list[Incoming] = []

    @app.system("clock", description="Tells the time.")
    async def clock(message: Incoming) -> str:
        asked.append(message)
        return "It is noon."

    engine = await stage.serve(app)

    events = await told(engine, "clock", "What time is it?\0", user="ann", session_id="web-1")

    [message] = asked
    run = await engine.agents.runs.get(message.run_id)
    assert kinds(events) == ["answer", "done"]
    assert answer(events) == "It is noon."
    assert (message.text, message.user, message.session_id) == ("What time is it?\0", "ann", "web-1")
    assert (run.trigger, run.conversation, run.state) == (message.node_id, message.conversation_id, "done")
    assert [topic.name for topic in await engine.log.topics()] == ["system-clock"]
    assert model.requests == []


@pytest.mark.req("AGENT-06")
async def test_a_function_that_raises_fails_its_run_and_answers_the_next(stage: Stage) -> None:
    app = App()
    asked = 0

    @app.system("moody")
    async def moody(_: Incoming) -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise RuntimeError("password=hunter2")
        return "Better now."

    engine = await stage.serve(app)

    broken = await told(engine, "moody", "Hello!", user="ann", session_id="web-1")
    retried = await engine.agents.retry(broken[-1].run_id or pytest.fail("no run"))
    after = await told(engine, "moody", "And now?", user="ann", session_id="web-1")

    assert (broken[-1].kind, broken[-1].state) == ("error", "failed")
    assert "hunter2" not in str(broken)
    assert (await engine.agents.runs.get(retried.id)).state == "done"
    assert answer(after) == "Better now."


@pytest.mark.req("AGENT-06")
async def test_a_function_that_says_nothing_ends_its_run(stage: Stage) -> None:
    app = App()

    @app.system("silent")
    async def silent(_: Incoming) -> None:
        return None

    engine = await stage.serve(app)

    events = await told(engine, "silent", "Hello!", user="ann", session_id="web-1")

    talk = await engine.conversations.find(session_id="web-1") or pytest.fail("no session")
    assert events[-1].state == "done"
    assert next(node.content for node in await nodes(engine, talk.id)) == "Hello!"


@pytest.mark.req("AGENT-06", "AGENT-02")
async def test_what_is_said_to_a_function_is_not_remembered(stage: Stage) -> None:
    app = App()

    @app.system("clock")
    async def clock(_: Incoming) -> str:
        return "It is noon."

    engine = await stage.serve(app)

    await told(engine, "clock", "I am allergic to peanuts.", user="ann", session_id="web-1")

    assert await engine.memory.context("peanuts", session="web-1", user="ann", agent="clock") == []


@pytest.mark.req("AGENT-06")
@pytest.mark.parametrize(
    "error",
    [
        Busy("somebody else has it"),
        Overloaded("too much", retry_after=1),
        DatabaseAway("its own database is away"),
        asyncio.CancelledError(),
        SystemExit(1),
        NotFound("there is no order 7"),
    ],
)
async def test_whatever_a_function_raises_fails_its_run_once(stage: Stage, error: BaseException) -> None:
    app = App()
    asked = 0

    @app.system("moody")
    async def moody(_: Incoming) -> str:
        nonlocal asked
        asked += 1
        raise error

    engine = await stage.serve(app, agents_lease=2)

    events = await told(engine, "moody", "Hello!", user="ann", session_id="web-1")
    after = await told(engine, "moody", "And now?", user="ann", session_id="web-1")

    assert [each[-1].state for each in (events, after)] == ["failed", "failed"]
    assert asked == 2
    assert not isinstance(error, NotFound) or "there is no order 7" in events[-1].text


@pytest.mark.req("AGENT-06", "AGENT-01")
async def test_a_function_whose_run_is_cancelled_is_cancelled(stage: Stage) -> None:
    app = App()
    begun, ended = asyncio.Event(), asyncio.Event()

    @app.system("slow")
    async def slow(_: Incoming) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    engine = await stage.serve(app)
    sent = await engine.agents.send("slow", "Hello!", user="ann")
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        await engine.agents.cancel(sent.run_id)
        await ended.wait()

    assert (await reached(engine, sent.run_id, "cancelled", "failed")).state == "cancelled"
