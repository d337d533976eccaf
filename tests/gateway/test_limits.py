"""Rate limits of calls through the gateway and beside it."""

import asyncio

import pytest

from holdfast import App
from holdfast.access.principals import Principal
from holdfast.core.errors import RateLimited
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.gateway.gateway import Gateway
from holdfast.skills.client import InputRequired
from holdfast.skills.run import Run
from tests.gateway.shop import Person, ask, caller

pytestmark = pytest.mark.req("MCP-07")


async def limit(engine: Engine, *rules: str) -> None:
    """Set limits of the tenant."""
    limits = await engine.quotas.limits()
    for rule in rules:
        await limits.set(rule, by="boss")


@pytest.fixture
async def ann(gateway: Gateway) -> Principal:
    """A person who may do everything."""
    return await caller(gateway)


async def test_a_model_behind_mcp_reads_the_refusal_and_a_program_its_limit_and_time(
    gateway: Gateway, served: Engine, ann: Principal
) -> None:
    await limit(served, "each user of tool track: 2 requests per hour")
    params = {"name": "track", "arguments": {"parcel": "7"}}

    results = [await ask(gateway, ann, "tools/call", params) for _ in range(3)]
    other = await ask(gateway, await caller(gateway, "bob"), "tools/call", params)

    assert [result["isError"] for result in (*results, other)] == [False, False, True, False]
    assert results[-1]["content"][0]["text"].startswith("the limit of user ann of tool track is reached: it is `each")
    about = results[-1]["_meta"]["io.holdfast/error"]
    assert (about["code"], about["limit"]) == ("rate_limited", "each user of tool track: requests per hour")
    assert 1700 < about["retryAfter"] <= 1800


async def test_a_tool_that_is_called_by_another_counts_by_its_own_name(
    gateway: Gateway, served: Engine, ann: Principal
) -> None:
    await limit(served, "tool track: 1 requests per hour")
    wrapped = {"name": "track", "arguments": {"parcel": "7"}}

    await gateway.call(ann, "call_tool", wrapped)

    with pytest.raises(RateLimited):
        await gateway.call(ann, "call_tool", wrapped)


async def test_calls_of_all_chains_use_one_limit(gateway: Gateway, served: Engine, ann: Principal) -> None:
    await limit(served, "user ann: 2 requests per hour")

    await gateway.call(ann, "track", {"parcel": "7"})
    await served.executions.call("track", {"parcel": "7"}, user="ann")

    with pytest.raises(RateLimited):
        await gateway.call(ann, "track", {"parcel": "7"})
    with pytest.raises(RateLimited):
        await served.executions.call("track", {"parcel": "7"}, user="ann")
    (refused,) = await served.executions.list(status="failed")
    assert "the limit of user ann is reached" in refused.text


async def test_a_refused_call_of_an_agent_is_an_outcome_and_does_not_end_its_turn(served: Engine) -> None:
    await limit(served, "user ann: 1 requests per hour")
    await served.executions.call("track", {"parcel": "7"}, user="ann")
    track = (await served.tools.get("track")).tool
    run = Run("ann", "support", None, None, uuid7(), "1", "k")

    refused = await served.executor.run(track, {"parcel": "7"}, run, timeout=5, max_output_bytes=1000)

    assert refused.status == "failed"
    assert refused.text.startswith("track was not called: the limit of user ann is reached")


async def test_a_call_that_waits_for_its_client_counts_once(gateway: Gateway, served: Engine, ann: Principal) -> None:
    await limit(served, "tool ship: 1 requests per hour", "tool ship: 1 concurrent calls")
    for _ in range(3):
        with pytest.raises(InputRequired):
            await gateway.call(ann, "ship", {"order": "7"}, client=Person())

    outcome = await gateway.call(ann, "ship", {"order": "7"}, client=Person(where={"city": "Bern"}))

    assert outcome.text == "7 goes to Bern"
    with pytest.raises(RateLimited):
        await gateway.call(ann, "ship", {"order": "7"}, client=Person(where={"city": "Bern"}))


class Kitchen:
    """A tool that takes as long as a test wants."""

    def __init__(self) -> None:
        self.began = asyncio.Semaphore(0)
        self.end = asyncio.Event()
        self.app = App()
        self.app.tool(access="read")(self.cook)

    async def cook(self, dish: str) -> str:
        """Cook."""
        self.began.release()
        await self.end.wait()
        if dish == "burnt":
            raise ValueError("it burnt")
        return dish


class TestConcurrency:
    """Calls that take long."""

    @pytest.fixture
    def kitchen(self) -> Kitchen:
        """A kitchen."""
        return Kitchen()

    @pytest.fixture
    def app(self, kitchen: Kitchen) -> App:
        """The program."""
        return kitchen.app

    async def test_slots_are_free_again_however_a_call_ends(
        self, gateway: Gateway, served: Engine, ann: Principal, kitchen: Kitchen
    ) -> None:
        await limit(served, "tool cook: 2 concurrent calls")
        running = [asyncio.create_task(gateway.call(ann, "cook", {"dish": dish})) for dish in ("soup", "burnt")]
        for _ in running:
            await kitchen.began.acquire()

        with pytest.raises(RateLimited) as refused:
            await gateway.call(ann, "cook", {"dish": "pie"})
        running[0].cancel()
        await asyncio.wait(running[:1])
        kitchen.end.set()
        await running[1]

        assert refused.value.details["limit"] == "tool cook: concurrent calls"
        assert [outcome.text for outcome in await asyncio.gather(
            *(gateway.call(ann, "cook", {"dish": "pie"}) for _ in range(2))
        )] == ["pie", "pie"]  # fmt: skip
