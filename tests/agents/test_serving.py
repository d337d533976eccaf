"""Serving: a process does the work of its program's agents, and of those that are stored."""

import asyncio
from uuid import UUID

import pytest

from holdfast import App
from holdfast.agents import serving as serving_module
from holdfast.agents.definitions import Definition, Definitions
from holdfast.agents.serving import Serving
from holdfast.core.errors import DatabaseAway
from holdfast.postgres.database import Database
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


@pytest.mark.req("AGENT-06", "ENG-02")
async def test_a_row_that_is_no_agent_keeps_no_other_from_being_served(stage: Stage, app: App) -> None:
    engine = await stage.open()
    damaged = await engine.definitions.put("damaged", instructions="Help.")
    twice = await engine.definitions.put("twice", instructions="Help.")
    await damage(engine.database, damaged.id, {"limits": {"patience": 7}})
    await damage(engine.database, twice.id, {"tools": ["track", "track"]})

    serving = await stage.serving(engine, app)
    await engine.definitions.put("helper", instructions="Help.")

    await serves(serving, "helper", "support", "twice")
    assert answer(await told(engine, "helper", "Hello!", user="ann")) == "Done."


@pytest.mark.req("AGENT-06", "ENG-02")
async def test_serving_that_cannot_begin_leaves_nothing_running(
    stage: Stage, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await stage.open()
    stored = Definitions.stored

    async def away(_: Definitions) -> dict[str, object]:
        raise DatabaseAway("the connection to the database was lost")

    monkeypatch.setattr(Definitions, "stored", away)
    before = {task.get_name() for task in asyncio.all_tasks()}

    with pytest.raises(DatabaseAway):
        await engine.serving(app).__aenter__()

    after = {task.get_name() for task in asyncio.all_tasks()}
    assert not {name for name in after - before if name.startswith(("mailbox", "leases", "runs", "stored"))}
    monkeypatch.setattr(Definitions, "stored", stored)
    await stage.serving(engine, app)
    assert answer(await told(engine, "support", "Hello!", user="ann")) == "Done."


@pytest.mark.req("AGENT-06")
async def test_stored_agents_are_read_when_they_have_changed_and_not_before(
    stage: Stage, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await stage.open()
    for name in ("one", "two"):
        await engine.definitions.put(name, instructions="Help.")
    get, read, looked = Definitions.get, list[str](), asyncio.Semaphore(0)
    stored = Definitions.stored

    async def noted(definitions: Definitions, name: str) -> Definition:
        read.append(name)
        return await get(definitions, name)

    async def looking(definitions: Definitions) -> object:
        looked.release()
        return await stored(definitions)

    async def three_looks_from_now_on() -> None:
        async with asyncio.timeout(PATIENCE):
            while not looked.locked():  # those that have begun already
                await looked.acquire()
            for _ in range(3):
                await looked.acquire()

    monkeypatch.setattr(Definitions, "get", noted)
    monkeypatch.setattr(Definitions, "stored", looking)
    serving = await stage.serving(engine, app)
    await three_looks_from_now_on()
    at_first = list(read)
    read.clear()
    await engine.definitions.remove("two")
    await engine.definitions.put("two", instructions="Help anew.")
    await three_looks_from_now_on()

    assert at_first == ["one", "two"]
    assert set(read) == {"two"}
    assert serving.agents == ["one", "support", "two"]


async def damage(database: Database, agent: UUID, settings: dict[str, object]) -> None:
    """Have a row hold what we would not store."""
    statement = "update agent_definition_t set settings = $3 where host_id = $1 and agent_def_id = $2"
    await database.run(statement, agent, settings)


@pytest.mark.req("AGENT-06")
async def test_a_tool_that_an_agent_names_and_nobody_has_is_told(
    stage: Stage, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await stage.open()
    await engine.definitions.put("helper", instructions="Help.", tools=["track", "trak"])
    app.agent("clerk", instructions="Help.", tools=["refnd"])

    serving = await stage.serving(engine, app)

    await serves(serving, "clerk", "helper", "support")
    told = [record.getMessage() for record in caplog.records if "does not exist" in record.getMessage()]
    assert told == [
        "the agent clerk names the tool refnd, which does not exist: it runs without it",
        "the agent helper names the tool trak, which does not exist: it runs without it",
    ]


@pytest.mark.req("SKILL-01")
async def test_a_tool_that_the_program_lost_is_not_active_when_it_is_served_again(stage: Stage) -> None:
    engine = await stage.open()
    before, after = App("shop"), App("shop")

    def look() -> str:
        """Look."""
        return ""

    def lose() -> str:
        """Lose."""
        return ""

    for app in (before, after):
        app.tool(look)
    before.tool(lose)
    await stage.serving(engine, before)

    await stage.serving(engine, after)

    assert [(entry.tool.name, entry.active) for entry in await engine.tools.list()] == [("look", True), ("lose", False)]
