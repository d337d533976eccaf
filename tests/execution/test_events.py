"""Calls that workers make: one command per call, whoever waits for it, and none that is made twice."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import App
from holdfast.bus import Command
from holdfast.bus.command_events import MAX_NAME
from holdfast.bus.workers import Worker
from holdfast.core.config import Config
from holdfast.core.ids import uuid7
from holdfast.engine import Engine, open_engine
from holdfast.execution.outcomes import UNKNOWN, Outcome
from holdfast.execution.worker_runner import correlation_id
from holdfast.skills.run import Run, current_run
from holdfast.skills.tool import Tool
from tests.execution.house import House, alone, in_turn

pytestmark = pytest.mark.req("EDA-06", "EXEC-05")

PATIENCE = 30
BEGIN = """
insert into tool_executions (tenant_id, id, tool, status, correlation_id) values ($1, $2, 'pay', 'running', $3)
"""
CORRELATION = "select correlation_id from tool_executions where tenant_id = $1 and id = $2"
LAPSE = "update command set leased_until = holdfast.now() where tenant_id = $1 and correlation_id = $2"


class Job:
    """A tool that says when it begins, and ends when it is let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Queue[Run]()
        self.go_on = asyncio.Event()
        self.stopped = asyncio.Event()

    async def pay(self, bill: str) -> str:
        """Pay a bill."""
        self.begun.put_nowait(current_run())
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return f"{bill} is paid"

    async def began(self) -> Run:
        """The next call that begins."""
        async with asyncio.timeout(PATIENCE):
            return await self.begun.get()


async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@pytest.fixture
def job() -> Job:
    """A job that nobody has begun."""
    return Job()


@pytest.fixture
def house(engine: Engine) -> House:
    """Who calls."""
    return House(engine)


@pytest.fixture
async def elsewhere(config: Config, house: House) -> AsyncIterator[House]:
    """Who works, as another process would."""
    async with open_engine(config=config) as other:
        found = House(other)
        found.functions = house.functions
        yield found


@pytest.fixture
async def tool(house: House, job: Job) -> Tool:
    """A tool that must not run twice."""
    return await house.put(job.pay, mode="event")


@pytest.fixture
async def worker(elsewhere: House, tool: Tool) -> AsyncIterator[Worker]:
    """A worker that serves it."""
    async with elsewhere.worker() as worker:
        yield worker


def begin(house: House, tool: Tool, run: Run) -> "asyncio.Task[Outcome]":
    """Call it; nobody waits yet."""
    return asyncio.create_task(house.run(tool, {"bill": "7"}, run=run, timeout=PATIENCE))


async def finished(engine: Engine, id: str) -> Command:
    """A command, once it has ended."""
    async with asyncio.timeout(PATIENCE):
        while (command := await engine.commands.get(id)).finished_at is None:  # noqa: ASYNC110 - rows tell
            await asyncio.sleep(0.01)
    return command


async def test_a_worker_knows_for_whom_it_runs_a_tool(house: House, worker: Worker, tool: Tool, job: Job) -> None:
    job.go_on.set()
    run = in_turn("support")

    outcome = await begin(house, tool, run)

    assert (outcome.status, outcome.text) == ("done", "7 is paid")
    assert await job.began() == run
    assert (await house.engine.commands.get(run.key)).max_attempts == 1


async def test_who_goes_on_with_a_turn_waits_for_the_same_command(
    house: House, worker: Worker, tool: Tool, job: Job
) -> None:
    run = in_turn()
    first = begin(house, tool, run)
    await job.began()

    first.cancel()  # its process is told to end
    await asyncio.wait([first])
    second = begin(house, tool, run)
    job.go_on.set()
    outcome = await second

    assert (outcome.text, job.begun.qsize(), job.stopped.is_set()) == ("7 is paid", 0, False)


async def test_a_command_that_was_answered_meanwhile_is_not_done_again(
    house: House, worker: Worker, tool: Tool, job: Job
) -> None:
    job.go_on.set()
    run = in_turn()
    outcomes = [await begin(house, tool, run) for _ in range(3)]

    assert {outcome.text for outcome in outcomes} == {"7 is paid"}
    assert job.begun.qsize() == 1


async def test_a_turn_that_is_stopped_stops_the_worker(house: House, worker: Worker, tool: Tool, job: Job) -> None:
    run = in_turn()
    calling = begin(house, tool, run)
    await job.began()

    await house.executor.cancel(run.key)
    outcome = await calling

    assert (await finished(house.engine, run.key)).state == "cancelled"
    assert (outcome.status, "was cancelled" in outcome.text) == ("failed", True)
    async with asyncio.timeout(PATIENCE):
        await job.stopped.wait()


async def test_a_call_whose_worker_is_lost_is_unknown_and_not_made_again(
    house: House, worker: Worker, tool: Tool, job: Job
) -> None:
    run = alone()
    calling = begin(house, tool, run)
    await job.began()

    await house.engine.database.run(LAPSE, run.key)
    await worker.sweep()
    outcome = await calling

    assert (outcome.status, outcome.text) == ("unknown", UNKNOWN)
    assert job.begun.qsize() == 0
    assert (await house.engine.commands.get(run.key)).state == "failed"
    assert await house.engine.dead_letters.list() == [], "which could be driven again"


async def test_a_call_that_may_be_repeated_is_made_again_when_its_worker_is_lost(
    house: House, elsewhere: House, job: Job
) -> None:
    tool = await house.put(job.pay, mode="event", idempotent=True)
    async with elsewhere.worker() as worker:
        run = alone()
        calling = begin(house, tool, run)
        first = await job.began()
        await house.engine.database.run(LAPSE, run.key)
        await worker.sweep()
        second = await job.began()
        job.go_on.set()
        outcome = await calling

    assert outcome.text == "7 is paid"
    assert first.key == second.key == run.key
    assert (await house.engine.commands.get(f"{run.key}#2")).state == "done"


async def test_a_large_result_of_a_second_try_is_found(house: House, elsewhere: House, job: Job) -> None:
    async def much(bill: str) -> str:
        """Give much."""
        return await job.pay(bill) * 200_000

    await house.put(much, mode="event", idempotent=True)
    async with elsewhere.worker() as worker:
        calling = asyncio.create_task(house.executions.call("much", {"bill": "7"}))
        run = await job.began()
        await house.engine.database.run(LAPSE, run.key)
        await worker.sweep()
        await job.began()
        job.go_on.set()
        execution = await calling

    assert execution.status == "done"
    assert await house.executions.output(execution.id) == ("text/plain; charset=utf-8", b"7 is paid" * 200_000)


async def test_a_worker_that_is_told_to_stop_gives_no_call_to_another_that_must_not_run_twice(
    house: House, elsewhere: House, tool: Tool, job: Job
) -> None:
    async with elsewhere.worker():
        calling = begin(house, tool, alone())
        await job.began()
    async with elsewhere.worker():
        outcome = await calling

    assert (outcome.status, job.begun.qsize()) == ("unknown", 0)


async def test_a_call_that_nobody_took_in_time_was_not_made(house: House, tool: Tool, job: Job) -> None:
    run = alone()

    outcome = await house.run(tool, {"bill": "7"}, run=run, timeout=0.2)

    assert outcome.status == "failed"
    assert "no worker started it within its timeout of 0.2 seconds" in outcome.text
    assert (await house.engine.commands.get(run.key)).state == "cancelled"


async def test_a_call_that_was_begun_with_other_arguments_has_the_time_that_it_has(
    house: House, worker: Worker, tool: Tool, job: Job
) -> None:
    run = in_turn()
    first = begin(house, tool, run)
    await job.began()

    outcome = await house.run(tool, {"bill": "8"}, run=run, timeout=0.2)
    await first

    assert (outcome.status, "its timeout of 0.2 seconds" in outcome.text) == ("failed", True)
    assert (await house.engine.commands.get(run.key)).state == "cancelled"


async def test_what_can_run_here_does_when_no_worker_begins_it(
    house: House, tool: Tool, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.worker_runner.PATIENCE", 0.2)
    job.go_on.set()
    house.declare()
    execution = uuid7()
    run = Run("ann", None, None, None, None, str(execution), f"execution:{execution}")
    await house.engine.database.run(BEGIN, execution, run.key)

    outcome = await house.run(replace(tool, mode=None), {"bill": "7"}, run=run, mode="event")

    command, worker = (
        await house.engine.commands.get(run.key),
        await house.engine.database.value(CORRELATION, execution),
    )
    assert (outcome.text, job.begun.qsize()) == ("7 is paid", 1)
    assert (command.state, command.started_at, worker) == ("cancelled", None, None)


async def test_what_is_too_large_for_a_worker_runs_here_where_it_can(house: House, elsewhere: House) -> None:
    async def count(text: str) -> int:
        """Count."""
        return len(text)

    tool = await house.put(count, mode="event")
    async with elsewhere.worker():
        free = await house.run(replace(tool, mode=None), {"text": "x" * 1_200_000}, mode="event")
        bound = await house.run(tool, {"text": "x" * 1_200_000})

    assert (free.status, free.result) == ("done", 1_200_000)
    assert (bound.status, "too large" in bound.text) == ("failed", True)


async def test_a_skill_of_a_program_that_fails_is_an_answer_and_no_dead_letter(house: House) -> None:
    app, attempts = App(), 0

    @app.skill("translate")
    async def translate(text: str) -> str:
        nonlocal attempts
        attempts += 1
        raise ValueError(f"{text} is no word")

    tool = Tool("translate", "Translates.", {"type": "object"}, mode="event")
    async with house.engine.worker(app):
        outcome = await house.run(tool, {"text": "xyz"})

    assert (outcome.status, outcome.text) == ("failed", "translate failed: ValueError: xyz is no word")
    assert attempts == 1
    assert await house.engine.dead_letters.list() == []


async def test_what_a_program_gives_under_its_own_skill_is_the_result(house: House) -> None:
    app = App()

    @app.skill("translate")
    async def translate(text: str) -> dict[str, str]:
        return {"text": text.upper(), "holdfast": "result", "aside": "no"}

    tool = Tool("translate", "Translates.", {"type": "object"}, mode="event")
    async with house.engine.worker(app):
        outcome = await house.run(tool, {"text": "xyz"})

    assert (outcome.status, outcome.result) == ("done", {"text": "XYZ", "holdfast": "result", "aside": "no"})


async def test_whoever_invokes_a_tool_as_a_command_gets_its_result_and_is_checked(
    house: House, worker: Worker, tool: Tool, job: Job
) -> None:
    job.go_on.set()

    result = await house.engine.commands.invoke("pay", {"bill": "8"}, timeout=PATIENCE)
    refused = await house.engine.commands.submit("pay", {"bill": 8})

    assert result == "8 is paid"
    command = await finished(house.engine, refused)
    assert (command.state, "pay was not called" in (command.error or "")) == ("failed", True)


async def test_a_worker_serves_tools_that_are_registered_while_it_works(
    house: House, elsewhere: House, worker: Worker, job: Job
) -> None:
    job.go_on.set()

    later = await house.put(job.pay, mode="event", name="pay_later")
    outcome = await begin(house, later, alone())

    assert outcome.text == "7 is paid"


async def test_a_worker_serves_functions_that_its_settings_name(house: House, config: Config) -> None:
    tool = await house.put(double, mode="event")
    async with open_engine(config=config) as other, House(other, modules=[__name__]).worker():
        outcome = await house.run(tool, {"number": 4})

    assert (outcome.status, outcome.result) == ("done", 8)


async def test_a_worker_says_what_it_serves_as_long_as_it_is_there(house: House, elsewhere: House, tool: Tool) -> None:
    async with elsewhere.worker():
        await house.present("pay")
        present = await house.presence.serves("pay")
    left = await house.engine.database.value("select count(*) from worker_presence where tenant_id = $1")

    assert (present, left) == (True, 0)


@given(st.text(min_size=1, max_size=400))
def test_every_key_has_a_correlation_id_of_its_own(key: str) -> None:
    id = correlation_id(key)

    assert 0 < len(f"{id}#3") <= MAX_NAME
    assert correlation_id(id) == id
    assert (id == key) == (len(key) <= MAX_NAME - 10)
    assert correlation_id(f"{key}x") != id
