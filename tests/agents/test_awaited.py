"""Calls that workers make for a turn: who goes on with it waits for them, and whoever stops it stops them."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holdfast import App, current_run
from holdfast.agents.acting import RUN, Decision, Wanted, decide, is_awaited, key_of
from holdfast.agents.definitions import Limits
from holdfast.agents.journal import Asked, Execution, Past
from holdfast.core.ids import uuid7
from holdfast.skills.function import tool_of
from tests.agents.stage import PATIENCE, Stage, calls, of, reached, told

CALL = Wanted("c1", "pay", {"bill": "7"})
ID = uuid7()


async def pay(bill: str) -> str:
    """Pay a bill."""
    return f"{bill} is paid"


def begun(status: Any, correlation_id: str | None, *, token: int = 1) -> Execution:
    return Execution(uuid7(), 1, "c1", "pay", {"bill": "7"}, status, token, None, None, correlation_id=correlation_id)


def decided(*past: Execution | Asked, token: int = 2, approve: bool = False) -> Decision:
    return decide(CALL, tool_of(pay, approve=approve), step=1, token=token, listed=(), past=past_of(*past))


def past_of(*past: Execution | Asked) -> Past:
    executions = [each for each in past if isinstance(each, Execution)]
    return Past(executions=executions, asked=[each for each in past if isinstance(each, Asked)])


@pytest.mark.req("EXEC-05", "EDA-06")
def test_a_call_that_a_worker_has_is_waited_for_and_nobody_is_asked() -> None:
    running = begun("running", "key")

    assert is_awaited(running)
    assert decided(running) == decided(running, approve=True) == RUN
    assert key_of(CALL, run=ID, step=1, past=past_of(running)) == "key"
    assert decided(begun("running", None)) == Decision(ask="unknown")


@pytest.mark.req("EXEC-05")
@pytest.mark.parametrize("correlation_id", ["key", None])
def test_a_call_that_is_unknown_is_asked_about_on_the_spot(correlation_id: str | None) -> None:
    unknown = begun("unknown", correlation_id, token=2)

    assert decided(unknown) == Decision(ask="unknown")
    assert decided(unknown, Asked(1, "c1", "unknown", "approved", None)) == RUN
    assert decided(unknown, Asked(1, "c1", "unknown", "denied", None)).told is not None
    assert decided(unknown, Asked(1, "c1", "unknown", "approved", None, used=True)) == Decision(ask="unknown")


@pytest.mark.req("EXEC-05")
def test_a_call_that_is_allowed_again_is_another_call_each_time() -> None:
    first = Asked(1, "c1", "unknown", "approved", None)
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
    assert f"are kept as the output of the execution {execution.id}]" in of(events, "observation")[0].text
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
