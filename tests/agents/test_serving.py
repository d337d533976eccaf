"""Serving: a process does the work of its program's agents, and of those that are stored."""

import asyncio

import pytest

from holdfast import App
from holdfast.agents import serving as serving_module
from holdfast.agents.serving import Serving
from tests.agents.stage import PATIENCE, Player, Stage, answer, calls, ended, of, told


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored agents are looked at more often than in earnest."""
    monkeypatch.setattr(serving_module, "LOOK", 0.05)


async def serves(serving: Serving, *names: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while serving.agents != sorted(names):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


@pytest.mark.req("AGENT-06")
async def test_a_stored_agent_is_served_with_the_programs_tools_as_soon_as_it_is_there(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.open()
    serving = await stage.serving(engine, app)
    await engine.definitions.put("helper", instructions="You are stored.", tools=["track"])
    model.says(calls(("track", {"parcel": "AB-1"})))

    events = await told(engine, "helper", "Where is it?", user="ann")

    await serves(serving, "helper", "support")
    assert "Cologne" in of(events, "observation")[0].text
    assert model.requests[0].messages[0].content.startswith("You are stored.")


@pytest.mark.req("AGENT-06")
async def test_a_changed_agent_answers_as_it_is_now_and_a_removed_one_no_more(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.open()
    serving = await stage.serving(engine, app)
    await engine.definitions.put("helper", instructions="You are old.")
    await told(engine, "helper", "Hello!", user="ann")

    await engine.definitions.put("helper", instructions="You are new.", version=1)
    async with asyncio.timeout(PATIENCE):
        while not model.requests[-1].messages[0].content.startswith("You are new."):
            await told(engine, "helper", "Hello!", user="ann")
    await engine.definitions.remove("helper")

    await serves(serving, "support")


@pytest.mark.req("AGENT-06")
async def test_an_agent_that_is_not_active_is_not_served(stage: Stage, app: App) -> None:
    engine = await stage.open()
    serving = await stage.serving(engine, app)
    await engine.definitions.put("helper", instructions="Help.")
    await serves(serving, "helper", "support")

    await engine.definitions.put("helper", instructions="Help.", active=False, version=1)

    await serves(serving, "support")


@pytest.mark.req("STM-06")
async def test_two_processes_share_the_work_and_each_message_is_answered_once(stage: Stage, app: App) -> None:
    first, second = await stage.serve(app), await stage.serve(app)

    sent = [
        await (first, second)[number % 2].agents.send("support", "Hello!", user="ann", session_id=f"s{number % 5}")
        for number in range(20)
    ]
    events = [await ended((second, first)[number % 2], each) for number, each in enumerate(sent)]

    for number, each in enumerate(sent):
        assert len([event for event in of(events[number], "answer") if event.run_id == each.run_id]) == 1
    runs = await first.agents.runs.list(limit=100)
    assert [run.state for run in runs] == ["done"] * 20


@pytest.mark.req("STM-06")
async def test_the_next_turn_of_a_session_is_served_by_any_process(stage: Stage, app: App, model: Player) -> None:
    first, second = await stage.open(), await stage.open()
    async with first.serving(app):
        await told(first, "support", "My number is 7.", user="ann", session_id="web-1")

    async with second.serving(app):
        events = await told(second, "support", "What is it?", user="ann", session_id="web-1")

    assert [message.content for message in model.requests[-1].messages[1:]] == [
        "My number is 7.", "Done.", "What is it?",
    ]  # fmt: skip
    assert answer(events) == "Done."
