"""Rate limits that several nodes share."""

import asyncio
import logging
from datetime import timedelta
from time import monotonic, perf_counter
from uuid import UUID

import pytest

from holdfast.core.errors import DatabaseAway, HoldfastError, InvalidInput, RateLimited
from holdfast.engine import Engine
from holdfast.quotas import rate_limits, tenant_limits
from tests.clock import Clock
from tests.quotas.nodes import Node, Nodes

pytestmark = pytest.mark.req("MCP-07")

PATIENCE = 20


async def refusal(node: Node, tool: str = "track") -> RateLimited:
    """The error of a call of ann's that is refused."""
    with pytest.raises(RateLimited) as refused:
        await node.admit(tool=tool)
    return refused.value


class Hands:
    """The monotonic clock by which nodes decide; a test can stop and move it."""

    def __init__(self) -> None:
        self._moved = 0.0
        self._stopped: float | None = None

    def __call__(self) -> float:
        return (monotonic() if self._stopped is None else self._stopped) + self._moved

    def stop(self) -> None:
        """Stand still from now on."""
        self._stopped = monotonic()

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self._moved += seconds


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    """The clock of the nodes."""
    hands = Hands()
    monkeypatch.setattr(rate_limits, "monotonic", hands)
    monkeypatch.setattr(tenant_limits, "monotonic", hands)
    return hands


async def idle() -> None:
    """Wait until no node asks the database for anything."""
    async with asyncio.timeout(PATIENCE):
        while running := [task for task in asyncio.all_tasks() if task.get_name().startswith("holdfast limits")]:
            await asyncio.wait(running)


async def tended(node: Node) -> None:
    """Let a node renew and give back what it has leased, and wait until it has."""
    node.quotas.rates.tend()
    await idle()


@pytest.mark.parametrize("tenancy", ["connection", "transaction"])
async def test_calls_beyond_the_limit_are_refused_with_its_name_and_a_time_to_wait(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("each user: 10 requests per hour")

    admitted = await node.tries(15)
    error = await refusal(node)

    assert admitted == 10
    assert error.details["limit"] == "each user: requests per hour"
    assert error.details["subject"] == "user ann"
    assert 300 < error.retry_after <= 360
    assert str(error) == (
        "the limit of user ann is reached: it is `each user: 10 requests per hour`. "
        f"Try again in {error.retry_after:g} seconds."
    )
    assert await node.tries(1, "bob") == 1


async def test_a_tenant_without_limits_asks_the_database_for_nothing_but_changes(nodes: Nodes) -> None:
    node = await nodes.make()
    before = node.database.statements

    admitted = await node.tries(1000)

    assert admitted == 1000
    assert node.database.statements - before <= 2


async def test_all_limits_of_a_call_count_and_a_refused_call_uses_none_of_them(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("each user: 5 requests per hour", "tool refund: 2 requests per hour", "tenant: 8 requests per day")

    refunds = await node.tries(4, tool="refund")
    others = await node.tries(9)
    of_bob = await node.tries(9, "bob")

    assert (refunds, others, of_bob) == (2, 3, 3)


async def test_limits_of_keys_and_agents_count_for_calls_that_have_them(nodes: Nodes) -> None:
    node = await nodes.make()
    key = UUID(int=7)
    await node.set("agent support: 3 requests per hour", f"key {key}: 2 requests per hour")

    assert await node.tries(5, agent="support") == 3
    assert await node.tries(5, key=key) == 2
    assert await node.tries(5, agent="clerk", key=UUID(int=8)) == 5


async def test_nodes_together_admit_exactly_the_limit(nodes: Nodes) -> None:
    first, second = await nodes.make(), await nodes.make()
    await first.set("each user: 200 requests per day")
    await second.quotas.limits.list()

    admitted = await asyncio.gather(first.tries(200), second.tries(200))

    assert 190 <= sum(admitted) <= 200


async def test_two_nodes_admit_a_rate_to_within_five_percent(nodes: Nodes, clock: Clock) -> None:
    first, second = await nodes.make(), await nodes.make()
    await first.set("tenant: 200 requests per second, burst 100")
    await second.quotas.limits.list()
    await clock.stop()

    admitted = sum([await node.tries(80) for node in (first, second)])
    for _ in range(10):
        await idle()
        await clock.advance(timedelta(seconds=0.2))
        await asyncio.sleep(0.03)  # after a refusal, a node asks again after 20 ms
        admitted += sum([await node.tries(30) for node in (first, second)])

    assert 0.95 * (100 + 10 * 40) <= admitted <= 100 + 10 * 40


async def test_a_busy_caller_s_calls_need_few_statements(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("each user: 100000 requests per second", "tenant: 10000 requests per second, burst 3000")
    await node.tries(10)
    before = node.database.statements

    admitted = 0
    while admitted < 2500:
        admitted += await node.tries(20)
        await asyncio.sleep(0)

    assert node.database.statements - before < admitted / 10


async def test_callers_that_find_nothing_leased_share_a_statement(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("each user: 60 requests per minute")
    await node.quotas.limits.list()
    before = node.database.statements

    await asyncio.gather(*(node.admit(f"user {number}") for number in range(200)))

    assert node.database.statements - before <= 5


async def test_what_is_not_used_comes_back_for_other_nodes(nodes: Nodes) -> None:
    first, second = await nodes.make(), await nodes.make()
    await first.set("each user: 400 requests per day")
    await second.quotas.limits.list()
    await first.tries(100)

    await first.quotas.rates.close()

    assert await second.tries(400) == 300


async def test_a_limit_that_is_changed_counts_on_another_node_within_a_second(nodes: Nodes, hands: Hands) -> None:
    first, second = await nodes.make(), await nodes.make()
    hands.stop()
    await second.quotas.limits.list()

    await first.set("each user: 2 requests per hour")
    hands.move(1)
    when_set = await second.tries(3)
    await first.set("each user: 5 requests per hour")
    hands.move(1)
    when_raised = await second.tries(9, "bob")
    await first.quotas.limits.remove("each user: requests per hour", by="boss")
    hands.move(1)

    assert (when_set, when_raised) == (2, 5)
    assert await second.tries(9) == 9


async def test_a_lowered_limit_counts_for_what_is_leased_too(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("tenant: 100000 requests per hour", "tool search: 9 concurrent calls")
    await node.tries(2000)
    running = [await node.admit(tool="search") for _ in range(9)]

    await node.set("tenant: 10 requests per hour", "tool search: 3 concurrent calls")
    for admission in running:
        admission.end()

    assert sum([await node.tries(50), await node.tries(50, "bob")]) <= 10
    await node.quotas.limits.remove("tenant: requests per hour", by="boss")
    for _ in range(3):
        await node.admit(tool="search")
    await refusal(node, tool="search")


async def test_a_tenant_has_buckets_and_limits_of_its_own(nodes: Nodes, engine: Engine) -> None:
    await engine.tenants.create("other")
    ours, theirs = await nodes.make(defaults=["tenant: 5 requests per hour"]), None
    theirs = await nodes.make(tenant="other", defaults=["tenant: 5 requests per hour"])
    await ours.set("each user: 1 requests per hour")

    assert await ours.tries(9) == 1
    assert await ours.tries(9, "bob") == 1
    assert await theirs.tries(9) == 5
    assert [limit.origin for limit in await theirs.quotas.limits.list()] == ["settings"]


async def test_an_admin_cannot_raise_or_remove_the_operator_s_limit(nodes: Nodes) -> None:
    node = await nodes.make(defaults=["each user: 9 requests per hour"])
    await node.set("each user: 3 requests per hour", as_operator=True)
    await node.set("each user: 100 requests per hour", "user ann: 100 requests per hour")

    admitted = await node.tries(20)
    await node.quotas.limits.remove("each user: requests per hour", by="boss")
    with pytest.raises(HoldfastError, match="the operator has set it"):
        await node.quotas.limits.remove("each user: requests per hour", by="boss")

    assert admitted == 3
    assert await node.tries(20, "bob") == 3


async def test_the_operator_removes_its_limit_and_that_of_the_settings_counts_again(nodes: Nodes) -> None:
    node = await nodes.make(defaults=["each user: 4 requests per hour"])
    await node.set("each user: 6 requests per hour", as_operator=True)
    raised = await node.tries(9)

    await node.quotas.limits.remove("each user: requests per hour", by="op", as_operator=True)
    with pytest.raises(HoldfastError, match="one of the settings"):
        await node.quotas.limits.remove("each user: requests per hour", by="op", as_operator=True)

    assert (raised, await node.tries(9, "bob")) == (6, 4)


# Concurrent calls


async def test_a_tenant_has_no_more_limits_than_a_process_can_keep(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_limits, "MOST", 2)
    node = await nodes.make()
    await node.set("user ann: 1 requests per day", "user bob: 1 requests per day")

    with pytest.raises(InvalidInput, match="the tenant has 2 limits, and no more are allowed"):
        await node.set("user cy: 1 requests per day")
    await node.set("user bob: 2 requests per day")
    await node.quotas.limits.remove("user ann: requests per day", by="boss")
    await node.set("user cy: 1 requests per day")

    rules = [limit.rule for limit in await node.quotas.limits.list()]
    assert rules == ["user bob: 2 requests per day", "user cy: 1 requests per day"]


async def test_calls_beyond_the_slots_are_refused_until_one_ends(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("tool search: 3 concurrent calls")
    running = [await node.admit(tool="search") for _ in range(3)]

    error = await refusal(node, tool="search")
    running.pop().end()

    assert error.details["measure"] == "concurrency"
    assert 0 < error.retry_after <= 1
    await node.admit(tool="search")


async def test_nodes_share_slots_and_get_those_that_others_do_not_use(nodes: Nodes) -> None:
    first, second = await nodes.make(), await nodes.make()
    await first.set("tool search: 4 concurrent calls")
    await second.quotas.limits.list()
    running = [await first.admit(tool="search") for _ in range(4)]
    await refusal(second, tool="search")

    for admission in running:
        admission.end()

    async with asyncio.timeout(PATIENCE):
        while not await second.tries(1, tool="search"):
            first.quotas.rates.tend()
            await asyncio.sleep(0.05)


async def test_the_slots_of_a_node_that_died_come_back_with_their_lease(
    nodes: Nodes, engine: Engine, clock: Clock
) -> None:
    first, second = await nodes.make(), await nodes.make()
    await first.set("tool search: 2 concurrent calls")
    await second.quotas.limits.list()
    for _ in range(2):
        await first.admit(tool="search")
    before = await second.tries(1, tool="search")

    await clock.advance(timedelta(seconds=11))
    await asyncio.sleep(0.05)  # after a refusal, a node asks again after 20 ms

    assert (before, await second.tries(1, tool="search")) == (0, 1)


async def test_slots_stay_held_while_a_call_takes_longer_than_their_lease(
    nodes: Nodes, hands: Hands, clock: Clock
) -> None:
    first, second = await nodes.make(), await nodes.make()
    await first.set("tool search: 1 concurrent calls")
    await second.quotas.limits.list()
    await clock.stop()
    hands.stop()
    running = await first.admit(tool="search")

    outcomes: list[int] = []
    for _ in range(4):  # 24 seconds; a lease has 10
        hands.move(6)
        await clock.advance(timedelta(seconds=6))
        await tended(first)
        outcomes.append(await second.tries(1, tool="search"))

    running.end()
    assert outcomes == [0, 0, 0, 0]


async def test_a_slot_that_is_about_to_go_back_is_not_taken_here_any_more(
    nodes: Nodes, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await nodes.make(), await nodes.make()
    await first.set("tool search: 4 concurrent calls")
    await second.quotas.limits.list()
    hands.stop()
    for admission in [await first.admit(tool="search") for _ in range(4)]:
        admission.end()
    hands.move(5)  # so that the slots are not needed any more
    await first.quotas.limits.list()
    asked, answer, ask = asyncio.Event(), asyncio.Event(), first.database.all

    async def answer_late(statement: str, *args: object) -> object:
        rows = await ask(statement, *args)
        asked.set()
        await answer.wait()
        return rows

    monkeypatch.setattr(first.database, "all", answer_late)
    first.quotas.rates.tend()
    async with asyncio.timeout(PATIENCE):
        await asked.wait()

    here = first.quotas.rates.try_admit(("ann", None, None, "search"))
    there = [await second.admit(tool="search") for _ in range(4)]
    answer.set()

    assert (here, len(there)) == (None, 4)


async def test_a_call_that_was_not_made_gives_back_what_it_took(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("each user: 1 requests per hour", "each user: 1 concurrent calls")

    (await node.admit()).undo()

    assert await node.tries(2) == 1


# Clocks, failures, size


async def test_time_that_passes_fills_a_bucket_up_to_its_burst(nodes: Nodes, clock: Clock) -> None:
    node, later = await nodes.make(), await nodes.make()
    await node.set("each user: 60 requests per minute, burst 20")
    await clock.stop()
    at_first = await node.tries(50)
    await later.quotas.limits.list()

    await clock.advance(timedelta(seconds=5))
    after_5 = await later.tries(50)
    await clock.advance(timedelta(days=400))
    after_long = await (await nodes.make()).tries(50)

    assert (at_first, after_5, after_long) == (20, 5, 20)


async def test_a_clock_that_is_set_back_stops_no_bucket(nodes: Nodes, clock: Clock) -> None:
    node = await nodes.make()
    await node.set("each user: 60 requests per minute, burst 5")
    await clock.stop()
    await node.tries(9)

    await clock.advance(-timedelta(days=3))
    at_once = await (await nodes.make()).tries(9)
    await clock.advance(timedelta(seconds=3))

    assert (at_once, await (await nodes.make()).tries(9)) == (0, 3)


async def test_calls_go_on_with_what_is_leased_while_the_database_is_away_and_fail_after_it(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await nodes.make()
    await node.set("each user: 4000 requests per day")
    await node.tries(20)
    monkeypatch.setattr(tenant_limits, "STALE", 1000)

    async def away(*_: object) -> None:
        raise DatabaseAway("the database is away")

    monkeypatch.setattr(node.database, "all", away)
    admitted = 0

    async def call_again_and_again() -> None:
        nonlocal admitted
        while True:
            await node.admit()
            admitted += 1

    with pytest.raises(DatabaseAway):
        await call_again_and_again()
    monkeypatch.undo()

    assert 0 < admitted < 4000
    assert await node.tries(1) == 1


async def test_limits_that_are_read_slowly_count_as_soon_as_they_are_read(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await nodes.make()
    await node.set("each user: 2 requests per hour")
    monkeypatch.setattr(tenant_limits, "STALE", 0)  # whenever a read ends, it is long ago that it began

    assert await node.tries(5) == 2


async def test_leases_that_cannot_be_renewed_are_told_once(
    nodes: Nodes, hands: Hands, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = await nodes.make()
    await node.set("tool search: 4 concurrent calls")
    await node.admit(tool="search")
    caplog.set_level(logging.WARNING)

    async def away(*_: object) -> None:
        raise DatabaseAway("the database is away")

    for _ in range(2):
        hands.move(5)  # half of the lease
        with monkeypatch.context() as outage:
            outage.setattr(node.database, "all", away)
            for _ in range(3):
                await tended(node)
        await tended(node)

    said = [record.getMessage() for record in caplog.records if "could not renew" in record.getMessage()]
    assert len(said) == 2


async def test_names_of_any_length_have_a_bucket_and_do_not_disturb_others(nodes: Nodes) -> None:
    node = await nodes.make()
    await node.set("each user of each agent: 1 requests per hour")
    long, other = "".join(chr(0x4E00 + 7 * number) for number in range(660)), "\x01" * 2000

    callers = (long, long), (long, other), (other, long), ("bob", "support")
    together = await asyncio.gather(*(node.tries(2, user, agent=agent) for user, agent in callers))
    with pytest.raises(RateLimited) as refused:
        await node.admit(long, agent=long)

    assert together == [1, 1, 1, 1]
    assert refused.value.details["limit"] == "each user of each agent: requests per hour"
    assert len(str(refused.value)) < 2500


async def test_a_call_waits_for_its_own_lease_and_not_for_the_background(
    nodes: Nodes, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "TOGETHER", 5)
    node = await nodes.make()
    await node.set("each user: 600 requests per minute")
    await asyncio.gather(*(node.admit(f"user {number}") for number in range(100)))
    hands.move(100)  # all have something to give back
    hands.stop()
    await node.quotas.limits.list()
    before = node.database.statements

    node.quotas.rates.tend()
    await node.admit("ann")

    assert node.database.statements - before <= 2
    await tended(node)
    assert node.database.statements - before >= 20


async def test_callers_who_are_gone_need_no_attention_while_their_spare_is_kept(nodes: Nodes, hands: Hands) -> None:
    node = await nodes.make()
    await node.set("each user: 600 requests per minute")
    await asyncio.gather(*(node.admit(f"user {number}") for number in range(50)))
    hands.move(5)
    await tended(node)
    asked = [bucket for bucket in node.quotas.rates.leased if hands() >= bucket.quiet_until]
    kept = len(node.quotas.rates.leased)
    hands.move(30)
    await tended(node)

    assert (asked, kept, len(node.quotas.rates.leased)) == ([], 50, 0)


async def test_a_call_costs_the_same_with_ten_thousand_limits_of_others(nodes: Nodes) -> None:
    few, many = (
        await nodes.make(),
        await nodes.make(defaults=[f"user user-{number}: 900000 requests per minute" for number in range(10_000)]),
    )
    await few.set("user ann: 900000 requests per minute", "each user: 900000 requests per hour")
    await many.quotas.limits.list()

    async def seconds(node: Node) -> float:
        await node.tries(500)
        best = float("inf")
        for _ in range(5):
            began = perf_counter()
            await node.tries(200)
            best = min(best, perf_counter() - began)
        return best

    assert await seconds(many) < 3 * await seconds(few)


async def test_a_process_forgets_callers_that_are_long_gone(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "REMEMBERED", 10)
    node = await nodes.make()
    await node.set("each user: 5 requests per hour")

    first = [await node.tries(1, f"user {number}") for number in range(50)]
    second = [await node.tries(9, f"user {number}") for number in range(50)]

    assert (set(first), set(second)) == ({1}, {4})
