"""Processes die in the middle of a tool that must not run twice: a person decides, and nothing repeats."""

from pathlib import Path

import pytest

from holdfast.core.errors import Conflict
from holdfast.core.settings import ExecutionSettings
from holdfast.engine import Engine
from holdfast.execution.sweeper import ExecutionSweeper
from tests.acceptance.clerks import ANSWER, PAY, SHORT, WHOLE, Clerks, ask, happened, heard, watched
from tests.processes import Process

pytestmark = [pytest.mark.acceptance, pytest.mark.req("EXEC-05", "EDA-06")]

EXECUTION = """
select e.status, e.error, t.name from tool_executions e join tool_t t on t.host_id = $1 and t.tool_id = e.tool_id
where e.tenant_id = $1
"""
LAPSE = "update tool_executions set leased_until = holdfast.now() where tenant_id = $1 and status = 'running'"
ASKED = (*WHOLE[:3], "approval", "decision", *WHOLE[3:])


@pytest.fixture
def hold(tmp_path: Path) -> Path:
    """As long as it is there, tools do not end."""
    hold = tmp_path / "hold"
    hold.touch()
    return hold


async def start(clerks: Clerks, part: str, says: str) -> Process:
    """A process of the till; what dies is missed soon."""
    leases = {"HOLDFAST_AGENTS__LEASE": str(SHORT), "HOLDFAST_BUS__COMMAND_LEASE": "2"}
    process = clerks.run("till.py", part, **leases)
    await heard(process, says)
    return process


@pytest.mark.parametrize("approve", [True, False])
async def test_a_worker_is_killed_in_the_middle_of_a_tool_and_a_person_is_asked(
    engine: Engine, clerks: Clerks, hold: Path, approve: bool
) -> None:
    await start(clerks, "serve", "serves")
    worker = await start(clerks, "work", "works")
    sent = await ask(engine, PAY)

    async with watched(engine, sent) as watcher:
        await heard(worker, "pay begins")
        worker.kill()
        hold.unlink()
        await start(clerks, "work", "works")
        asked = await watcher.until("approval", "done", "error")
        execution, before = await engine.database.one(EXECUTION), list(clerks.used)
        assert asked.approval_id is not None
        await engine.agents.decide(asked.approval_id, approve=approve, by="bob", comment="Look.")
        seen = await watcher.until("observation", "done", "error")
        await watcher.until("done", "error")

    keys = [line.split()[1] for line in clerks.lines("used")]
    assert execution is not None
    assert (execution["status"], execution["name"], before) == ("unknown", "pay", ["pay"])
    assert (asked.tool, asked.reason, asked.arguments) == ("pay", "unknown", {"bill": "7"})
    assert (len(keys), len(set(keys))) == ((2, 2) if approve else (1, 1)), "what is allowed again is another call"
    assert ('{"pay":"7"}' if approve else "They said: Look.") in seen.text
    assert happened(watcher.seen) == list(ASKED)


async def test_a_worker_goes_on_when_the_agents_process_is_killed_and_nobody_is_asked(
    engine: Engine, clerks: Clerks, hold: Path
) -> None:
    agents = await start(clerks, "serve", "serves")
    worker = await start(clerks, "work", "works")
    sent = await ask(engine, PAY)

    async with watched(engine, sent) as watcher:
        await heard(worker, "pay begins")
        agents.kill()
        await start(clerks, "serve", "serves")
        hold.unlink()
        await watcher.until("done", "error", "approval")

    execution = await engine.database.one(EXECUTION)
    assert execution is not None
    assert (execution["status"], clerks.used) == ("done", ["pay"])
    assert happened(watcher.seen) == list(WHOLE)
    assert next(event.text for event in watcher.seen if event.kind == "answer") == ANSWER


async def test_a_direct_call_whose_process_is_killed_is_unknown_until_a_person_decides(
    engine: Engine, clerks: Clerks, hold: Path
) -> None:
    calling = await start(clerks, "call", "settle begins")
    calling.kill()
    sweeper = ExecutionSweeper(engine.postgres, ExecutionSettings())

    early = await sweeper.lapse()
    await engine.database.run(LAPSE)  # as if its time were over
    lapsed = await sweeper.lapse()
    (unknown,) = await engine.executions.list(tool="settle")
    with pytest.raises(Conflict, match="Have a person decide"):
        await engine.executions.call("settle", {"bill": "7"}, user="ann", key="bill-7")
    decided = await engine.executions.decide(unknown.id, "done", by="bob", comment="The bank says so.")
    again = await engine.executions.call("settle", {"bill": "7"}, user="ann", key="bill-7")

    assert (early, lapsed, unknown.status, unknown.user) == (0, 1, "unknown", "ann")
    assert (again, decided.status, clerks.used) == (decided, "done", ["settle"])
    assert decided.text == "bob found out that it took effect: The bank says so."
