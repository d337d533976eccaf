"""The budget of research: never exceeded, whatever the model uses, fails or breaks off."""

import asyncio
import random
from typing import Any

import pytest

from holdfast.core.errors import BudgetSpent, InvalidInput
from holdfast.core.settings import LlmSettings
from holdfast.engine import Engine
from holdfast.knowledge.research import Budget
from holdfast.knowledge.research.budget import Division, most_prompt_tokens
from holdfast.knowledge.research.research import report_of
from holdfast.llm.model import ModelRequest, TokenUsage
from holdfast.llm.tokens import ESTIMATE
from tests.knowledge.research.conftest import handbook
from tests.knowledge.research.scholar import Scholar, answer_by_rules, most_of
from tests.knowledge.research.test_research import check_citations
from tests.knowledge.stored import store

QUESTION = "How many windows do the towers of the harbour have?"


@pytest.mark.req("KNOW-04")
@pytest.mark.parametrize("seed", range(12))
async def test_the_budget_is_never_exceeded_by_a_token(engine: Engine, model: Scholar, seed: int) -> None:
    dice = random.Random(seed)
    await store(engine, handbook(80, filler=dice.randint(2, 30)))
    budget = Budget(dice.choice([1, 2, 3, 5, 9, 20, 60]), dice.choice([300, 3_000, 20_000, 60_000, 200_000]))
    greed = dice.choice([0.2, 0.9, 1.0])

    def use(request: ModelRequest) -> tuple[int, int]:
        prompt, output = most_of(request)
        if dice.random() < 0.5:
            return int(prompt * greed), int(output * greed)
        return dice.randint(0, prompt), dice.randint(0, output)

    def say(request: ModelRequest) -> Any:
        if dice.random() < 0.1:
            return {"fail": {"status": 503}}
        if dice.random() < 0.1:
            return {"text": "- It broke off", "chunks": 3, "fail": {"after": 2}}
        return answer_by_rules(request)

    model.usage = use
    model.answers = dict.fromkeys(("plan", "select", "read", "combine", "gaps", "report", "repair"), say)
    started = await engine.research.start(QUESTION, budget=budget, whole=dice.random() < 0.5)
    run = await engine.research.wait(started.id)

    assert model.used <= run.tokens <= budget.tokens
    assert len(model.requests) == run.calls <= budget.calls
    if run.report is not None:
        await check_citations(engine, run.report)
    row = await engine.database.one(
        "select reserved, reserved_cost from research where tenant_id = $1 and id = $2", run.id
    )
    assert row is not None
    assert (row["reserved"], row["reserved_cost"]) == (0, 0.0)


async def test_calls_in_parallel_share_the_budget(engine: Engine, model: Scholar) -> None:
    await store(engine, handbook(100))
    model.usage = most_of
    model.gate = asyncio.Event()

    started = await engine.research.start(QUESTION, budget=Budget(100, 150_000), whole=True)
    await model.wait_for(4)
    model.gate.set()
    report = report_of(await engine.research.wait(started.id))

    assert model.most_at_once == 4
    assert report.tokens == model.used <= 150_000
    assert not report.complete
    assert report.statements


async def test_a_spent_budget_gives_the_best_report_so_far_and_says_what_is_missing(
    engine: Engine, model: Scholar
) -> None:
    await store(engine, handbook(200))

    report = await engine.research.run(QUESTION, budget=Budget(calls=3, tokens=2_000_000), whole=True)

    assert len(model.requests) == report.calls == 3
    assert model.steps["report"] == 1
    assert not report.complete
    assert report.statements
    assert 0 < report.passages < 200
    assert any(line.startswith(("The budget was spent: ", "The budget allows")) for line in report.missing)


async def test_a_report_that_no_call_is_left_for_consists_of_the_notes(engine: Engine, model: Scholar) -> None:
    await store(engine, handbook(3))

    report = await engine.research.run(QUESTION, budget=Budget(calls=1, tokens=100_000))

    assert model.steps == {"read": 1}
    assert len(report.statements) == 3
    assert "these are its notes" in " ".join(report.missing)
    assert await check_citations(engine, report) == 3


async def test_without_calls_the_report_is_extracted(engine: Engine, model: Scholar) -> None:
    await store(engine, handbook(3))

    report = await engine.research.run(QUESTION, budget=Budget(calls=0))

    assert not model.requests
    assert report.by == "extract"
    assert await check_citations(engine, report) == len(report.statements) > 0


async def test_retries_count_as_calls_and_a_break_counts_with_all_that_it_could_use(
    engine: Engine, model: Scholar
) -> None:
    await store(engine, handbook(2))
    failures = iter([{"fail": {"status": 500}}, {"text": "- It broke", "chunks": 2, "fail": {"after": 1}}])
    model.answers["read"] = lambda request: next(failures, None) or answer_by_rules(request)

    report = await engine.research.run(QUESTION)

    assert model.steps["read"] == 3
    assert report.calls == len(model.requests)
    assert report.tokens == model.used + sum(most_of(model.of("read")[0]))


async def test_a_model_that_reports_more_than_it_can_use_is_noticed_at_once(engine: Engine, model: Scholar) -> None:
    await store(engine, handbook(200, filler=5))
    model.usage = lambda request: (3 * sum(most_of(request)), 0)

    started = await engine.research.start(QUESTION, budget=Budget(100, 100_000), whole=True)
    run = await engine.research.wait(started.id)

    first = 3 * sum(most_of(model.requests[0]))
    assert run.tokens == model.used
    assert run.tokens <= 100_000 + 2 * first


async def test_the_budget_of_the_tenant_applies_and_the_research_goes_on_when_it_starts_again(
    engine: Engine, model: Scholar
) -> None:
    await store(engine, handbook(5))
    await (await engine.quotas.limits()).set("user ann: 1 tokens per hour", by="boss")

    started = await engine.research.start(QUESTION, user="ann")
    run = await engine.research.wait(started.id)
    while run.state == "done":  # a call may begin as long as the budget is not used up
        run = await engine.research.wait((await engine.research.start(QUESTION, user="ann")).id)

    assert run.state == "failed"
    assert run.error is not None
    assert run.error["code"] == BudgetSpent.code
    assert run.calls == len(model.requests)


async def test_a_cost_limit_is_kept(engine: Engine, model: Scholar, monkeypatch: pytest.MonkeyPatch) -> None:
    await store(engine, handbook(100))

    def cost(_: object, name: str, usage: TokenUsage) -> float:
        return (usage.input_tokens + usage.output_tokens) / 1000

    monkeypatch.setattr("holdfast.llm.caller.Prices.cost", cost)
    model.usage = most_of

    report = await engine.research.run(QUESTION, budget=Budget(100, 2_000_000, cost=150.0), whole=True)

    assert report.cost == pytest.approx(model.used / 1000)
    assert report.cost <= 150.0
    assert not report.complete


@pytest.mark.parametrize(
    ("calls", "tokens", "cost"), [(-1, 10, None), (1, -1, None), (1, 10**11, None), (1, 1, 0.0), (1, 1, float("nan"))]
)
def test_an_impossible_budget_is_refused(calls: int, tokens: int, cost: float | None) -> None:
    with pytest.raises(InvalidInput, match="is invalid"):
        Budget(calls, tokens, cost)


@pytest.mark.parametrize("tokens", [0, 1, 500, 5_000, 50_000, 2_000_000])
@pytest.mark.parametrize("calls", [0, 1, 2, 7, 8, 200])
def test_the_shares_of_a_budget_leave_some_for_reading(calls: int, tokens: int) -> None:
    division = Division.of(Budget(calls, tokens), context=32_000, output=4096)

    assert division.combining.calls < max(1, calls)
    assert division.combining.tokens <= max(1, tokens // 2)
    assert division.request <= max(1, tokens)


def test_a_prompt_has_at_most_a_token_for_each_byte_if_the_counter_estimates() -> None:
    request = ModelRequest(messages=[], max_tokens=10)

    assert most_prompt_tokens(request, ESTIMATE) == 64
    assert LlmSettings().attempts == 3
