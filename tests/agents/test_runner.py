"""Processes that do runs: they keep what they hold, take what others left, and never do too much at once."""

import asyncio
from datetime import timedelta

import pytest

from holdfast import App
from holdfast.llm import Request
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
    first, second = await stage.serve(app, agents_lease=0.3), await stage.serve(app, agents_lease=0.3)
    model.says(calls(("work", {})))
    sent = await first.agents.send("support", "Work!", user="ann")
    await begun(work)
    held = "select leased_until from runs where tenant_id = $1 and id = $2"
    began = await first.database.value(held, sent.run_id)

    async with asyncio.timeout(PATIENCE):
        while await first.database.value(held, sent.run_id) < began + timedelta(seconds=1):  # noqa: ASYNC110 - leases
            await asyncio.sleep(0.05)
    work.open.set()
    events = await ended(second, sent)

    assert work.times == 1
    assert (await second.agents.runs.get(sent.run_id)).claims == 1
    assert answer(events) == "Done."


@pytest.mark.req("AGENT-01")
async def test_a_process_does_no_more_runs_at_once_than_it_may(stage: Stage, model: Player, work: Work) -> None:
    engine = await stage.serve(work.app(), agents_concurrency=2)

    def plays(request: Request) -> Given:
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
