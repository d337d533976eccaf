"""A turn: thought, action, observation, answer; within its limits; stopped, failed and tried again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import App
from holdfast.agents import Limits
from holdfast.agents.journal import Journal
from holdfast.conversations.notes import Operation
from holdfast.core.errors import DatabaseAway, InvalidInput
from holdfast.llm import ModelRequest
from tests.agents.stage import Player, Stage, answer, calls, ended, kinds, nodes, of, reached, told, until


@pytest.mark.req("AGENT-01")
async def test_a_turn_is_told_as_thought_action_observation_and_answer(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says(calls(("track", {"parcel": "AB-1"}), text="Let me look."), {"text": "It is in Cologne.", "chunks": 4})

    events = await told(engine, "support", "Where is AB-1?", user="ann", session_id="web-1")

    assert kinds(events) == ["token", "thought", "action", "observation", "token", "answer", "done"]
    thought, action, observation, said, done = (event for event in events if event.kind != "token")
    assert (thought.text, thought.author) == ("Let me look.", "support")
    assert (action.tool, action.arguments) == ("track", {"parcel": "AB-1"})
    assert (observation.tool, observation.text, observation.failed) == (
        "track", '{"parcel":"AB-1","where":"Cologne"}', False,
    )  # fmt: skip
    assert observation.call_id == action.call_id
    assert said.text == "It is in Cologne." == "".join(token.text for token in of(events, "token")[1:])
    assert (done.state, done.node_id) == ("done", said.node_id)
    assert done.usage is not None
    assert done.usage["steps"] == 2
    assert done.usage["input_tokens"] > 0
    assert len({event.cursor for event in events}) == len(events)


@pytest.mark.req("AGENT-01", "AGENT-04")
async def test_calls_of_one_reply_run_side_by_side_and_each_is_recorded(stage: Stage, model: Player) -> None:
    app, met = App(), asyncio.Barrier(3)

    @app.tool
    async def meet(name: str) -> str:
        """Wait for the others."""
        await met.wait()
        return f"{name} met the others"

    app.agent("support", tools=[meet])
    engine = await stage.serve(app)
    model.says(calls(*(("meet", {"name": name}) for name in ("ann", "bob", "cyd"))))

    events = await told(engine, "support", "Meet!", user="ann")

    run = await engine.agents.runs.get(events[-1].run_id or pytest.fail("no run"))
    executions = await engine.database.all(
        "select tool, input_params, status, output_result, latency_ms, finished_at from tool_executions "
        "where tenant_id = $1 and run_id = $2 order by input_params ->> 'name'",
        run.id,
    )
    assert [event.text for event in of(events, "observation")] == [
        "ann met the others", "bob met the others", "cyd met the others",
    ]  # fmt: skip
    assert [(row["tool"], row["status"], row["input_params"]["name"]) for row in executions] == [
        ("meet", "done", "ann"), ("meet", "done", "bob"), ("meet", "done", "cyd"),
    ]  # fmt: skip
    assert all(row["latency_ms"] is not None and row["finished_at"] is not None for row in executions)
    assert (run.state, run.answer, run.steps, run.model) == ("done", events[-1].node_id, 2, "scripted")


@pytest.mark.req("AGENT-04", "TALK-05")
async def test_a_run_is_linked_to_the_nodes_it_was_asked_by_and_made(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says(calls(("track", {"parcel": "AB-1"})), "In Cologne.")

    events = await told(engine, "support", "Where is AB-1?", user="ann")

    run = await engine.agents.runs.get(events[-1].run_id or pytest.fail("no run"))
    asked, called, found, said = await nodes(engine, run.conversation)
    assert (run.trigger, run.answer, run.user) == (asked.id, said.id, "ann")
    assert [node.context for node in (asked, called, found, said)] == [
        "text:user:ann", "text:agent:support", "text:agent:tool", "text:agent:support",
    ]  # fmt: skip
    assert {(node.payload or {}).get("run") for node in (called, found, said)} == {str(run.id)}
    assert [each.id for each in await engine.agents.runs.list(conversation=run.conversation)] == [run.id]


@pytest.mark.req("AGENT-02")
async def test_what_the_model_was_sent_is_kept_with_the_reason_for_each_part(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.serve(app)
    await engine.notes.edit(user="ann", agent="support", operation="append", content="Ann likes short answers.")
    model.says(calls(("track", {"parcel": "AB-1"})), "In Cologne.")

    events = await told(engine, "support", "Where is AB-1?", user="ann", session_id="web-1")

    first, second = await engine.agents.steps(events[-1].run_id or pytest.fail("no run"))
    parts = {part["name"]: part for part in first.sent["parts"]}
    assert list(parts) == ["instructions", "skills", "tools", "notes", "summary", "memories", "window"]
    assert all(part["reason"] for part in parts.values())
    assert parts["notes"]["kept"] == 1
    assert [message["role"] for message in first.sent["messages"]] == ["system", "user"]
    assert "Ann likes short answers." in first.sent["messages"][0]["content"]
    assert [message["role"] for message in second.sent["messages"]] == ["system", "user", "assistant", "tool"]
    assert first.reply is not None
    assert first.reply.calls[0].name == "track"
    assert second.reply is not None
    assert second.reply.text == "In Cologne."
    assert [message.content for message in model.requests[1].messages] == [
        message["content"] for message in second.sent["messages"]
    ]


@pytest.mark.req("AGENT-01")
@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(steps=3), "took 3 steps without an answer"),
        (Limits(tokens=2500), "would take more than 2500 tokens"),
        (Limits(seconds=0.2), "took longer than 0.2 seconds"),
        (Limits(cost=0.002), "may cost 0.002"),
    ],
)
async def test_a_run_that_does_not_end_is_ended_by_its_limits(
    stage: Stage, model: Player, limits: Limits, why: str
) -> None:
    app = App()

    @app.tool
    async def again() -> str:
        """Do it again."""
        if limits.seconds:
            await asyncio.Event().wait()
        return "again"

    app.agent("support", tools=[again], limits=limits)
    engine = await stage.serve(app, llm_prices=("scripted=1/1",))
    usage = {"input_tokens": 800, "output_tokens": 100}
    model.says(*(calls(("again", {}), usage=usage) for _ in range(20)))

    events = await told(engine, "support", "Go!", user="ann", session_id="web-1")
    model.says()
    after = await told(engine, "support", "Hello?", user="ann", session_id="web-1")

    assert (events[-1].kind, events[-1].state) == ("error", "failed")
    assert why in events[-1].text
    assert events[-1].error is not None
    assert events[-1].error["code"] == "limit_reached"
    assert len(model.requests) < 20
    assert after[-1].kind in ("done", "error")


@pytest.mark.req("AGENT-01")
async def test_a_cancelled_run_keeps_what_it_had_said(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says({"text": "one two three four", "chunks": 4})
    model.hold(after=2)
    sent = await engine.agents.send("support", "Count!", user="ann", session_id="web-1")

    async with engine.agents.watch(sent.conversation, "support") as events:
        before = await until(events, lambda event: event.text == "wo th")
        await engine.agents.cancel(sent.run_id)
        after = await until(events, lambda event: event.kind == "done")
    model.release()
    next = await told(engine, "support", "Go on.", user="ann", session_id="web-1")

    said = "".join(event.text for event in of(before, "token"))
    assert kinds(after) == ["answer", "done"]
    assert (after[0].text, after[-1].state) == (said, "cancelled")
    assert answer(next) == "Done."
    assert [message.content for message in model.requests[-1].messages if message.role == "assistant"] == [said]


@pytest.mark.req("AGENT-01")
async def test_cancelled_while_a_tool_runs_nothing_is_said_twice(stage: Stage, model: Player) -> None:
    app, begun = App(), asyncio.Event()

    @app.tool
    async def dig() -> str:
        """Dig for ever."""
        begun.set()
        await asyncio.Event().wait()
        return "gold"

    app.agent("support", tools=[dig])
    engine = await stage.serve(app)
    model.says(calls(("dig", {}), text="I dig."))
    sent = await engine.agents.send("support", "Dig!", user="ann", session_id="web-1")
    async with asyncio.timeout(10):
        await begun.wait()

    await engine.agents.cancel(sent.run_id)
    run = await reached(engine, sent.run_id, "cancelled")
    next = await told(engine, "support", "And?", user="ann", session_id="web-1")

    said = [node.content for node in await nodes(engine, sent.conversation) if node.context == "text:agent:support"]
    assert said == ["I dig.", "Done."]
    assert run.answer is None
    assert answer(next) == "Done."


@pytest.mark.req("AGENT-01")
async def test_a_queued_run_can_be_cancelled(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.hold()
    first = await engine.agents.send("support", "First.", user="ann", session_id="web-1")
    second = await engine.agents.send("support", "Second.", user="ann", session_id="web-1")

    await engine.agents.cancel(second.run_id)
    model.release()
    events = await ended(engine, first)

    assert (await engine.agents.runs.get(second.run_id)).state == "cancelled"
    assert [event.state for event in of(events, "done")][-1] == "done"
    assert len(model.requests) == 1


@pytest.mark.req("AGENT-01")
async def test_cancelling_a_run_that_has_ended_changes_nothing(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)
    events = await told(engine, "support", "Hello!", user="ann")
    run_id = events[-1].run_id or pytest.fail("no run")

    await engine.agents.cancel(run_id)

    assert (await engine.agents.runs.get(run_id)).state == "done"


@pytest.mark.req("AGENT-01", "AGENT-03")
async def test_a_model_that_is_down_fails_the_run_and_a_retry_answers(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app, llm_attempts=1)
    model.says({"fail": {"status": 503, "message": "out of order"}})
    events = await told(engine, "support", "Where is it?", user="ann", session_id="web-1")
    failed = events[-1].run_id or pytest.fail("no run")

    other = await told(engine, "support", "Anybody?", user="ann", session_id="web-1")
    retried = await engine.agents.retry(failed)
    again = await ended(engine, retried)

    assert events[-1].kind == "error"
    assert "returned 503" in events[-1].text
    assert "out of order" in events[-1].text
    assert events[-1].error is not None
    assert events[-1].error["code"] == "model_failed"
    assert answer(other) == "Done."
    assert (retried.retry_of, retried.attempt) == (failed, 2)
    assert again[-1].state == "done"
    with pytest.raises(InvalidInput, match="cannot be retried"):
        await engine.agents.retry(failed)
    with pytest.raises(InvalidInput, match="cannot be retried"):
        await engine.agents.retry(retried.id)


@pytest.mark.req("AGENT-01")
async def test_an_answer_that_breaks_off_begins_anew_for_those_who_watch(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says({"text": "It broke off here", "chunks": 4, "fail": {"after": 2}}, {"text": "All is well.", "chunks": 2})

    events = await told(engine, "support", "Well?", user="ann")

    tokens = of(events, "token")
    last = max(place for place, token in enumerate(tokens) if token.reset)
    assert "".join(token.text for token in tokens[:last]) == "It broke o"
    assert "".join(token.text for token in tokens[last:]) == "All is well." == answer(events)


@pytest.mark.req("AGENT-01")
async def test_a_tool_that_fails_is_an_observation_that_the_model_reads(stage: Stage, model: Player) -> None:
    app = App()

    @app.tool
    async def pay() -> str:
        """Pay."""
        raise RuntimeError("no money at postgres://root:hunter2@db/bank")

    app.agent("support", tools=[pay])
    engine = await stage.serve(app)
    model.says(calls(("pay", {})), "I could not.")

    events = await told(engine, "support", "Pay!", user="ann")

    [seen] = of(events, "observation")
    assert seen.failed
    assert "no money" in seen.text
    assert "hunter2" not in seen.text
    assert model.requests[1].messages[-1].content == seen.text
    assert answer(events) == "I could not."


@pytest.mark.req("TALK-05")
async def test_a_line_that_runs_a_command_is_a_call(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says("Let me look.\n# Run track AB-1", "In Cologne.")

    events = await told(engine, "support", "Where is AB-1?", user="ann")

    said = kinds(event for event in events if event.kind != "token")
    assert said == ["thought", "action", "observation", "answer", "done"]
    assert (of(events, "action")[0].tool, of(events, "action")[0].arguments) == ("track", {"parcel": "AB-1"})
    assert "Cologne" in of(events, "observation")[0].text


@pytest.mark.req("NOTE-02")
@pytest.mark.parametrize("operation", ["append", "overwrite"])
async def test_an_agent_keeps_notes_about_its_user_and_sees_them_at_the_next_turn(
    stage: Stage, app: App, model: Player, operation: Operation
) -> None:
    engine = await stage.serve(app)
    model.says(
        calls(("manage_long_term_memory", {"operation": operation, "content": "# Ann\nShort answers."})), "Noted."
    )
    await told(engine, "support", "Be brief with me.", user="ann")

    await told(engine, "support", "Hello!", user="ann")

    assert "Short answers." in (await engine.notes.read(user="ann", agent="support")).notes
    assert "Short answers." in model.requests[-1].messages[0].content


@pytest.mark.req("AGENT-02")
async def test_what_was_said_is_recalled_in_another_session_and_greetings_are_not(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.serve(app)
    await told(engine, "support", "I am allergic to peanuts.", user="ann", session_id="web-1")
    await told(engine, "support", "Hello there!", user="ann", session_id="web-1")

    events = await told(engine, "support", "Which snacks without peanuts are there?", user="ann", session_id="web-2")

    system = model.requests[-1].messages[0].content
    [step] = await engine.agents.steps(events[-1].run_id or pytest.fail("no run"))
    recalled: list[Any] = next(part for part in step.sent["parts"] if part["name"] == "memories")["refs"]["memories"]
    assert "allergic to peanuts" in system
    assert "Hello there" not in system
    assert {memory["scope"] for memory in recalled if not memory["left_out"]} == {"user"}


@pytest.mark.req("AGENT-02")
async def test_an_agent_without_memory_remembers_nothing_and_has_no_tools_for_it(stage: Stage, model: Player) -> None:
    app = App()
    app.agent("support", memory=False)
    engine = await stage.serve(app)
    await told(engine, "support", "I am allergic to peanuts.", user="ann", session_id="web-1")

    await told(engine, "support", "Do I like peanuts?", user="ann", session_id="web-2")

    found = await engine.memory.context("peanuts", session="web-1", user="ann", agent="support")
    assert found == []
    assert "peanuts" not in model.requests[-1].messages[0].content
    assert not model.requests[-1].tools


@pytest.mark.req("AGENT-02")
async def test_what_leaves_the_window_is_summed_up_and_the_talk_goes_on(stage: Stage, model: Player) -> None:
    app = App()
    app.agent("support", memory=False)
    engine = await stage.serve(app, llm_context_tokens=2000, llm_max_output_tokens=500)

    def plays(request: ModelRequest) -> str:
        asked = "You keep the summary" in request.messages[0].content
        return "Ann told of her holidays." if asked else "I see. " * 40

    model.says(*[plays] * 40)
    for number in range(8):
        await told(engine, "support", f"Day {number}. " + "The sea was warm. " * 20, user="ann", session_id="web-1")

    events = await told(engine, "support", "Where was I?", user="ann", session_id="web-1")

    talk = await engine.conversations.find(session_id="web-1")
    assert talk is not None
    summaries = [node for node in await nodes(engine, talk.id) if node.context == "summary:agent:support"]
    shown = model.requests[-1].messages
    asking = next(request for request in reversed(model.requests) if "summary" not in request.messages[0].content[:30])
    assert summaries
    assert all(node.content == "Ann told of her holidays." for node in summaries)
    assert "Ann told of her holidays." in asking.messages[0].content
    assert not any("Day 0." in message.content for message in asking.messages)
    assert events[-1].state == "done"
    assert shown


@pytest.mark.req("AGENT-01", "SAFE-01")
async def test_a_reply_is_kept_through_an_outage_and_counted_once(
    stage: Stage, app: App, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await stage.serve(app)
    model.says({"text": "It is in Cologne.", "usage": {"input_tokens": 100, "output_tokens": 7}})
    written, unheard = dict[str, int](), {"append": 1, "keep_reply": 2}

    def away(name: str, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def writes(journal: Journal, *args: Any, **options: Any) -> Any:
            stored = await write(journal, *args, **options)
            written[name] = written.get(name, 0) + 1
            if written[name] <= unheard[name]:
                raise DatabaseAway("the connection was lost before the answer came")
            return stored

        return writes

    monkeypatch.setattr(Journal, "append", away("append", Journal.append))
    monkeypatch.setattr(Journal, "keep_reply", away("keep_reply", Journal.keep_reply))

    events = await told(engine, "support", "Where is AB-1?", user="ann")

    assert (answer(events), len(model.requests)) == ("It is in Cologne.", 1)
    assert written == {"append": 2, "keep_reply": 3}
    run = await engine.agents.runs.get(events[-1].run_id or pytest.fail("no run"))
    assert (run.state, run.input_tokens, run.output_tokens) == ("done", 100, 7)
