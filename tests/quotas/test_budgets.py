"""Budgets for model calls."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.core.errors import BudgetSpent, DatabaseAway
from holdfast.core.limits import QuotaSettings
from holdfast.engine import Engine
from holdfast.quotas import Reservation, Spend
from holdfast.quotas import budgets as budgets_module
from holdfast.quotas.limit_usage import LimitUsage, limit_usage
from holdfast.quotas.sweeper import QuotaSweeper
from tests.clock import Clock
from tests.quotas.nodes import Node, Nodes

pytestmark = pytest.mark.req("AGENT-10")

PATIENCE = 20


async def reserve(node: Node, tokens: float, *, cost: float = 0, user: str = "ann") -> Reservation:
    """Reserve for a call of a model by the agent `support`."""
    reserved = await node.quotas.budgets.reserve(Spend(tokens, cost), user=user, agent="support")
    assert reserved is not None
    return reserved


async def spend(node: Node, tokens: float, *, cost: float = 0, user: str = "ann") -> None:
    """Make a call that uses what was estimated."""
    await node.quotas.budgets.settle(await reserve(node, tokens, cost=cost, user=user), Spend(tokens, cost))


async def used(node: Node) -> list[LimitUsage]:
    """How much of the budgets is used."""
    limits = node.quotas.limits.index.limits.values()
    return [*await limit_usage(node.database, limits, most=100)]


async def test_a_call_without_a_budget_reserves_nothing(nodes: Nodes) -> None:
    node = await nodes.make(defaults=["each user: 5 requests per hour"])

    assert await node.quotas.budgets.reserve(Spend(10, 0), user="ann", agent="support") is None


async def test_a_budget_that_is_used_up_refuses_calls_until_its_window_ends(nodes: Nodes, clock: Clock) -> None:
    node = await nodes.make()
    await node.set("each user: 1000 tokens per day")
    await clock.set(datetime(2027, 3, 31, 22, 0, tzinfo=UTC))
    await spend(node, 600)
    await spend(node, 600)

    with pytest.raises(BudgetSpent) as refused:
        await reserve(node, 1)
    await spend(node, 600, user="bob")
    await clock.set(datetime(2027, 4, 1, 0, 0, tzinfo=UTC))

    error = refused.value
    assert (error.details["limit"], error.details["used"]) == ("each user: tokens per day", 1200)
    assert error.details["retry_after"] == 7200
    assert str(error) == (
        "the budget of user ann is spent: it is `each user: 1000 tokens per day`, and 1200 of it are used. "
        "It starts again in 2 hours, or an admin raises it with `holdfast limits set`."
    )
    await spend(node, 600)


async def test_a_month_of_the_calendar_is_a_window(nodes: Nodes, clock: Clock) -> None:
    node = await nodes.make()
    await node.set("tenant: 10 cost per month")
    await clock.set(datetime(2027, 2, 1, tzinfo=UTC))
    await spend(node, 0, cost=10)

    (usage,) = await used(node)

    assert (usage.used, usage.amount, usage.resets_at) == (10, 10, datetime(2027, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize("tenancy", ["connection", "transaction"])
async def test_all_budgets_of_a_call_count_and_a_refused_call_reserves_from_none(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("tenant: 5 cost per month", "user ann: 100 tokens per day", "agent support: 300 tokens per day")
    await spend(node, 100, cost=1)

    with pytest.raises(BudgetSpent, match="the budget of user ann"):
        await reserve(node, 50, cost=1)
    await spend(node, 200, cost=1, user="bob")
    with pytest.raises(BudgetSpent, match="the budget of agent support"):
        await reserve(node, 50, cost=1, user="bob")

    assert {(each.subject, each.used) for each in await used(node)} == {
        ("tenant", 2), ("user ann", 100), ("agent support", 300),
    }  # fmt: skip


async def test_calls_at_the_same_time_spend_no_more_than_their_estimates_beyond_the_budget(nodes: Nodes) -> None:
    first, second = await nodes.make(), await nodes.make()
    await first.set("tenant: 1000 tokens per day")
    await second.quotas.limits.list()
    spent = 0

    async def call(node: Node) -> None:
        nonlocal spent
        reserved = await reserve(node, 120)
        await asyncio.sleep(0)
        spent += 120
        await node.quotas.budgets.settle(reserved, Spend(120, 0))

    outcomes = await asyncio.gather(*(call(node) for node in (first, second) * 10), return_exceptions=True)

    assert spent == 1080  # 9 calls: the last one began with 40 left
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [BudgetSpent] * 11


async def test_a_call_waits_for_what_others_have_reserved_and_do_not_use(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("tenant: 1000 tokens per day")
    other = await reserve(node, 1000)

    waiting = asyncio.create_task(reserve(node, 500))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await node.quotas.budgets.settle(other, Spend(200, 0))

    async with asyncio.timeout(PATIENCE):
        await waiting
    assert [(each.used, each.reserved) for each in await used(node)] == [(700, 500)]


async def test_a_call_gives_up_waiting_for_reservations(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets_module, "PATIENCE", 0)
    node = await nodes.make()
    await node.set("tenant: 1000 tokens per day")
    await reserve(node, 1000)

    with pytest.raises(BudgetSpent, match="calls in progress have reserved the rest"):
        await reserve(node, 1)


async def test_what_a_dead_process_had_reserved_stays_spent(nodes: Nodes, engine: Engine, clock: Clock) -> None:
    node = await nodes.make()
    await node.set("tenant: 1000 tokens per day")
    await clock.set(datetime(2027, 3, 31, 12, 0, tzinfo=UTC))
    lost = await reserve(node, 700)
    await clock.advance(timedelta(minutes=30))
    before = await used(node)

    await QuotaSweeper(engine.postgres, QuotaSettings()).sweep()
    after = await used(node)
    await node.quotas.budgets.settle(lost, Spend(300, 0))  # it was only slow

    assert [(each.used, each.reserved) for each in (*before, *after)] == [(700, 700), (700, 0)]
    assert [(each.used, each.reserved) for each in await used(node)] == [(300, 0)]


async def test_a_warning_is_logged_once_when_most_is_spent(nodes: Nodes, caplog: pytest.LogCaptureFixture) -> None:
    first, second = await nodes.make(), await nodes.make()
    await first.set("each user: 1000 tokens per day", "agent support: 1000 tokens per day, warn at 95%")
    await second.quotas.limits.list()
    caplog.set_level(logging.WARNING)

    for node in (first, second, first, second):
        await spend(node, 225)

    said = [record.getMessage() for record in caplog.records if "budget" in record.getMessage()]
    assert said == ["user ann has used 900 of its budget `each user: 1000 tokens per day`: 90%"]
    assert second.quotas.budgets.warnings == {"each user: tokens per day": 1}
    assert {each.subject: each.warned for each in await used(first)} == {"user ann": True, "agent support": False}


async def test_a_clock_that_is_set_back_counts_to_the_earlier_window(nodes: Nodes, clock: Clock) -> None:
    node = await nodes.make()
    await node.set("tenant: 1000 tokens per day")
    await clock.set(datetime(2027, 3, 31, 12, 0, tzinfo=UTC))
    await spend(node, 1000)
    await clock.set(datetime(2027, 4, 1, 12, 0, tzinfo=UTC))
    began = await reserve(node, 400)

    await clock.set(datetime(2027, 3, 31, 13, 0, tzinfo=UTC))
    with pytest.raises(BudgetSpent):
        await reserve(node, 1)
    await node.quotas.budgets.settle(began, Spend(400, 0))
    await clock.set(datetime(2027, 4, 1, 13, 0, tzinfo=UTC))

    assert [each.used for each in await used(node)] == [400]


async def test_a_raised_budget_counts_what_was_spent_before(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("tenant: 1000 tokens per month")
    await spend(node, 1000)

    await node.set("tenant: 1500 tokens per month")

    await spend(node, 500)
    with pytest.raises(BudgetSpent):
        await reserve(node, 1)


async def test_the_sweeper_forgets_what_is_old(nodes: Nodes, engine: Engine, clock: Clock) -> None:
    node = await nodes.make()
    await node.set("tenant: 1000 tokens per day", "each user: 5 requests per hour", "tenant: 5 concurrent calls")
    await spend(node, 10)
    await node.admit()
    await node.quotas.limits.remove("tenant: tokens per day", by="boss")
    engine.quotas.count(user="ann", agent="support", model="m", input=5, output=7, cost=0.5)
    assert [each.calls for each in await engine.quotas.model_usage(days=1, most=10)] == [1]

    await clock.advance(timedelta(days=500))
    await QuotaSweeper(engine.postgres, QuotaSettings()).sweep()

    tables = ("budget", "limit_bucket", "limit_slots", "model_usage", "budget_reservation")
    left = [await engine.database.value(f"select count(*) from {table} where tenant_id = $1") for table in tables]
    assert left == [0, 0, 0, 0, 0]
    assert await engine.database.value("select count(*) from usage_limit where tenant_id = $1") == 2


async def test_a_bucket_is_forgotten_when_it_is_full_and_not_before(nodes: Nodes, engine: Engine, clock: Clock) -> None:
    node = await nodes.make()
    await node.set("tool quick: 60 requests per minute", "tool slow: 1 requests per month, burst 100")
    await node.tries(100, tool="slow")
    await node.tries(1, tool="quick")

    await clock.advance(timedelta(hours=3))
    await QuotaSweeper(engine.postgres, QuotaSettings()).sweep()
    kept = await engine.database.value("select string_agg(subject, ' ') from limit_bucket where tenant_id = $1")
    await clock.advance(timedelta(days=60))
    await QuotaSweeper(engine.postgres, QuotaSettings()).sweep()

    assert kept == "tool slow"
    assert await (await nodes.make()).tries(9, "bob", tool="slow") == 2


async def test_windows_of_budgets_are_forgotten_a_day_after_their_end(
    nodes: Nodes, engine: Engine, clock: Clock
) -> None:
    node = await nodes.make()
    await node.set("each user: 1000 tokens per minute", "tenant: 1000 tokens per month")
    await clock.set(datetime(2027, 3, 10, 12, 0, tzinfo=UTC))
    await spend(node, 10)
    began = await reserve(node, 10)

    await clock.advance(timedelta(days=2))
    await QuotaSweeper(engine.postgres, QuotaSettings()).sweep()
    await node.quotas.budgets.settle(began, Spend(5, 0))  # of the minute, nothing is left to settle

    left = await engine.database.all("select subject, used from budget where tenant_id = $1")
    assert [tuple(row) for row in left] == [("tenant", 15)]


async def test_a_call_that_is_cancelled_while_it_reserves_holds_nothing(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await nodes.make()
    await node.set("tenant: 1000 tokens per day", "each user: 1000 tokens per day")
    await spend(node, 10)
    reserved, ask = asyncio.Event(), node.database.all

    async def answer_never(statement: str, *args: object) -> object:
        rows = await ask(statement, *args)
        if "reserve_spend" in statement:
            reserved.set()
            await asyncio.Event().wait()
        return rows

    with monkeypatch.context() as slow:
        slow.setattr(node.database, "all", answer_never)
        call = asyncio.create_task(reserve(node, 700))
        async with asyncio.timeout(PATIENCE):
            await reserved.wait()
        before = await used(node)
        call.cancel()
        await asyncio.wait([call])

    assert [each.reserved for each in before] == [700, 700]
    assert [(each.used, each.reserved) for each in await used(node)] == [(10, 0), (10, 0)]


async def test_the_most_used_subjects_of_many_are_listed(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("each user: 10 requests per day", "each user: 100 tokens per day", "each user: 9 concurrent calls")
    for number in range(4):
        await node.admit(f"user-{number}")
        await spend(node, 1, user=f"user-{number}")
    for _ in range(5):
        await node.admit("zoe")
    await spend(node, 90, user="zoe")

    limits = node.quotas.limits.index.limits.values()
    listed = [await limit_usage(node.database, [limit], most=1) for limit in limits]

    assert [each[0].subject for each in listed] == ["user zoe"] * 3
    assert [each[0].used >= least for each, least in zip(listed, (5, 90, 5), strict=True)] == [True] * 3


async def test_usage_of_models_is_counted_for_names_of_any_length(engine: Engine) -> None:
    long = "".join(chr(0x4E00 + 7 * number) for number in range(660))
    engine.quotas.count(user=long, agent=long, model=long, input=5, output=7, cost=0.5)
    engine.quotas.count(user="ann", agent="support", model="m", input=5, output=7, cost=0.5)

    usage = await engine.quotas.model_usage(days=1, most=10)

    assert [(each.user or "")[:100] for each in usage] == ["ann", long[:100]]


async def test_a_call_that_cannot_reserve_fails_with_the_reason(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = await nodes.make()
    await node.set("tenant: 1000 tokens per day")

    async def away(*_: object) -> None:
        raise DatabaseAway("the database is away")

    monkeypatch.setattr(node.database, "all", away)
    monkeypatch.setattr(node.database, "run", away)
    with pytest.raises(DatabaseAway):
        await reserve(node, 1)

    assert "could not release what a call had reserved" in caplog.text
