"""Channels: a program's own ways to agents."""

import asyncio
import logging

import pytest

from holdfast import App
from holdfast.agents import Agents
from holdfast.core.errors import NotFound
from tests.agents.stage import PATIENCE, Player, Stage


class Post:
    """Letters that came, and answers that went out."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.went: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def carry(self, agents: Agents, name: str) -> None:
        """Bring letters to the agent, and its answers back."""
        while True:
            sender, letter = await self.came.get()
            sent = await agents.send("support", letter, user=sender, session_id=f"{name}-{sender}")
            async with agents.watch(sent.conversation, "support") as events:
                async for event in events:
                    if event.run_id == sent.run_id and event.kind == "answer":
                        await self.went.put((sender, event.text))
                    if event.run_id == sent.run_id and event.kind in ("done", "error"):
                        break


@pytest.mark.req("AGENT-06", "TALK-08")
async def test_a_channel_of_a_program_brings_messages_to_an_agent_and_answers_back(
    stage: Stage, app: App, model: Player
) -> None:
    post = Post()
    app.ui("mail", description="Letters.")(post.carry)
    engine = await stage.serve(app)
    model.says("Hello, Ann.", "Hello, Bob.", "Goodbye, Ann.")

    async with asyncio.timeout(PATIENCE):
        answers: list[tuple[str, str]] = []
        for sender in ("ann", "bob", "ann"):
            await post.came.put((sender, f"I am {sender}."))
            answers.append(await post.went.get())

    channel = await engine.definitions.get("mail")
    talks = [run.conversation for run in await engine.agents.runs.list()]
    assert answers == [("ann", "Hello, Ann."), ("bob", "Hello, Bob."), ("ann", "Goodbye, Ann.")]
    assert (channel.kind, channel.origin, channel.description) == ("ui", "code", "Letters.")
    assert "ui-mail" in [topic.name for topic in await engine.log.topics()]
    assert len(set(talks)) == 2
    with pytest.raises(NotFound, match="there is no agent 'mail'"):
        await engine.agents.send("mail", "Hello!", user="ann")


@pytest.mark.req("AGENT-06", "TALK-08")
@pytest.mark.parametrize("error", [RuntimeError("no post today"), asyncio.CancelledError()])
async def test_a_channel_that_fails_begins_anew_and_says_so(
    stage: Stage,
    app: App,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
) -> None:
    monkeypatch.setattr("holdfast.agents.serving.FIRST_PAUSE", 0.01)
    begun = 0
    third, ended = asyncio.Event(), asyncio.Event()

    @app.ui("mail")
    async def mail(agents: Agents, name: str) -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise error
        third.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    engine = await stage.open()
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(PATIENCE), engine.serving(app) as serving:
            await third.wait()
            served = serving.agents

    assert ended.is_set()
    assert begun == 3
    assert served == ["support"]
    assert caplog.text.count("it restarts in") == 2


@pytest.mark.req("AGENT-06")
async def test_a_channel_that_returns_has_done_its_work(stage: Stage, app: App) -> None:
    begun = 0
    returned = asyncio.Event()

    @app.ui("once")
    async def once(agents: Agents, name: str) -> None:
        nonlocal begun
        begun += 1
        returned.set()

    engine = await stage.open()
    async with asyncio.timeout(PATIENCE), engine.serving(app):
        await returned.wait()

    assert begun == 1
