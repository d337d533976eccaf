"""What stays of a turn: what was said is remembered as whose it is, and what summing up takes is counted."""

import asyncio
from typing import Any

import pytest

from holdfast import App
from holdfast.agents import after_turn
from holdfast.conversations.notes import Note
from holdfast.engine import Engine
from holdfast.llm import ModelRequest
from holdfast.memory import Hits, session, user
from tests.agents.stage import PATIENCE, Player, Stage, told

USAGE = {"input_tokens": 100, "output_tokens": 10}


@pytest.mark.req("AGENT-02", "AGENT-06")
@pytest.mark.parametrize(
    ("context", "trust", "author"),
    [("text:user:ann", "user", "ann"), ("text:user:bob", "user", "bob"), ("text:agent:billing", "agent", "billing")],
)
async def test_only_what_the_user_says_is_remembered_as_the_users_words(
    stage: Stage, app: App, context: str, trust: str, author: str
) -> None:
    engine = await stage.serve(app)
    talk = await engine.agents.session("support", user="ann", session_id="web-1")

    await engine.conversations.append(talk.id, context=context, content="I am allergic to peanuts.")
    await done(engine, 1)

    hits = await engine.memory.context("allergic peanuts", session="web-1", user="ann", agent="support")
    kept = {(hit.memory.owner.scope, hit.memory.trust, hit.memory.author) for hit in hits}
    lasting = {("user", "user", "ann")} if author == "ann" else set[tuple[str, str, str]]()
    assert {each for each in kept if each[2] != "support"} == {("session", trust, author)} | lasting


@pytest.mark.req("AGENT-02", "AGENT-04")
async def test_what_a_summary_takes_is_counted_into_the_run(stage: Stage, model: Player) -> None:
    app = App()
    app.agent("support", memory=False)
    engine = await stage.serve(
        app, llm_context_tokens=2000, llm_max_output_tokens=500, llm_prices=("scripted=1000000/1000000",)
    )

    def plays(request: ModelRequest) -> dict[str, object]:
        is_summary = "You keep the summary" in request.messages[0].content
        return {"text": "Ann was away." if is_summary else "I see. " * 40, "usage": USAGE}

    model.says(*[plays] * 40)
    for number in range(8):
        await told(engine, "support", f"Day {number}. " + "The sea was warm. " * 20, user="ann", session_id="web-1")

    runs = list(await engine.agents.runs.list())
    assert len(model.requests) > len(runs)
    assert sum(run.input_tokens for run in runs) == 100 * len(model.requests)
    assert sum(run.output_tokens for run in runs) == 10 * len(model.requests)
    assert sum(run.cost for run in runs) == pytest.approx(110 * len(model.requests))  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.req("AGENT-02")
async def test_a_summary_that_takes_too_long_does_not_hold_the_conversation(
    stage: Stage, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_turn, "SUMMING", 0.1)
    app = App()
    app.agent("support", memory=False)
    engine = await stage.serve(app, llm_context_tokens=2000, llm_max_output_tokens=500)

    def plays(request: ModelRequest) -> dict[str, object]:
        is_summary = "You keep the summary" in request.messages[0].content
        return {"text": "I see. " * 40, "stall": 600 if is_summary else 0}

    model.says(*[plays] * 40)
    for number in range(8):
        events = await told(
            engine, "support", f"Day {number}. " + "The sea was warm. " * 20, user="ann", session_id="web-1"
        )
        assert events[-1].state == "done"

    assert any("You keep the summary" in request.messages[0].content for request in model.requests)


@pytest.mark.req("AGENT-02")
async def test_notes_and_memories_are_read_at_once(
    stage: Stage, app: App, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await stage.serve(app)
    both = asyncio.Barrier(2)
    read, recall = engine.notes.read, engine.memory.context

    async def reading(**names: Any) -> Note:
        await both.wait()
        return await read(**names)

    async def recalling(question: str, **names: Any) -> Hits:
        await both.wait()
        return await recall(question, **names)

    monkeypatch.setattr(engine.notes, "read", reading)
    monkeypatch.setattr(engine.memory, "context", recalling)

    events = await told(engine, "support", "Hello there, friend!", user="ann", session_id="web-1")

    assert events[-1].state == "done"


async def done(engine: Engine, number: int) -> None:
    """Wait until so many runs are done."""
    async with asyncio.timeout(PATIENCE):
        while [run.state for run in await engine.agents.runs.list()] != ["done"] * number:  # noqa: ASYNC110 - rows tell
            await asyncio.sleep(0.01)


@pytest.mark.req("AGENT-02", "MEM-06")
async def test_a_sentence_that_is_said_again_is_one_memory_and_refreshed(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)
    for number, words in enumerate(
        [
            "I am allergic to peanuts.",
            "I am allergic to peanuts",
            " i am allergic  to Peanuts! ",
            "I am allergic to nuts.",
        ]
    ):
        await told(engine, "support", words, user="ann", session_id=f"web-{number % 2}")

    kept = [hit.memory for hit in await engine.memory.search(user("ann"), "allergic", limit=50)]
    here = [hit.memory for hit in await engine.memory.search(session("web-0"), "allergic peanuts", limit=50)]

    assert sorted(memory.content for memory in kept) == ["I am allergic to nuts.", "I am allergic to peanuts."]
    assert {memory.content: memory.access_count for memory in kept}["I am allergic to peanuts."] >= 2
    assert len([memory for memory in here if memory.author == "ann"]) == 1


@pytest.mark.req("AGENT-02")
async def test_a_sentence_that_is_said_in_many_places_at_once_is_one_memory(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)

    await asyncio.gather(
        *(told(engine, "support", "I am allergic to peanuts.", user="ann", session_id=f"at-once-{n}") for n in range(8))
    )

    [hit] = await engine.memory.search(user("ann"), "allergic peanuts", limit=50)
    assert hit.memory.access_count >= 7


@pytest.mark.req("AGENT-02")
async def test_what_two_users_say_are_two_memories(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)
    for person in ("ann", "bob"):
        await told(engine, "support", "I am allergic to peanuts.", user=person)

    for person in ("ann", "bob"):
        [hit] = await engine.memory.search(user(person), "allergic peanuts")
        assert hit.memory.author == person
