"""Runs that end before their tools do, and what is known of those afterwards; runs that the database interrupts."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast import App
from holdfast.agents import Limits
from holdfast.agents.journal import CallOutcome, Journal, StartedCalls, StepReply
from holdfast.conversations import NodeInput
from holdfast.core.errors import Broken, HoldfastError, TimedOut, Unavailable
from holdfast.engine import Engine
from tests.agents.stage import PATIENCE, Player, Stage, answer, calls, ended, kinds, nodes, of, reached, told

EXECUTIONS = "select call_id, tool, status, error from tool_executions where tenant_id = $1 order by created_at, tool"


class Till:
    """What was paid back; the first time it takes for ever."""

    def __init__(self) -> None:
        self.refunds: list[str] = []
        self.begun = asyncio.Event()

    async def refund(self, order: str) -> str:
        """Pay money back."""
        self.refunds.append(order)
        self.begun.set()
        if len(self.refunds) == 1:
            await asyncio.Event().wait()
        return f"refunded {order}"


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def shop(till: Till) -> App:
    """A program with a tool that must not run twice, and one that is done at once."""
    app = App()

    async def look(order: str) -> str:
        """Look at an order."""
        return f"{order} was paid"

    app.agent("support", tools=[till.refund, look], limits=Limits(seconds=1))
    return app


async def statuses(engine: Engine) -> list[tuple[str, str]]:
    return [(row["tool"], row["status"]) for row in await engine.database.all(EXECUTIONS)]


@pytest.mark.req("AGENT-01", "EXEC-05")
async def test_a_run_that_ends_before_its_tools_says_what_they_gave_and_what_is_not_known(
    stage: Stage, shop: App, model: Player
) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"order": "7"}), ("look", {"order": "7"})), "Let me see.")

    events = await told(engine, "support", "Give it back!", user="ann", session_id="web-1")
    await told(engine, "support", "And?", user="ann", session_id="web-1")

    seen = {event.tool: event for event in of(events, "observation")}
    assert kinds(events) == ["action", "observation", "error"] or kinds(events)[-2:] == ["observation", "error"]
    assert (seen["refund"].failed, seen["look"].failed) == (True, False)
    assert "not known whether this call took effect" in seen["refund"].text
    assert seen["look"].text == "7 was paid"
    assert sorted(await statuses(engine)) == [("look", "done"), ("refund", "unknown")]
    shown = [message.content for message in model.requests[-1].messages if message.role == "tool"]
    assert shown == [seen["refund"].text, seen["look"].text]


@pytest.mark.req("AGENT-01", "EXEC-05")
async def test_who_watches_a_run_that_is_cancelled_in_a_tool_sees_what_is_not_known(
    stage: Stage, shop: App, till: Till, model: Player
) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"order": "7"})))
    sent = await engine.agents.send("support", "Give it back!", user="ann")
    async with asyncio.timeout(PATIENCE):
        await till.begun.wait()

    await engine.agents.cancel(sent.run_id)
    events = await ended(engine, sent)

    assert kinds(events) == ["message", "action", "observation", "done"]
    assert events[-2].failed
    assert await statuses(engine) == [("refund", "unknown")]


@pytest.mark.req("EXEC-05", "AGENT-05")
@pytest.mark.parametrize("approve", [True, False])
async def test_a_retry_asks_before_it_repeats_what_may_have_been_done(
    stage: Stage, shop: App, till: Till, model: Player, approve: bool
) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"order": "7"})))
    failed = await told(engine, "support", "Give it back!", user="ann")
    model.says(calls(("refund", {"order": "7"})), "Well.")

    retried = await engine.agents.retry(failed[-1].run_id or pytest.fail("no run"))
    await reached(engine, retried.id, "waiting")
    [approval] = await engine.agents.approvals.pending()
    before = list(till.refunds)
    await engine.agents.decide(approval.id, approve=approve, by="boss")
    events = await ended(engine, retried)

    assert (approval.tool, approval.reason) == ("refund", "unknown")
    assert before == ["7"]
    assert till.refunds == ["7", "7"] if approve else ["7"]
    assert answer(events) == "Well."


@pytest.mark.req("EXEC-05")
async def test_a_retry_repeats_nothing_of_which_the_outcome_is_known(stage: Stage, till: Till, model: Player) -> None:
    app = App()
    app.agent("support", tools=[till.refund])
    engine = await stage.serve(app, llm_attempts=1)
    till.refunds.append("another")
    model.says(calls(("refund", {"order": "7"})), {"fail": {"status": 503}})
    failed = await told(engine, "support", "Give it back!", user="ann")
    model.says("It is done.")

    retried = await engine.agents.retry(failed[-1].run_id or pytest.fail("no run"))
    events = await ended(engine, retried)

    assert answer(events) == "It is done."
    assert model.requests[-1].messages[-1].content == "refunded 7"


@pytest.mark.req("AGENT-01", "ENG-02")
@pytest.mark.parametrize(
    "trouble",
    [
        TimedOut("the database took too long"),
        Unavailable("the database has no free connections", sqlstate="53300"),
        Unavailable("the database is read-only", sqlstate="25006"),
    ],
)
async def test_trouble_of_the_database_delays_a_turn_and_does_not_fail_it(
    stage: Stage, app: App, model: Player, monkeypatch: pytest.MonkeyPatch, trouble: HoldfastError
) -> None:
    stored, failed = Journal.append, False

    async def once(journal: Journal, drafts: Sequence[NodeInput], **more: Any) -> Any:
        nonlocal failed
        if not failed:
            failed = True
            raise trouble
        return await stored(journal, drafts, **more)

    monkeypatch.setattr(Journal, "append", once)
    engine = await stage.serve(app, agents_lease=1)
    model.says("It is noon.")

    events = await told(engine, "support", "What time is it?", user="ann")

    assert (answer(events), events[-1].state) == ("It is noon.", "done")
    assert len(model.requests) == 1


@pytest.mark.req("SAFE-02")
async def test_what_a_database_says_of_a_defect_is_for_the_log(
    stage: Stage, app: App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(*_: object, **__: object) -> None:
        raise Broken("the database rejected a statement", why='column "secret_salary" is broken')

    monkeypatch.setattr(Journal, "append", breaks)
    engine = await stage.serve(app)

    events = await told(engine, "support", "Hello!", user="ann")

    run = await engine.agents.runs.get(events[-1].run_id or pytest.fail("no run"))
    assert events[-1].kind == "error"
    assert "secret_salary" not in str((events, run.error))
    assert str(run.id) in events[-1].text
    assert "secret_salary" in caplog.text


@pytest.mark.req("AGENT-01", "AGENT-04")
async def test_a_step_with_one_call_stores_reply_begin_and_outcome_with_what_it_says(
    stage: Stage, app: App, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, written = Journal.append, list[tuple[int | None, bool, bool]]()

    async def noted(
        journal: Journal,
        drafts: Sequence[NodeInput],
        *,
        replied: StepReply | None = None,
        begun: StartedCalls | None = None,
        ended: CallOutcome | None = None,
    ) -> Any:
        written.append((replied and replied.step, bool(begun and begun.calls), ended is not None))
        return await stored(journal, drafts, replied=replied, begun=begun, ended=ended)

    monkeypatch.setattr(Journal, "append", noted)
    engine = await stage.serve(app)
    model.says(calls(("track", {"parcel": "AB-1"})), "In Cologne.")

    await told(engine, "support", "Where is it?", user="ann")

    assert written == [(1, True, False), (None, False, True), (2, False, False)]
    assert await statuses(engine) == [("track", "done")]


@pytest.mark.req("AGENT-01", "EXEC-02")
async def test_what_a_tool_says_of_its_failure_may_be_any_text(stage: Stage, model: Player) -> None:
    app = App()

    @app.tool
    async def crack() -> str:
        """Crack."""
        raise RuntimeError("a\0b")

    app.agent("support", tools=[crack])
    engine = await stage.serve(app)
    model.says(calls(("crack", {})), "It cracked.")

    events = await told(engine, "support", "Crack!", user="ann")

    past = await engine.agents.past(events[-1].run_id or pytest.fail("no run"))
    assert answer(events) == "It cracked."
    assert [execution.error for execution in past.executions] == ["RuntimeError: a\0b"]


@pytest.mark.req("AGENT-01", "EXEC-02")
async def test_arguments_that_could_not_be_kept_are_refused_for_the_model_to_read(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.serve(app)
    deep = '{"parcel": ' + "[" * 126 + "]" * 126 + "}"
    model.says({"calls": [{"name": "track", "arguments": deep}]}, "I see.")

    events = await told(engine, "support", "Where is it?", user="ann")

    [seen] = of(events, "observation")
    assert "nested too deep" in seen.text
    assert answer(events) == "I see."
    assert len(await nodes(engine, (await engine.agents.runs.list())[0].conversation)) == 4
