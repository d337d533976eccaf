"""Runs that ended long ago are deleted, with all that hangs on them; what was said stays."""

from datetime import timedelta

import pytest

from holdfast.agents import Agent, runs
from holdfast.agents.runs import RunSweeper
from holdfast.engine import Engine
from tests.clock import Clock

LEASE = timedelta(days=90)
LEFT = """
select (select count(*) from runs) + (select count(*) from run_step) + (select count(*) from turn_delta)
  + (select count(*) from tool_executions) + (select count(*) from approval)
"""
FILL = """
with ran as (select tenant_id, id, root from runs where id = $1), stepped as (
  insert into run_step (tenant_id, run_id, number, sent) select tenant_id, id, 1, '{}' from ran
), asked as (
  insert into approval (tenant_id, id, run_id, root, step, call_id, tool, reason, state)
  select tenant_id, gen_random_uuid(), id, root, 1, 'call', 'track', 'listed', 'approved' from ran
) insert into tool_executions (tenant_id, id, run_id, step, call_id, tool, status, token)
select tenant_id, gen_random_uuid(), id, 1, 'call', 'track', 'done', 1 from ran
"""


def sweeper_of(engine: Engine, *, days: int = 30, log_days: int = 7) -> RunSweeper:
    settings = engine.config.agents.model_copy(update={"keep_runs_days": days})
    return RunSweeper(engine.postgres, settings, engine.config.bus.model_copy(update={"retention_days": log_days}))


async def left(engine: Engine) -> int:
    """How many rows there are of runs, of all tenants."""
    async with engine.postgres.owner() as owner:
        return await owner.value(LEFT)


async def ended(engine: Engine, session_id: str) -> None:
    """A run that has ended, with a step, an approval, an execution and the event of its end."""
    await engine.definitions.declare([Agent("support")])
    sent = await engine.agents.send("support", "Hello!", user="ann", session_id=session_id)
    [run] = await engine.agents.runs.take(["support"], holder="me", lease=LEASE, most=1)
    await engine.agents.runs.finish(run, "done")
    async with engine.postgres.owner() as owner:
        await owner.run(FILL, sent.run_id)


@pytest.mark.req("AGENT-04")
async def test_runs_that_ended_long_ago_go_with_all_that_hangs_on_them_and_what_was_said_stays(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "TOGETHER", 2)
    await engine.tenants.create("acme")
    for number in range(5):
        await ended(engine, f"web-{number}")
    await ended(engine.tenant("acme"), "web-1")
    before = await left(engine)
    await clock.advance(timedelta(days=31))

    swept = await sweeper_of(engine).sweep()

    talk = await engine.conversations.find(session_id="web-1") or pytest.fail("no session")
    assert (before, swept, await left(engine)) == (6 * 5, 6, 0)
    assert [node.content for node in await engine.conversations.last(talk.id, 10)] == ["Hello!"]


@pytest.mark.req("AGENT-04", "TALK-03")
async def test_runs_are_kept_while_they_are_young_or_not_ended_or_the_log_may_tell_of_them_again(
    engine: Engine, clock: Clock
) -> None:
    await ended(engine, "web-1")
    waiting = await engine.agents.send("support", "Hello!", user="ann", session_id="web-2")
    await clock.advance(timedelta(days=31))
    await ended(engine, "web-3")

    in_the_log = await sweeper_of(engine, log_days=60).sweep()
    old = await sweeper_of(engine).sweep()

    runs = await engine.agents.runs.list()
    assert (in_the_log, old) == (0, 1)
    assert len(runs) == 2
    assert waiting.run_id in {run.id for run in runs}
