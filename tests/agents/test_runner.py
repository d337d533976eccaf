"""Processes that do runs: they keep what they hold, take what others left, and never do too much at once."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast import App
from holdfast.agents import Agent, AgentRun
from holdfast.agents.runner import AgentRunner
from holdfast.agents.runs import FinishedRun, Runs
from holdfast.core.shares import Shares
from holdfast.engine import Engine
from holdfast.llm import ModelRequest
from holdfast.llm.scripted import Given
from tests.agents.stage import PATIENCE, Player, Stage, answer, calls, ended, of, reached


class Work:
    """Tools that wait until they are let go, and know how many of them run."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun = asyncio.Semaphore(0)
        self.now = self.most = self.times = 0

    def app(self, *, idempotent: bool = True) -> App:
        """A program whose agent works."""
        app = App()

        @app.tool(idempotent=idempotent)
        async def work() -> str:
            """Work."""
            self.times += 1
            self.now += 1
            self.most = max(self.most, self.now)
            self.begun.release()
            try:
                await self.open.wait()
            finally:
                self.now -= 1
            return "worked"

        app.agent("support", tools=[work], memory=False)
        return app


@pytest.fixture
def work() -> Work:
    return Work()


async def begun(work: Work, times: int = 1) -> None:
    async with asyncio.timeout(PATIENCE):
        for _ in range(times):
            await work.begun.acquire()


@pytest.mark.req("STM-06", "AGENT-01")
async def test_a_run_whose_process_died_is_taken_up_when_its_lease_is_over(stage: Stage, app: App) -> None:
    engine = await stage.open()
    async with engine.serving(app):
        pass
    sent = await engine.agents.send("support", "Hello!", user="ann")
    [held] = await engine.agents.runs.take(["support"], holder="dead", lease=timedelta(seconds=0.5), most=1)

    await stage.serving(engine, app)
    events = await ended(engine, sent)

    run = await engine.agents.runs.get(sent.run_id)
    assert answer(events) == "Done."
    assert (run.claims, run.token) == (2, held.token + 1)


@pytest.mark.req("STM-06", "AGENT-01")
async def test_what_a_stopping_process_gives_back_goes_on_elsewhere_without_repeating_a_paid_reply(
    stage: Stage, model: Player, work: Work
) -> None:
    first, second = await stage.open(agents_lease=600), await stage.open(agents_lease=600)
    model.says(calls(("work", {}), text="I work."), "Done it.")
    async with first.serving(work.app()):
        sent = await first.agents.send("support", "Work!", user="ann")
        await begun(work)

    await stage.serving(second, work.app())
    await begun(work)
    work.open.set()
    events = await ended(second, sent)

    assert [event.text for event in of(events, "thought")] == ["I work."]
    assert [event.text for event in of(events, "observation")] == ["worked"]
    assert answer(events) == "Done it."
    assert len(model.requests) == 2
    assert (await second.agents.runs.get(sent.run_id)).claims == 2


@pytest.mark.req("AGENT-01", "AGENT-05")
@pytest.mark.parametrize("again", [True, False])
async def test_a_tool_that_must_not_run_twice_is_asked_about_when_its_process_stopped(
    stage: Stage, model: Player, work: Work, again: bool
) -> None:
    first, second = await stage.open(), await stage.open()
    model.says(calls(("work", {})), "So it is.")
    app = work.app(idempotent=False)
    async with first.serving(app):
        sent = await first.agents.send("support", "Work!", user="ann")
        await begun(work)
    work.open.set()

    await stage.serving(second, app)
    await reached(second, sent.run_id, "waiting")
    [approval] = await second.agents.approvals.pending()
    before = work.times
    await second.agents.decide(approval.id, approve=again, by="boss")
    events = await ended(second, sent)

    [seen] = of(events, "observation")
    assert (approval.reason, before) == ("unknown", 1)
    assert work.times == (2 if again else 1)
    assert seen.text == "worked" if again else "not known whether this call took effect" in seen.text
    assert answer(events) == "So it is."


@pytest.mark.req("STM-06", "AGENT-01")
async def test_a_tool_that_takes_longer_than_the_lease_is_not_run_twice(
    stage: Stage, model: Player, work: Work
) -> None:
    app = work.app()
    lease = 2.0  # longer than a busy machine stalls
    first, second = await stage.serve(app, agents_lease=lease), await stage.serve(app, agents_lease=lease)
    model.says(calls(("work", {})))
    sent = await first.agents.send("support", "Work!", user="ann")
    await begun(work)
    held = "select leased_until from runs where tenant_id = $1 and id = $2"
    began = await first.database.value(held, sent.run_id)

    async with asyncio.timeout(PATIENCE):
        while await first.database.value(held, sent.run_id) < began + timedelta(seconds=lease):  # noqa: ASYNC110 - leases
            await asyncio.sleep(0.05)
    work.open.set()
    events = await ended(second, sent)

    assert work.times == 1
    assert (await second.agents.runs.get(sent.run_id)).claims == 1
    assert answer(events) == "Done."


@pytest.mark.req("AGENT-01")
async def test_a_process_does_no_more_runs_at_once_than_it_may(stage: Stage, model: Player, work: Work) -> None:
    engine = await stage.serve(work.app(), agents_concurrency=2)

    def plays(request: ModelRequest) -> Given:
        return calls(("work", {})) if request.messages[-1].role == "user" else "Done."

    model.says(*[plays] * 12)

    sent = [await engine.agents.send("support", "Work!", user="ann", session_id=f"s{number}") for number in range(6)]
    await begun(work, 2)
    work.open.set()
    events = [await ended(engine, each) for each in sent]

    assert [answer(each) for each in events] == ["Done."] * 6
    assert work.most == 2


@pytest.mark.req("STM-06", "AGENT-01")
async def test_a_run_can_be_cancelled_from_a_process_that_does_not_do_it(
    stage: Stage, model: Player, work: Work
) -> None:
    _, other = await stage.serve(work.app()), await stage.open()
    model.says(calls(("work", {})))
    sent = await other.agents.send("support", "Work!", user="ann")
    await begun(work)

    await other.agents.cancel(sent.run_id)
    events = await ended(other, sent)

    assert (events[-1].kind, events[-1].state) == ("done", "cancelled")
    assert work.now == 0


class Gate(Runs):
    """Runs that are taken when the gate is opened; the first `failures` calls of each method break."""

    def __init__(self, engine: Engine, *, failures: int = 0) -> None:
        super().__init__(engine.database)
        self.open = asyncio.Event()
        self.asked = asyncio.Semaphore(0)
        self._failures: dict[str, int] = {"take": failures, "stop_requests": failures}

    def _pass(self, method: str) -> None:
        if self._failures[method]:
            self._failures[method] -= 1
            raise ValueError(f"{method} broke")

    async def take(self, *args: Any, **options: Any) -> list[AgentRun]:
        """Take runs, when it is open."""
        self.asked.release()
        await self.open.wait()
        self._pass("take")
        return await super().take(*args, **options)

    async def stop_requests(self, held: Sequence[AgentRun]) -> dict[UUID, str | None]:
        """What runs are asked to do."""
        self._pass("stop_requests")
        return await super().stop_requests(held)


class Doing:
    """Does runs until it is told that they have ended."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.begun: asyncio.Queue[AgentRun] = asyncio.Queue()
        self.open = asyncio.Event()

    async def do(self, agent: Agent, run: AgentRun) -> FinishedRun | None:
        """Do a run."""
        self.begun.put_nowait(run)
        await self.open.wait()
        return await self._runs.finish(run, "done")

    async def end_stopped(self, agent: Agent, run: AgentRun) -> FinishedRun:
        """End a run that somebody stopped."""
        return await self._runs.finish(run, "cancelled")


NAMES = ("one", "two", "three")


def runner_of(engine: Engine, runs: Runs, doing: Doing, **options: Any) -> AgentRunner:
    """A runner of agents that only wait."""
    places = Shares("turns", options.pop("concurrency", 100), setting="agents.concurrency")
    given: dict[str, Any] = {"lease": 600, "places": places, **options}
    runner = AgentRunner(engine.database, runs, engine.postgres.listen, doing, **given)
    for name in NAMES:
        runner.serve(Agent(name))
    return runner


@pytest.fixture
async def quiet(words_only: Engine) -> Engine:
    """An engine in which agents are defined, and nobody serves them."""
    await words_only.definitions.declare([Agent(name) for name in NAMES])
    return words_only


@pytest.mark.req("AGENT-01")
async def test_mailboxes_that_take_at_once_share_the_room_that_there_is(quiet: Engine) -> None:
    gate = Gate(quiet)
    doing = Doing(gate)
    sent = [await quiet.agents.send(name, "Work!", user="ann") for name in NAMES]
    runner = runner_of(quiet, gate, doing, concurrency=2)

    async with asyncio.timeout(PATIENCE):
        taking = [
            asyncio.create_task(runner.take(Agent(name), [each.node_id]))
            for name, each in zip(NAMES, sent, strict=True)
        ]
        for _ in NAMES:
            await gate.asked.acquire()
        gate.open.set()
        await asyncio.gather(*taking)
        running = runner.running
        async with runner:  # and what there was no room for is done when there is
            doing.open.set()
            done = [await reached(quiet, each.run_id, "done") for each in sent]

    assert running == 2
    assert len(done) == 3


@pytest.mark.req("STM-06", "AGENT-01")
async def test_a_run_that_is_taken_as_its_mailbox_closes_is_done(quiet: Engine) -> None:
    gate = Gate(quiet)
    doing = Doing(gate)
    sent = await quiet.agents.send("one", "Work!", user="ann")
    doing.open.set()
    runner = runner_of(quiet, gate, doing)
    taking = asyncio.create_task(runner.take(Agent("one"), [sent.node_id]))
    await gate.asked.acquire()

    taking.cancel()
    await asyncio.wait([taking])
    gate.open.set()

    assert (await reached(quiet, sent.run_id, "done")).claims == 1


@pytest.mark.req("STM-06", "AGENT-01")
async def test_a_run_that_is_taken_as_its_agent_leaves_is_free_for_others(quiet: Engine) -> None:
    gate = Gate(quiet)
    sent = await quiet.agents.send("one", "Work!", user="ann")
    runner = runner_of(quiet, gate, Doing(gate))

    async with asyncio.timeout(PATIENCE), runner:
        await gate.asked.acquire()
        runner.leave("one")
        gate.open.set()
        await gate.asked.acquire()  # it looks again when it has given back
        [run] = await quiet.agents.runs.take(["one"], holder="another", lease=timedelta(seconds=600), most=1)

    assert run.id == sent.run_id


@pytest.mark.req("STM-06", "AGENT-01")
async def test_a_run_that_is_taken_as_its_process_leaves_is_free_for_others(quiet: Engine) -> None:
    gate = Gate(quiet)
    sent = await quiet.agents.send("one", "Work!", user="ann")

    async with asyncio.timeout(PATIENCE), runner_of(quiet, gate, Doing(gate)):
        await gate.asked.acquire()
        asyncio.get_running_loop().call_soon(gate.open.set)  # when it is leaving

    [run] = await quiet.agents.runs.take(["one"], holder="another", lease=timedelta(seconds=600), most=1)
    assert (run.id, run.claims) == (sent.run_id, 2)


@pytest.mark.req("CONV-07", "AGENT-01")
async def test_the_next_run_of_a_conversation_is_begun_by_whoever_ended_the_one_before(quiet: Engine) -> None:
    gate = Gate(quiet)
    gate.open.set()
    doing = Doing(gate)
    first = await quiet.agents.send("one", "One.", user="ann", session_id="web-1")
    second = await quiet.agents.send("one", "Two.", user="ann", session_id="web-1")
    runner = runner_of(quiet, gate, doing, concurrency=1)

    async with asyncio.timeout(PATIENCE):
        await runner.take(Agent("one"), [first.node_id])  # and nothing else looks for runs
        doing.open.set()
        done = await reached(quiet, second.run_id, "done")

    assert done.claims == 1


@pytest.mark.req("STM-06", "AGENT-01")
async def test_runs_are_taken_kept_and_stopped_though_each_broke_before(
    quiet: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(quiet, failures=1)
    gate.open.set()
    doing = Doing(gate)
    sent = await quiet.agents.send("one", "Work!", user="ann")

    async with asyncio.timeout(PATIENCE), runner_of(quiet, gate, doing, lease=3):
        await doing.begun.get()
        await quiet.agents.cancel(sent.run_id)
        run = await reached(quiet, sent.run_id, "cancelled")

    assert run.claims == 1
    assert "take broke" in caplog.text
    assert "stop_requests broke" in caplog.text
