"""Approvals: a turn pauses durably until a person has decided, and goes on anywhere."""

import asyncio
from typing import Any

import pytest

from holdfast import App
from holdfast.agents import Approval, Sent, broadcast
from holdfast.core.errors import Conflict, NotFound
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from tests.agents.stage import PATIENCE, Player, Stage, answer, calls, ended, kinds, of, reached, told


class Bank:
    """What was paid back."""

    def __init__(self) -> None:
        self.refunds: list[str] = []


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def shop(bank: Bank) -> App:
    """A program whose agent asks before it pays money back."""
    app = App()

    @app.tool
    async def refund(order: str) -> str:
        """Pay money back."""
        bank.refunds.append(order)
        return f"refunded {order}"

    @app.tool
    async def look(order: str) -> str:
        """Look at an order."""
        return f"{order} was paid"

    app.agent("support", tools=[refund, look], approve=["refund"])
    return app


async def asked(engine: Engine, sent: Sent) -> list[Approval]:
    """What a run waits for."""
    await reached(engine, sent.run_id, "waiting")
    return await engine.agents.approvals.pending()


@pytest.mark.req("AGENT-05")
async def test_a_call_on_the_list_waits_for_a_person_and_is_made_when_allowed(
    stage: Stage, shop: App, bank: Bank, model: Player
) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"order": "7"}), text="I pay it back."), "You have it back.")
    sent = await engine.agents.send("support", "Give it back!", user="ann", session_id="web-1")
    [approval] = await asked(engine, sent)
    before = list(bank.refunds)

    decided = await engine.agents.decide(approval.id, approve=True, by="boss")
    events = await ended(engine, sent)

    assert (approval.tool, approval.arguments, approval.user, approval.reason) == (
        "refund", {"order": "7"}, "ann", "listed",
    )  # fmt: skip
    assert before == []
    assert bank.refunds == ["7"]
    assert (decided.state, decided.decided_by) == ("approved", "boss")
    assert [event.decision for event in of(events, "decision")] == ["approved"]
    assert answer(events) == "You have it back."
    assert len(model.requests) == 2


@pytest.mark.req("AGENT-05")
async def test_those_who_watch_are_asked_and_told_what_was_decided(stage: Stage, shop: App, model: Player) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"order": "7"}), text="I pay it back."), "You have it back.")
    seen: list[Any] = []

    async with asyncio.timeout(PATIENCE):
        async for event in engine.agents.run("support", user="ann", message="Give it back!"):
            seen.append(event)
            if event.approval_id is not None and event.kind == "approval":
                await engine.agents.decide(event.approval_id, approve=True, by="ann")

    assert kinds(event for event in seen if event.kind != "token") == [
        "thought", "action", "approval", "decision", "observation", "answer", "done",
    ]  # fmt: skip


@pytest.mark.req("AGENT-05", "WS-02")
async def test_a_decision_of_another_process_is_told_before_what_follows_from_it(
    stage: Stage, shop: App, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "POLL", 3600)  # nobody reads the row of the decision in time
    engine, other = await stage.serve(shop), await stage.open()
    model.says(calls(("refund", {"order": "7"}), text="I pay it back."), "I may not.")
    seen: list[Any] = []

    async with asyncio.timeout(PATIENCE):
        async for event in engine.agents.run("support", user="ann", message="Give it back!"):
            seen.append(event)
            if event.approval_id is not None and event.kind == "approval":
                await other.agents.decide(event.approval_id, approve=False, by="ann")

    assert kinds(event for event in seen if event.kind != "token") == [
        "thought", "action", "approval", "decision", "observation", "answer", "done",
    ]  # fmt: skip


@pytest.mark.req("AGENT-05")
async def test_a_denied_call_is_not_made_and_the_model_reads_why(
    stage: Stage, shop: App, bank: Bank, model: Player
) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"order": "7"})), "I may not.")
    sent = await engine.agents.send("support", "Give it back!", user="ann")
    [approval] = await asked(engine, sent)

    await engine.agents.decide(approval.id, approve=False, by="boss", comment="Too late.\0")
    events = await ended(engine, sent)

    [seen] = of(events, "observation")
    assert bank.refunds == []
    assert seen.failed
    assert seen.text.endswith("They said: Too late.\0")
    assert model.requests[-1].messages[-1].content == seen.text
    assert answer(events) == "I may not."


@pytest.mark.req("AGENT-05")
async def test_a_step_with_two_listed_calls_goes_on_when_both_are_decided(
    stage: Stage, shop: App, bank: Bank, model: Player
) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"order": "7"}), ("look", {"order": "7"}), ("refund", {"order": "8"})))
    sent = await engine.agents.send("support", "Give both back!", user="ann")
    first, second = await asked(engine, sent)

    await engine.agents.decide(second.id, approve=False, by="boss")
    still = await engine.agents.runs.get(sent.run_id)
    await engine.agents.decide(first.id, approve=True, by="boss")
    events = await ended(engine, sent)

    assert still.state == "waiting"
    assert bank.refunds == ["7"]
    assert [(event.tool, event.failed) for event in of(events, "observation")] == [
        ("refund", False), ("look", False), ("refund", True),
    ]  # fmt: skip


@pytest.mark.req("AGENT-05")
async def test_a_decision_can_be_repeated_and_not_reversed(stage: Stage, shop: App, model: Player) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"order": "7"})))
    sent = await engine.agents.send("support", "Give it back!", user="ann")
    [approval] = await asked(engine, sent)
    await engine.agents.decide(approval.id, approve=True, by="boss")

    again = await engine.agents.decide(approval.id, approve=True, by="ann")

    assert (again.state, again.decided_by) == ("approved", "boss")
    with pytest.raises(Conflict, match="it is already approved"):
        await engine.agents.decide(approval.id, approve=False, by="boss")
    with pytest.raises(NotFound, match="there is no approval"):
        await engine.agents.decide(uuid7(), approve=True, by="boss")


@pytest.mark.req("AGENT-05", "AGENT-01")
async def test_a_cancelled_run_withdraws_what_it_asked(stage: Stage, shop: App, bank: Bank, model: Player) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"order": "7"})), "Hello again.")
    sent = await engine.agents.send("support", "Give it back!", user="ann", session_id="web-1")
    [approval] = await asked(engine, sent)

    await engine.agents.cancel(sent.run_id)
    events = await ended(engine, sent)
    next = await told(engine, "support", "Hello?", user="ann", session_id="web-1")

    assert events[-1].state == "cancelled"
    assert (await engine.agents.approvals.get(approval.id)).state == "withdrawn"
    assert await engine.agents.approvals.pending() == []
    with pytest.raises(Conflict, match="it is already withdrawn"):
        await engine.agents.decide(approval.id, approve=True, by="boss")
    assert bank.refunds == []
    assert answer(next) == "Hello again."


@pytest.mark.req("AGENT-05", "STM-06")
async def test_a_run_that_waits_goes_on_in_another_process(stage: Stage, shop: App, bank: Bank, model: Player) -> None:
    first, second = await stage.open(), await stage.open()
    model.says(calls(("refund", {"order": "7"})), "You have it back.")
    async with first.serving(shop):
        sent = await first.agents.send("support", "Give it back!", user="ann")
        [approval] = await asked(first, sent)

    await first.agents.decide(approval.id, approve=True, by="boss")
    await stage.serving(second, shop)
    events = await ended(second, sent)

    assert bank.refunds == ["7"]
    assert answer(events) == "You have it back."
    assert len(model.requests) == 2


@pytest.mark.req("AGENT-05")
async def test_a_tool_may_itself_ask_for_approval(stage: Stage, model: Player) -> None:
    app = App()

    @app.tool(approve=True)
    async def launch() -> str:
        """Launch it."""
        return "launched"

    app.agent("support", tools=[launch])
    engine = await stage.serve(app)
    model.says(calls(("launch", {})))
    sent = await engine.agents.send("support", "Go!", user="ann")

    [approval] = await asked(engine, sent)
    await engine.agents.decide(approval.id, approve=True, by="boss")
    events = await ended(engine, sent)

    assert [event.text for event in of(events, "observation")] == ["launched"]
