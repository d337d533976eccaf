"""Budgets and usage of the models that agents call."""

import asyncio
from typing import Any

import pytest

from holdfast import App
from holdfast.engine import Engine
from tests.agents.stage import PATIENCE, Player, Stage, calls, reached, told

pytestmark = pytest.mark.req("AGENT-10")

USAGE = {"input_tokens": 800, "output_tokens": 100}


async def served(stage: Stage, app: App, *limits: str, **settings: Any) -> Engine:
    """An engine that serves the app, with limits."""
    return await stage.serve(app, quotas_limits=limits, llm_prices=("scripted=1000/1000",), **settings)


async def test_a_run_whose_budget_is_spent_fails_once_and_the_next_user_s_does_not(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await served(stage, app, "each user: 1500 tokens per day")
    model.says(*({"text": "Hello.", "usage": USAGE} for _ in range(3)))
    first = [await told(engine, "support", "Hello?", user="ann") for _ in range(2)]

    (*_, last) = await told(engine, "support", "Hello?", user="ann")
    (*_, of_bob) = await told(engine, "support", "Hello?", user="bob")

    assert [events[-1].kind for events in first] == ["done", "done"]
    assert (last.kind, last.state) == ("error", "failed")
    assert last.error is not None
    assert last.error["code"] == "budget_spent"
    assert "the budget of user ann is spent" in last.text
    assert of_bob.kind == "done"
    assert len(model.requests) == 3


async def test_cost_counts_to_the_budgets_of_agent_and_tenant(stage: Stage, app: App, model: Player) -> None:
    engine = await served(stage, app, "agent support: 0.5 cost per month", "tenant: 5 cost per month")
    model.says({"text": "Hello.", "usage": USAGE})
    await told(engine, "support", "Hello?", user="ann")

    (*_, last) = await told(engine, "support", "Hello?", user="bob")

    assert last.error is not None
    assert "the budget of agent support is spent" in last.text
    usage = {each.subject: each.used for each in await engine.quotas.usage(most=10)}
    assert usage == {"agent support": pytest.approx(0.9), "tenant": pytest.approx(0.9)}


async def test_usage_is_counted_by_day_user_agent_and_model(stage: Stage, app: App, model: Player) -> None:
    engine = await served(stage, app)
    model.says(calls(("track", {"parcel": "A"}), usage=USAGE), {"text": "Cologne.", "usage": USAGE})
    await told(engine, "support", "Where?", user="ann")

    (usage,) = await engine.quotas.model_usage(days=1, most=10)

    assert (usage.user, usage.agent, usage.model, usage.calls) == ("ann", "support", "scripted", 2)
    assert (usage.input_tokens, usage.output_tokens, usage.cost) == (1600, 200, pytest.approx(1.8))
    assert usage.day == (await engine.database.now()).date()


async def test_a_cancelled_answer_counts_by_its_estimate(stage: Stage, app: App, model: Player) -> None:
    engine = await served(stage, app, "tenant: 100000 tokens per day")
    model.says({"text": "one two three four", "chunks": 4})
    model.hold(after=2)
    sent = await engine.agents.send("support", "Count.", user="ann")
    async with asyncio.timeout(PATIENCE):
        while not (usage := await engine.quotas.usage(most=1)):  # noqa: ASYNC110 - the rows alone know
            await asyncio.sleep(0.01)
    reserved = usage[0].reserved

    await engine.agents.cancel(sent.run_id)
    await reached(engine, sent.run_id, "cancelled")

    (settled,) = await engine.quotas.usage(most=1)
    assert reserved > 1000
    assert (settled.used, settled.reserved) == (reserved, 0)


async def test_a_model_that_does_not_answer_costs_nothing(stage: Stage, app: App, model: Player) -> None:
    engine = await served(stage, app, "tenant: 100000 tokens per day", llm_attempts=1)
    model.says({"text": "", "fail": {"after": 0, "status": 400}})

    (*_, last) = await told(engine, "support", "Hello?", user="ann")

    assert last.error is not None
    assert last.error["code"] == "model_failed"
    assert await engine.quotas.usage(most=1) == []


@pytest.mark.req("MCP-07")
async def test_a_model_reads_that_a_limit_of_a_tool_is_reached(stage: Stage, app: App, model: Player) -> None:
    engine = await served(stage, app, "each user of tool track: 1 requests per hour")
    model.says(calls(("track", {"parcel": "A"})), calls(("track", {"parcel": "B"})), {"text": "Later."})

    events = await told(engine, "support", "Where?", user="ann")

    first, second = (event for event in events if event.kind == "observation")
    assert (first.failed, second.failed) == (False, True)
    assert second.text.startswith("track was not called: the limit of user ann of tool track is reached")
    assert "Try again in" in second.text
    assert events[-1].kind == "done"
