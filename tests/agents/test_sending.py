"""A message that is sent where its agent is served: its run is taken as it is stored, and done by this process."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast import App
from holdfast.agents.runs import Runs
from holdfast.core.errors import Busy, DatabaseAway
from holdfast.engine import Engine
from tests.agents.stage import PATIENCE, Player, Stage, ended, met, of, reached, told

pytestmark = pytest.mark.req("AGENT-01", "STM-06")

HELD = "select state, holder is not null as is_held, token, claims from runs where tenant_id = $1 and id = $2"


async def row_of(engine: Engine, run: UUID) -> tuple[object, ...]:
    row = await engine.database.one(HELD, run)
    assert row is not None
    return tuple(row)


async def test_a_run_is_held_when_its_message_is_and_not_taken_once_more(
    stage: Stage, app: App, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, asked = Runs.take, list[Sequence[UUID]]()

    async def noted(runs: Runs, agents: Sequence[str], *, nodes: Sequence[UUID] | None = None, **more: Any) -> Any:
        if nodes is not None:
            asked.append(nodes)
        return await take(runs, agents, nodes=nodes, **more)

    monkeypatch.setattr(Runs, "take", noted)
    engine = await stage.serve(app)
    model.hold()

    sent = await engine.agents.send("support", "Hello!", user="ann")
    held = await row_of(engine, sent.run_id)
    model.release()
    await ended(engine, sent)
    later = await told(engine, "support", "And now?", user="ann")  # its record comes after that of the first

    assert held == ("running", True, 1, 1)
    assert later[-1].state == "done"
    assert asked == []


async def test_what_comes_while_an_answer_is_under_way_waits_for_it(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says("To one.", "To two.")
    model.hold()

    first = await engine.agents.send("support", "One.", user="ann", session_id="web-1")
    second = await engine.agents.send("support", "Two.", user="ann", session_id="web-1")
    waits = await row_of(engine, second.run_id)
    model.release()
    events = await ended(engine, second)

    assert (first.held is not None, second.held) == (True, None)
    assert waits == ("queued", False, 0, 0)
    assert [event.text for event in of(events, "answer")] == ["To one.", "To two."]


@pytest.mark.req("AGENT-03")
async def test_where_there_is_no_room_a_message_is_stored_and_answered_later(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.serve(app, agents_concurrency=1)
    model.hold()

    first = await engine.agents.send("support", "One.", user="ann", session_id="web-1")
    await reached(engine, first.run_id, "running")
    second = await engine.agents.send("support", "Two.", user="bob", session_id="web-2")
    waits = await row_of(engine, second.run_id)
    model.release()
    await ended(engine, first)
    events = await ended(engine, second)

    assert waits == ("queued", False, 0, 0)
    assert events[-1].state == "done"


async def test_whoever_stops_waiting_for_what_is_being_sent_has_sent_it(
    stage: Stage, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await stage.serve(app)
    send, stored, seen = Runs.send, asyncio.Event(), list[UUID]()

    async def slow(runs: Runs, *args: Any, **more: Any) -> Any:
        sent = await send(runs, *args, **more)
        seen.append(sent.run_id)
        stored.set()
        await asyncio.sleep(0.05)
        return sent

    monkeypatch.setattr(Runs, "send", slow)
    sending = asyncio.ensure_future(engine.agents.send("support", "Hello!", user="ann"))
    await stored.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending

    await reached(engine, seen[0], "done")
    assert (await row_of(engine, seen[0]))[3] == 1, "nobody had to wait for its lease"


async def test_a_message_whose_sender_lost_the_database_is_answered_before_its_lease_is_over(
    stage: Stage, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await stage.serve(app, agents_lease=600)
    send, seen = Runs.send, list[UUID]()

    async def unheard(runs: Runs, *args: Any, **more: Any) -> Any:
        seen.append((await send(runs, *args, **more)).run_id)
        raise DatabaseAway("the connection was lost before the answer came")

    monkeypatch.setattr(Runs, "send", unheard)
    with pytest.raises(DatabaseAway):
        await engine.agents.send("support", "Hello!", user="ann")

    await reached(engine, seen[0], "done")


async def test_what_is_refused_leaves_room_for_others(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.open(agents_concurrency=2)
    runner = (await stage.serving(engine, app)).runner
    model.hold()
    first = await engine.agents.send("support", "One.", user="ann", session_id="web-1")
    for _ in range(3):
        with pytest.raises(Busy):
            await engine.agents.send("support", "Two.", user="ann", session_id="web-1", busy="reject")

    await met(lambda: runner.has_room("support"))
    model.release()
    await ended(engine, first)


@pytest.mark.req("CONV-07", "AGENT-01")
async def test_a_run_waits_for_the_turn_that_holds_its_conversation(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)
    talk = await engine.agents.session("support", user="ann", session_id="web-1")
    async with engine.turns.take(talk.id, holder="a program") as turn:
        with pytest.raises(Busy, match="a program holds it"):
            await engine.agents.send("support", "Hello!", user="ann", session_id="web-1", busy="reject")
        sent = await engine.agents.send("support", "Hello!", user="ann", session_id="web-1")
        taken = await engine.agents.runs.take(
            ["support"], nodes=[sent.node_id], holder="me", lease=timedelta(minutes=1), most=1
        )
        await engine.conversations.append(talk.id, "One moment.", context="text:agent:program", turn=turn)
        during = await engine.agents.runs.get(sent.run_id)

    after = await reached(engine, sent.run_id, "done")
    assert (sent.held, taken, during.state) == (None, [], "queued")
    assert after.number > turn.number


@pytest.mark.req("CONV-07", "AGENT-01")
async def test_a_turn_waits_for_the_run_that_holds_its_conversation(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.hold()
    sent = await engine.agents.send("support", "Hello!", user="ann", session_id="web-1")
    with pytest.raises(Busy, match="the agent support holds it") as refused:
        await engine.turns.claim(sent.conversation)
    claim = await engine.turns.claim(sent.conversation, busy="enqueue")
    later = await engine.agents.send("support", "And?", user="ann", session_id="web-1")
    model.release()
    await reached(engine, sent.run_id, "done")

    assert refused.value.details == {"holder": "the agent support"}
    assert not claim.held
    assert (await engine.turns.renew(sent.conversation, claim.number)).held
    assert (await engine.agents.runs.get(later.run_id)).state == "queued"
    await engine.turns.release(sent.conversation, claim.number)
    await reached(engine, later.run_id, "done")


@pytest.mark.req("CONV-07", "AGENT-01")
async def test_runs_and_turns_interrupt_each_other(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.hold()
    sent = await engine.agents.send("support", "Hello!", user="ann", session_id="web-1")
    async with asyncio.timeout(PATIENCE):
        async with engine.turns.take(sent.conversation, busy="interrupt") as turn:
            model.release()
            later = await engine.agents.send("support", "Stop!", user="ann", session_id="web-1", busy="interrupt")
            await turn.interrupted.wait()

    assert (await engine.agents.runs.get(sent.run_id)).state == "cancelled"
    await reached(engine, later.run_id, "done")
