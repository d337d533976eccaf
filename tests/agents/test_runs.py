"""Runs: one for each message, held by one process at a time; what happens when two messages come at once."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import cast

import pytest

from holdfast import App
from holdfast.agents import Agent, AgentRun
from holdfast.agents.journal import Journal, StepReply
from holdfast.conversations import NodeInput
from holdfast.conversations.contexts import by_user
from holdfast.conversations.turn_claims import Policy
from holdfast.core.errors import Busy, InvalidInput, NotFound, TimedOut, TooLarge
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.llm import ModelReply
from holdfast.llm.model import TokenUsage
from tests.agents.stage import Player, Stage, answer, ended, kinds, nodes, of, reached, told

LEASE = timedelta(seconds=30)
SHORT = timedelta(milliseconds=50)
NONE = timedelta(0)
OUTCOME = """
insert into tool_executions (tenant_id, id, run_id, step, call_id, tool, status, token, finished_at)
values ($1, $2, $3, $4, 'call', 'track', 'done', 1, holdfast.now())
"""
LOCK = "select from conversation where tenant_id = $1 and id = $2 for update"


@pytest.fixture
async def quiet(words_only: Engine) -> Engine:
    """An engine in which the agent `support` is defined, and nobody serves it."""
    await words_only.definitions.declare([Agent("support")])
    return words_only


async def taken(engine: Engine, *, lease: timedelta = LEASE, holder: str = "me") -> list[AgentRun]:
    return await engine.agents.runs.take(["support"], holder=holder, lease=lease, most=10)


async def taken_after_lease(engine: Engine) -> AgentRun:
    async with asyncio.timeout(10):
        while not (found := await taken(engine, holder="you")):  # noqa: ASYNC110 - time alone frees it
            await asyncio.sleep(0.01)
    return found[0]


@pytest.mark.req("AGENT-04", "STM-06")
async def test_a_run_is_held_by_one_and_the_next_of_its_conversation_waits(quiet: Engine) -> None:
    first = await quiet.agents.send("support", "One.", user="ann", session_id="web-1")
    await quiet.agents.send("support", "Two.", user="ann", session_id="web-1")
    third = await quiet.agents.send("support", "Three.", user="ann", session_id="web-2")

    held = await taken(quiet)

    assert {run.id for run in held} == {first.run_id, third.run_id}
    assert await taken(quiet, holder="you") == []


@pytest.mark.req("AGENT-04", "STM-06")
async def test_what_a_former_holder_still_writes_is_refused(quiet: Engine) -> None:
    sent = await quiet.agents.send("support", "One.", user="ann")
    [former] = await taken(quiet, lease=SHORT)

    current = await taken_after_lease(quiet)

    journal = Journal(quiet.database, former, announce=print, on_node=print)
    draft = NodeInput(content="late", context="text:agent:support", payload={"role": "assistant"}, key="late")
    assert (current.id, current.token, current.claims) == (sent.run_id, former.token + 1, 2)
    with pytest.raises(Busy, match="no longer holds the run"):
        await journal.append([draft])
    with pytest.raises(Busy, match="no longer holds the run"):
        await journal.begin_execution(1, [("c", "track", {})])
    with pytest.raises(Busy, match="no longer holds the run"):
        await quiet.agents.runs.finish(former, "done")
    assert await quiet.agents.runs.renew([former], lease=LEASE) == {former.id: "lapsed"}
    assert await quiet.agents.runs.renew([current], lease=LEASE) == {current.id: None}
    assert [node.content for node in await nodes(quiet, sent.conversation)] == ["One."]


@pytest.mark.req("STM-06")
async def test_a_run_that_is_given_back_can_be_had_at_once(quiet: Engine) -> None:
    await quiet.agents.send("support", "One.", user="ann")
    [held] = await taken(quiet)

    await quiet.agents.runs.give_back("another")
    kept = await taken(quiet, holder="you")
    await quiet.agents.runs.give_back("me")

    [again] = await taken(quiet, holder="you")
    assert kept == []
    assert again.id == held.id


@pytest.mark.req("STM-06", "AGENT-01")
async def test_a_run_is_not_said_to_be_lost_when_its_holder_has_just_ended_it(quiet: Engine) -> None:
    for session in ("web-1", "web-2", "web-3"):
        await quiet.agents.send("support", "One.", user="ann", session_id=session)
    ended, removed, kept = await taken(quiet)

    await quiet.agents.runs.finish(ended, "done")
    await quiet.conversations.remove(removed.conversation)

    stops = await quiet.agents.runs.stop_requests([ended, removed, kept])
    assert stops == {ended.id: None, removed.id: "lapsed", kept.id: None}


@pytest.mark.req("STM-06", "AGENT-01")
async def test_a_conversation_that_somebody_has_locked_keeps_no_other_run_from_being_taken(quiet: Engine) -> None:
    first = await quiet.agents.send("support", "One.", user="ann", session_id="web-1")
    second = await quiet.agents.send("support", "Two.", user="ann", session_id="web-2")

    async with quiet.transaction() as tx, asyncio.timeout(10):
        await tx.run(LOCK, first.conversation)
        held = await quiet.agents.runs.take(["support"], holder="me", lease=LEASE, most=1)
    later = await taken(quiet)

    assert [run.id for run in held] == [second.run_id]
    assert [run.id for run in later] == [first.run_id]


@pytest.mark.req("STM-06", "TALK-03")
async def test_a_strangers_message_in_a_locked_conversation_is_tried_again_later(quiet: Engine) -> None:
    talk = await quiet.conversations.create(user="ann", agent="support")
    node = await quiet.conversations.append(talk.id, "Anybody?", context="text:user:ann")
    take = partial(quiet.agents.runs.take, ["support"], nodes=[node.id], holder="me", lease=LEASE, most=1)

    async with quiet.transaction() as tx, asyncio.timeout(10):
        await tx.run(LOCK, talk.id)
        with pytest.raises(TimedOut, match="held a lock on a row for too long"):
            await take()
    [run] = await take()

    assert run.trigger == node.id


@pytest.mark.req("AGENT-01")
async def test_the_run_that_waits_longest_is_taken_first(quiet: Engine) -> None:
    for session in ("web-1", "web-2", "web-3"):
        await quiet.conversations.create(user="ann", agent="support", session_id=session)
    order = ["web-2", "web-3", "web-1"]
    sent = [await quiet.agents.send("support", "Hello!", user="ann", session_id=session) for session in order]

    held = [await quiet.agents.runs.take(["support"], holder="me", lease=LEASE, most=1) for _ in order]

    assert [run.id for [run] in held] == [each.run_id for each in sent]


@pytest.mark.req("AGENT-01", "STM-06")
async def test_a_run_that_brings_down_whoever_takes_it_is_given_up(quiet: Engine) -> None:
    sent = await quiet.agents.send("support", "One.", user="ann", session_id="web-1")
    later = await quiet.agents.send("support", "Two.", user="ann", session_id="web-1")

    tries = [await taken(quiet, lease=NONE) for _ in range(11)]
    after = await taken(quiet)

    run = await quiet.agents.runs.get(sent.run_id)
    assert [len(each) for each in tries] == [1] * 10 + [0]
    assert (run.state, (run.error or {})["code"]) == ("failed", "limit_reached")
    assert "stopped responding ten times" in (run.error or {})["message"]
    assert [run.id for run in after] == [later.run_id]
    assert (await quiet.agents.runs.retry(run.id)).state == "queued"


@pytest.mark.req("AGENT-01", "STM-06")
@pytest.mark.parametrize("stored", ["reply", "outcome"])
async def test_a_run_that_gets_on_or_is_given_back_is_never_given_up(quiet: Engine, stored: str) -> None:
    sent = await quiet.agents.send("support", "One.", user="ann")

    for number in range(1, 25):
        [run] = await taken(quiet, lease=NONE)
        if number % 9 == 0 and stored == "reply":
            journal = Journal(quiet.database, run, announce=print, on_node=print)
            reply = ModelReply(text="Hm.", calls=(), reason="end", usage=TokenUsage(1, 1), model="m")
            await journal.keep_reply(StepReply(number, {}, reply, 1, datetime.now(UTC)))
        elif number % 9 == 0:
            await quiet.database.run(OUTCOME, uuid7(), run.id, number)
    for _ in range(12):
        await taken(quiet)
        await quiet.agents.runs.give_back("me")

    assert (await quiet.agents.runs.get(sent.run_id)).claims == 36
    assert (await quiet.agents.runs.get(sent.run_id)).state == "queued"


@pytest.mark.req("AGENT-01", "STM-06")
async def test_a_run_that_was_to_stop_when_its_process_died_ends_when_it_is_taken_up(quiet: Engine) -> None:
    sent = await quiet.agents.send("support", "One.", user="ann", session_id="web-1")
    later = await quiet.agents.send("support", "Two.", user="ann", session_id="web-1")
    await taken(quiet)
    await quiet.agents.cancel(sent.run_id)
    await quiet.agents.runs.give_back("me")

    first, second = await taken(quiet), await taken(quiet)

    assert first == []
    assert [run.id for run in second] == [later.run_id]
    assert (await quiet.agents.runs.get(sent.run_id)).state == "cancelled"


@pytest.mark.req("CONV-06", "AGENT-04")
async def test_the_same_key_twice_is_said_and_answered_once(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)

    events = await told(engine, "support", "Hello!", user="ann", session_id="web-1", key="msg-1")
    again = await told(engine, "support", "Hello!", user="ann", session_id="web-1", key="msg-1")

    assert events[-1].run_id == again[-1].run_id
    assert kinds(event for event in again if event.kind != "token") == ["answer", "done"]
    assert len(model.requests) == 1


@pytest.mark.req("CONV-06", "AGENT-04")
async def test_a_key_that_somebody_appended_with_has_one_run(quiet: Engine) -> None:
    talk = await quiet.conversations.create(user="ann", agent="support", session_id="web-1")
    node = await quiet.conversations.append(talk.id, "Hello!", context="text:user:ann", key="msg-1")

    sent = await quiet.agents.send("support", "Hello!", user="ann", session_id="web-1", key="msg-1")

    [run] = await quiet.agents.runs.list(conversation=talk.id)
    assert (sent.is_new, sent.node_id, sent.run_id) == (False, node.id, run.id)


@pytest.mark.req("AGENT-04")
@pytest.mark.parametrize("key", [None, "msg-1"])
async def test_a_message_writes_its_conversation_twice(quiet: Engine, key: str | None) -> None:
    talk = await quiet.conversations.create(user="ann", agent="support")
    written = "select n_tup_upd from pg_stat_xact_user_tables where relname = 'conversation' and $1::uuid is not null"

    async with quiet.transaction() as tx:
        await quiet.agents.runs.send(
            talk.id, "support", "Hello!", context=by_user("ann"), user="ann", key=key, busy="enqueue", tx=tx
        )
        writes = await tx.value(written)

    assert writes == 2  # with its node, and with its run


@pytest.mark.req("AGENT-04")
async def test_nothing_is_said_in_a_conversation_that_is_not_there(quiet: Engine) -> None:
    for key, busy in [(None, "enqueue"), ("msg-1", "enqueue"), (None, "reject"), (None, "interrupt")]:
        with pytest.raises(NotFound):
            await quiet.agents.runs.send(
                uuid7(), "support", "Hello!", context=by_user("ann"), user="ann", key=key, busy=cast(Policy, busy)
            )


@pytest.mark.req("CONV-07")
async def test_enqueued_messages_are_answered_one_after_another(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says("To one.", "To two.", "To three.")
    model.hold()

    sent = [
        await engine.agents.send("support", text, user="ann", session_id="web-1") for text in ("One.", "Two.", "Three.")
    ]
    model.release()
    events = await ended(engine, sent[-1])

    assert [event.text for event in of(events, "answer")] == ["To one.", "To two.", "To three."]
    assert [event.run_id for event in of(events, "done")] == [each.run_id for each in sent]


@pytest.mark.req("CONV-07")
async def test_a_busy_agent_rejects_a_message_and_nothing_of_it_is_said(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.hold()
    sent = await engine.agents.send("support", "One.", user="ann", session_id="web-1")

    with pytest.raises(Busy, match="still answering an earlier message") as refused:
        await engine.agents.send("support", "Two.", user="ann", session_id="web-1", busy="reject")

    model.release()
    await ended(engine, sent)
    assert refused.value.details["run_id"] == str(sent.run_id)
    assert [node.content for node in await nodes(engine, sent.conversation)] == ["One.", "Done."]


@pytest.mark.req("CONV-07", "AGENT-01")
async def test_an_interrupted_answer_stays_as_far_as_it_was_said(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says({"text": "one two three", "chunks": 3}, "As you wish.")
    model.hold(after=1)
    first = await engine.agents.send("support", "Count!", user="ann", session_id="web-1")
    queued = await engine.agents.send("support", "Or not.", user="ann", session_id="web-1")
    async with engine.agents.watch(first.conversation, "support") as events:
        async with asyncio.timeout(10):
            async for event in events:
                if event.kind == "token":
                    break

    second = await engine.agents.send("support", "Stop!", user="ann", session_id="web-1", busy="interrupt")
    await reached(engine, first.run_id, "cancelled")
    model.release()
    seen = await ended(engine, second)

    assert [event.text for event in of(seen, "answer")] == ["one t", "As you wish."]
    assert {event.run_id: event.state for event in of(seen, "done")} == {
        first.run_id: "cancelled", queued.run_id: "cancelled", second.run_id: "done",
    }  # fmt: skip


@pytest.mark.req("CONV-07", "CONV-08")
async def test_a_message_to_a_busy_agent_can_be_answered_in_a_copy(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    await told(engine, "support", "Hello!", user="ann", session_id="web-1")
    model.hold()
    first = await engine.agents.send("support", "One.", user="ann", session_id="web-1")

    second = await engine.agents.send("support", "Two.", user="ann", session_id="web-1", busy="fork")
    model.release()
    events = [await ended(engine, sent) for sent in (first, second)]

    assert second.conversation != first.conversation
    assert [node.content for node in await nodes(engine, second.conversation)] == [
        "Hello!", "Done.", "One.", "Two.", "Done.",
    ]  # fmt: skip
    assert [node.content for node in await nodes(engine, first.conversation)] == ["Hello!", "Done.", "One.", "Done."]
    assert all(each[-1].state == "done" for each in events)


@pytest.mark.req("AGENT-04")
async def test_runs_are_listed_newest_first_page_by_page(quiet: Engine) -> None:
    for number in range(5):
        await quiet.agents.send("support", f"{number}", user="ann" if number % 2 else "bob", session_id=f"s{number}")

    first = await quiet.agents.runs.list(limit=3)
    rest = await quiet.agents.runs.list(limit=3, cursor=first.cursor)
    anns = await quiet.agents.runs.list(user="ann")

    ids = [run.id for run in (*first, *rest)]
    assert len(ids) == 5 == len(set(ids))
    assert ids == sorted(ids, reverse=True)
    assert {run.user for run in anns} == {"ann"}
    assert rest.cursor is None


@pytest.mark.req("AGENT-01", "STM-05")
async def test_messages_that_cannot_be_answered_are_refused_plainly(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)

    for empty in ("", "  \n"):
        with pytest.raises(InvalidInput, match="the message is empty"):
            await engine.agents.send("support", empty, user="ann")
    with pytest.raises(TooLarge, match="the message is too large"):
        await engine.agents.send("support", "x" * 1_000_001, user="ann")
    with pytest.raises(NotFound, match="there is no agent 'nobody'"):
        await engine.agents.send("nobody", "Hello!", user="ann")
    with pytest.raises(NotFound, match="there is no run"):
        await engine.agents.cancel(uuid7())
    with pytest.raises(NotFound, match="there is no run"):
        await engine.agents.retry(uuid7())
    with pytest.raises(InvalidInput, match="there is no policy"):
        await engine.agents.send("support", "Hello!", user="ann", busy="shrug")  # pyright: ignore[reportArgumentType]
    large = await told(engine, "support", "x" * 1_000_000, user="ann")
    assert answer(large) == "Done."
