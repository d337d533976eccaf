"""Calls that workers make for a turn: who goes on with it waits for them, and whoever stops it stops them."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import App, current_run
from holdfast.agents import Agent
from holdfast.agents.definitions import Limits
from holdfast.agents.journal import (
    CallOutcome,
    Journal,
    RequestedApproval,
    RunExecution,
    RunHistory,
    StartedCall,
    StartedCalls,
    StepReply,
)
from holdfast.agents.tool_calls import RUN, CallDecision, RequestedCall, decide, is_awaited, key_of
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.execution.outputs import Outputs
from holdfast.llm import ModelReply, TokenUsage, ToolCall
from holdfast.skills.function_tools import tool_of
from tests.agents.stage import PATIENCE, Stage, calls, ended, nodes, of, reached, told

CALL = RequestedCall("c1", "pay", {"bill": "7"})
ID = uuid7()
BEGUN = "update command set state = 'running', started_at = holdfast.now() where tenant_id = $1 and correlation_id = $2"


async def pay(bill: str) -> str:
    """Pay a bill."""
    return f"{bill} is paid"


def begun(status: Any, correlation_id: str | None, *, token: int = 1) -> RunExecution:
    return RunExecution(
        uuid7(), 1, "c1", "pay", {"bill": "7"}, status, token, None, None, correlation_id=correlation_id
    )


def decided(*past: RunExecution | RequestedApproval, token: int = 2, approve: bool = False) -> CallDecision:
    return decide(CALL, tool_of(pay, approve=approve), step=1, token=token, listed=(), past=past_of(*past))


def past_of(*past: RunExecution | RequestedApproval) -> RunHistory:
    executions = [each for each in past if isinstance(each, RunExecution)]
    return RunHistory(executions=executions, approvals=[each for each in past if isinstance(each, RequestedApproval)])


@pytest.mark.req("EXEC-05", "EDA-06")
def test_a_call_that_a_worker_has_is_waited_for_and_nobody_is_asked() -> None:
    running = begun("running", "key")

    assert is_awaited(running)
    assert decided(running) == decided(running, approve=True) == RUN
    assert key_of(CALL, run=ID, step=1, past=past_of(running)) == "key"
    assert decided(begun("running", None)) == CallDecision(ask="unknown")


@pytest.mark.req("EXEC-05")
@pytest.mark.parametrize("correlation_id", ["key", None])
def test_a_call_that_is_unknown_is_asked_about_on_the_spot(correlation_id: str | None) -> None:
    unknown = begun("unknown", correlation_id, token=2)

    assert decided(unknown) == CallDecision(ask="unknown")
    assert decided(unknown, RequestedApproval(1, "c1", "unknown", "approved", None)) == RUN
    assert decided(unknown, RequestedApproval(1, "c1", "unknown", "denied", None)).result is not None
    assert decided(unknown, RequestedApproval(1, "c1", "unknown", "approved", None, used=True)) == CallDecision(
        ask="unknown"
    )


@pytest.mark.req("EXEC-05")
def test_a_call_that_is_allowed_again_is_another_call_each_time() -> None:
    first = RequestedApproval(1, "c1", "unknown", "approved", None)
    second = replace(first, id=uuid7())
    others = (replace(first, step=2), replace(first, call_id="c2"), replace(first, state="denied"))
    unknown = begun("unknown", "key")

    keys = [key_of(CALL, run=ID, step=1, past=past_of(unknown, *asked)) for asked in ((), (first,), (second,), others)]

    assert keys[0] == keys[3] == f"{ID}:1:c1"
    assert len(set(keys)) == 3
    assert all(key.startswith(keys[0]) for key in keys)


@pytest.mark.req("EXEC-02", "AGENT-01")
async def test_a_turn_that_is_stopped_stops_the_worker_that_works_for_it(stage: Stage) -> None:
    app, started, stopped = App(), asyncio.Queue[str](), asyncio.Event()

    @app.tool(mode="event")
    async def wait() -> None:
        """Wait."""
        started.put_nowait(current_run().key)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    app.agent("support", tools=[wait])
    stage.model.says(calls(("wait", {})))
    engine = await stage.serve(app)
    async with asyncio.timeout(2 * PATIENCE), engine.worker(app):
        sent = await engine.agents.send("support", "Wait.", user="ann")
        key = await started.get()

        await engine.agents.cancel(sent.run_id)
        await reached(engine, sent.run_id, "cancelled")
        await stopped.wait()

    assert (await engine.commands.get(key)).state == "cancelled"


@pytest.mark.req("EXEC-02")
async def test_what_a_tool_gave_is_kept_whole_and_the_model_reads_where(stage: Stage) -> None:
    app = App()

    @app.tool
    async def much() -> list[str]:
        """Give much."""
        return ["x" * 1000] * 2000

    app.agent("support", tools=[much])
    stage.model.says(calls(("much", {})))
    engine = await stage.serve(app)

    events = await told(engine, "support", "Give me much.", user="ann")

    (execution,) = await engine.executions.list(tool="much")
    kind, whole = await engine.executions.output(execution.id)
    assert (kind, len(whole)) == ("application/json", 2000 * 1003 + 1)
    assert f"are stored as the output of the execution {execution.id}]" in of(events, "observation")[0].text
    assert (execution.run_id, execution.user, execution.agent) == (events[-1].run_id, "ann", "support")


@pytest.mark.req("EXEC-02", "AGENT-01")
async def test_a_turn_whose_time_is_over_stops_the_worker_that_works_for_it(stage: Stage) -> None:
    app, started, stopped = App(), asyncio.Queue[str](), asyncio.Event()

    @app.tool(mode="event")
    async def wait() -> None:
        """Wait."""
        started.put_nowait(current_run().key)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    app.agent("support", tools=[wait], limits=Limits(seconds=6))
    stage.model.says(calls(("wait", {})))
    engine = await stage.serve(app)
    async with asyncio.timeout(2 * PATIENCE), engine.worker(app):
        sent = await engine.agents.send("support", "Wait.", user="ann")
        key = await started.get()
        await reached(engine, sent.run_id, "failed")
        await stopped.wait()

    assert (await engine.commands.get(key)).state == "cancelled"


async def left(engine: Engine, *begun: StartedCall) -> Journal:
    """A run whose process died when it had asked workers to make calls."""
    await engine.definitions.declare([Agent("support")])
    await engine.agents.send("support", "Pay.", user="ann")
    (run,) = await engine.agents.runs.take(["support"], holder="me", lease=timedelta(0), most=1)
    journal = Journal(engine.database, run, announce=print, on_node=print)
    asked = tuple(ToolCall(call.id, call.tool, '{"bill": "7"}') for call in begun)
    reply = ModelReply(text="", calls=asked, usage=TokenUsage(1, 1), reason="tools", model="scripted")
    await journal.keep_reply(StepReply(1, {}, reply, 1, datetime.now(UTC)))
    await journal.append([], begun=StartedCalls(1, begun))
    for call in begun:
        if call.correlation_id is not None:
            await engine.commands.submit(call.tool, call.arguments, correlation_id=call.correlation_id, max_attempts=1)
    return journal


@pytest.mark.req("EXEC-05", "EDA-06")
async def test_a_run_that_nobody_holds_leaves_no_worker_at_work_when_it_is_cancelled(words_only: Engine) -> None:
    engine, bill = words_only, {"bill": "7"}
    waiting, begun = (StartedCall(id, "pay", bill, uuid7(), None, f"key-{id}") for id in ("c1", "c2"))
    run = (await left(engine, waiting, begun)).run
    await engine.database.run(BEGUN, "key-c2")

    await engine.agents.cancel(run.id)

    made = [(await engine.executions.get(each.execution)).status for each in (waiting, begun)]
    assert [(await engine.commands.get(key)).state for key in ("key-c1", "key-c2")] == ["cancelled", "cancelled"]
    assert made == ["failed", "unknown"]
    assert [node.content for node in await nodes(engine, run.conversation)][-3:] == [
        "It was not made: no worker had begun it when its turn ended.",
        "It is not known whether this call took effect: the turn that made it ended meanwhile.",
        "Message 1 was not answered: the turn was stopped.",
    ]


@pytest.mark.req("EXEC-05")
async def test_no_call_of_a_run_that_is_done_is_running(words_only: Engine) -> None:
    call = StartedCall("c1", "pay", {"bill": "7"}, uuid7())
    journal = await left(words_only, call)

    await words_only.agents.runs.finish(journal.run, "done")

    assert (await words_only.executions.get(call.execution)).status == "unknown"


@pytest.mark.req("EXEC-05", "EDA-06")
async def test_a_call_that_a_worker_has_is_waited_for_although_its_tool_went_away(stage: Stage) -> None:
    engine, call = await stage.open(), StartedCall("c1", "pay", {"bill": "7"}, uuid7(), None, "key-c1")
    journal = await left(engine, call)
    work, app = App(), App()
    work.skill("pay")(pay)
    app.agent("support")

    await stage.serving(engine, app)
    async with engine.worker(work):
        await ended(engine, journal.run)

    assert (await engine.executions.get(call.execution)).status == "done"
    assert "7 is paid" in [node.content for node in await nodes(engine, journal.run.conversation)]


@pytest.mark.req("EXEC-02")
async def test_what_a_call_gave_is_its_output_no_more_when_it_is_begun_anew(words_only: Engine) -> None:
    call, awaited = (
        StartedCall(id, "pay", {"bill": "7"}, uuid7(), None, key) for id, key in (("c1", None), ("c2", "key-c2"))
    )
    journal, outputs = await left(words_only, call, awaited), Outputs(words_only.database)
    await journal.end_execution(CallOutcome(1, "c1", "unknown", {"text": ""}, None, 1.0, b"old", "text/plain"))
    await outputs.put_aside("key-c2", b"new", "text/plain")

    await journal.append([], begun=StartedCalls(1, [call, awaited]))

    assert await outputs.of(call.execution) is None
    assert await outputs.of(awaited.execution) == ("text/plain", b"new")
