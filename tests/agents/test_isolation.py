"""Users and tenants are kept apart: in conversations, notes, memories, events, runs and approvals."""

import asyncio

import pytest

from holdfast import App
from holdfast.agents import Event
from holdfast.core.errors import NotFound
from holdfast.engine import Engine
from tests.agents.stage import Player, Stage, answer, calls, nodes, of, reached, told

SECRET = "My locker code is heron 4711."


def everything(model: Player) -> str:
    """All that the model was ever shown."""
    return str(model.requests)


@pytest.fixture
async def tenants(stage: Stage, app: App) -> tuple[Engine, Engine]:
    """Two tenants whose agents have the same name."""
    engine = await stage.open()
    await engine.tenants.create("acme")
    acme = engine.tenant("acme")
    for each in (engine, acme):
        await stage.serving(each, app)
    return engine, acme


@pytest.mark.req("STM-05")
async def test_another_users_session_is_not_reached_by_its_id(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    await told(engine, "support", SECRET, user="ann", session_id="web-1")

    await told(engine, "support", "What is the code?", user="bob", session_id="web-1")
    own = await engine.agents.session("support", user="bob", session_id="web-1")
    with pytest.raises(NotFound, match="there is no session 'web-1'"):
        await engine.agents.send("support", "What is the code?", session_id="web-1")

    assert (own.user, own.session_id, own.last_seq) == ("bob", "web-1", 2)
    assert SECRET not in str(model.requests[-1])
    talk = await engine.conversations.find(session_id="web-1") or pytest.fail("no session")
    assert len(await nodes(engine, talk.id)) == 2


@pytest.mark.req("AGENT-02", "STM-05")
async def test_what_one_user_said_is_never_shown_to_another(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    await engine.notes.edit(user="ann", agent="support", operation="append", content="Ann's locker code: heron 4711")
    model.says(calls(("remember", {"content": "Ann's locker code is heron 4711"})), "Noted.")
    await told(engine, "support", SECRET, user="ann", session_id="anns")
    model.requests.clear()
    model.says(
        calls(
            ("recall", {"query": "locker code heron", "limit": 50}),
            ("manage_long_term_memory", {"operation": "read"}),
            ("recall", {"query": "locker code", "user": "ann"}),
            ("manage_long_term_memory", {"operation": "read", "user": "ann", "agent": "support"}),
        )
    )

    events = await told(engine, "support", "What is the locker code?", user="bob", session_id="bobs")

    recalled, read, *refused = of(events, "observation")
    assert recalled.text.startswith("Nothing is remembered")
    assert read.text == "(nothing has been noted yet)"
    assert all(each.failed and "the tool has no argument" in each.text for each in refused)
    assert "4711" not in everything(model)
    assert not any("4711" in event.text for event in events)


@pytest.mark.req("AGENT-02")
async def test_two_users_who_talk_at_once_are_answered_each_from_their_own(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.serve(app)

    async def talks(user: str) -> None:
        for number in range(4):
            await told(engine, "support", f"I am {user}, my number is {user}-{number}.", user=user, session_id=user)

    async with asyncio.TaskGroup() as group:
        for user in ("ann", "bob", "cyd"):
            group.create_task(talks(user))

    for request in model.requests:
        shown = str(request)
        assert sum(f"{user}-" in shown for user in ("ann", "bob", "cyd")) == 1


@pytest.mark.req("AGENT-04", "AGENT-05")
async def test_runs_and_approvals_are_listed_by_user(stage: Stage, model: Player) -> None:
    app = App()

    @app.tool(approve=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    app.agent("support", tools=[pay])
    engine = await stage.serve(app)
    model.says(calls(("pay", {})), calls(("pay", {})))
    for user in ("ann", "bob"):
        sent = await engine.agents.send("support", "Pay!", user=user)
        await reached(engine, sent.run_id, "waiting")

    anns = await engine.agents.approvals.pending(user="ann")

    assert [approval.user for approval in anns] == ["ann"]
    assert [run.user for run in await engine.agents.runs.list(user="bob")] == ["bob"]


@pytest.mark.req("ENG-04", "STM-05")
async def test_two_tenants_with_the_same_agent_user_and_session_know_nothing_of_one_another(
    tenants: tuple[Engine, Engine], model: Player
) -> None:
    engine, acme = tenants
    await engine.notes.edit(user="ann", agent="support", operation="append", content="heron 4711")
    await told(engine, "support", SECRET, user="ann", session_id="web-1", key="msg-1")
    model.requests.clear()
    model.says(calls(("recall", {"query": "locker code heron"}), ("manage_long_term_memory", {})))

    events = await told(acme, "support", "What is my locker code?", user="ann", session_id="web-1", key="msg-1")

    assert "4711" not in everything(model)
    assert not any("4711" in event.text for event in events)
    assert answer(events) == "Done."
    assert len(await engine.agents.runs.list()) == len(await acme.agents.runs.list()) == 1


@pytest.mark.req("ENG-04", "WS-02")
async def test_a_tenant_reaches_nothing_of_another_by_its_ids_and_cursors(
    tenants: tuple[Engine, Engine], stage: Stage, model: Player
) -> None:
    engine, acme = tenants
    events = await told(engine, "support", SECRET, user="ann", session_id="web-1")
    run = await engine.agents.runs.get(events[-1].run_id or pytest.fail("no run"))

    for attempt in (
        acme.agents.runs.get(run.id),
        acme.agents.cancel(run.id),
        acme.agents.retry(run.id),
        acme.agents.steps(run.id),
        acme.agents.approvals.get(run.id),
        acme.agents.decide(run.id, approve=True, by="boss"),
    ):
        with pytest.raises(NotFound):
            await attempt
    for cursor in (None, events[0].cursor):
        with pytest.raises(NotFound):
            async with acme.agents.watch(run.conversation, "support", since=cursor) as watch:
                await anext(watch)


@pytest.mark.req("ENG-04", "TALK-03")
async def test_a_record_that_names_a_node_of_another_tenant_brings_nothing(
    tenants: tuple[Engine, Engine], model: Player
) -> None:
    engine, acme = tenants
    await told(engine, "support", SECRET, user="ann", session_id="web-1")
    talk = await engine.conversations.find(session_id="web-1") or pytest.fail("no session")
    records = [record async for record in engine.log.read("llm-support")]
    model.requests.clear()

    for record in records:
        await acme.log.publish("llm-support", key=record.key, value=record.value, headers=record.headers)
    await told(acme, "support", "Hello!", user="ann", session_id="web-1")

    assert len(await acme.agents.runs.list()) == 1
    assert "4711" not in everything(model)
    assert len(await nodes(engine, talk.id)) == 2


@pytest.mark.req("WS-02", "STM-05")
async def test_a_cursor_of_another_conversation_tells_nothing_of_it(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)
    anns = await told(engine, "support", SECRET, user="ann", session_id="anns")
    bobs = await engine.agents.session("support", user="bob", session_id="bobs")

    async with engine.agents.watch(bobs.id, "support", since=anns[0].cursor) as watch:
        await told(engine, "support", "Hello!", user="bob", session_id="bobs")
        await told(engine, "support", "Again!", user="bob", session_id="bobs")
        seen: list[Event] = []
        while (event := await watch.next_now()) is not None:
            seen.append(event)

    assert not any("4711" in event.text for event in seen)
    assert {event.author for event in of(seen, "message")} <= {"bob"}
