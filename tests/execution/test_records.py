"""Calls outside of turns, each of them a row."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast.bus.workers import FINAL, ONCE
from holdfast.core.config import Config
from holdfast.core.errors import AlreadyExists, Busy, Conflict, InvalidInput, NotFound
from holdfast.core.ids import uuid7
from holdfast.core.settings import ExecutionSettings
from holdfast.engine import Engine, open_engine
from holdfast.execution.executions import Execution
from holdfast.execution.runner import IN_DOUBT
from holdfast.execution.sweeper import ExecutionSweeper
from holdfast.skills.tool import Tool
from tests.execution.house import House

pytestmark = pytest.mark.req("EXEC-02")

PATIENCE = 30
BEGIN = """
insert into tool_executions (tenant_id, id, tool, tool_id, input_params, status, key, leased_until)
values ($1, $2, 'pay', $3, $4, 'running', $5, holdfast.now()) returning id
"""
LEFT = """
insert into tool_executions (tenant_id, id, tool, tool_id, input_params, status, leased_until, correlation_id)
values ($1, $2, 'pay', $3, $4, 'running', holdfast.now() + $5::interval, $6)
"""
BEGIN_ANEW = "update tool_executions set status = 'unknown' where tenant_id = $1 and id = $2"
AGE = "update tool_executions set finished_at = holdfast.now() - interval '31 days' where tenant_id = $1 and id = $2"


class Till:
    """A tool that pays bills, once it is let go."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.stopped = asyncio.Event()
        self.go_on.set()

    async def pay(self, bill: str, copies: int = 1) -> dict[str, Any]:
        """Pay a bill."""
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        if bill == "unknown":
            raise ValueError("there is no such bill")
        self.paid.append(bill)
        return {"bill": bill, "copies": copies}


@pytest.fixture
def till() -> Till:
    """A till that pays at once."""
    return Till()


@pytest.fixture
async def house(engine: Engine, till: Till) -> House:
    """What runs the tool, here."""
    house = House(engine)
    await serve(house, till)
    return house


@pytest.fixture
async def elsewhere(config: Config) -> AsyncIterator[House]:
    """Another process."""
    async with open_engine(config=config) as other:
        yield House(other)


@pytest.fixture
async def away(engine: Engine, elsewhere: House, till: Till) -> House:
    """What has a worker run the tool, elsewhere."""
    house = House(engine)
    await serve(house, till, mode="event")
    elsewhere.functions = house.functions
    return house


async def serve(house: House, till: Till, **options: Any) -> Tool:
    """Register the till's tool, and have its function be found."""
    tool = await house.put(till.pay, **options)
    house.declare()
    return tool


async def lost(house: House, **options: Any) -> Execution:
    """A call whose caller died in the middle of it, found out: this process is not the one that made it."""
    row = await house.engine.database.one(
        BEGIN, uuid7(), (await house.tools.get("pay")).id, {"bill": "7", "copies": 1}, options.get("key")
    )
    assert row is not None
    sweeper = ExecutionSweeper(house.engine.postgres, ExecutionSettings())
    assert await sweeper.lapse() == 1
    return await house.executions.get(row["id"])


async def left(house: House, *, lease: float = 0) -> UUID:
    """A call that a worker was asked for by somebody who died since."""
    id, tool = uuid7(), house.functions["pay"]
    key = f"execution:{id}"
    await house.engine.database.run(LEFT, id, tool.id, {"bill": "7", "copies": 1}, timedelta(seconds=lease), key)
    headers = {FINAL: "true", ONCE: "true"}
    await house.engine.commands.submit("pay", {"bill": "7"}, correlation_id=key, max_attempts=1, headers=headers)
    return id


async def lapse(house: House) -> int:
    return await ExecutionSweeper(house.engine.postgres, ExecutionSettings()).lapse()


async def test_a_call_is_a_row_with_what_it_gave(house: House, till: Till) -> None:
    execution = await house.executions.call("pay", {"bill": "7"}, user="ann")

    assert (execution.tool, execution.status, execution.user) == ("pay", "done", "ann")
    assert execution.arguments == {"bill": "7", "copies": 1}, "with the defaults"
    assert (execution.text, execution.result) == ('{"bill":"7","copies":1}', {"bill": "7", "copies": 1})
    assert execution.tool_id == (await house.tools.get("pay")).id
    assert execution.finished_at is not None
    assert await house.executions.get(execution.id) == execution
    assert await house.executions.output(execution.id) == ("application/json", b'{"bill":"7","copies":1}')


async def test_a_call_that_fails_is_an_outcome(house: House) -> None:
    execution = await house.executions.call("pay", {"bill": "unknown"})

    assert (execution.status, execution.error) == ("failed", "ValueError: there is no such bill")
    assert execution.text == "pay failed: ValueError: there is no such bill"


@pytest.mark.req("SKILL-03")
async def test_arguments_that_do_not_fit_are_refused_before_anything_is_written(house: House, till: Till) -> None:
    with pytest.raises(InvalidInput, match=r"pay was not called: .*`bill` is missing"):
        await house.executions.call("pay", {})
    with pytest.raises(NotFound, match="there is no tool"):
        await house.executions.call("erase", {})

    assert (await house.executions.list(), till.paid) == ([], [])


@pytest.mark.req("SKILL-07")
async def test_an_agent_calls_what_it_may(house: House, till: Till) -> None:
    await house.engine.definitions.put("guest", instructions="Help.")
    await house.tools.permit("pay", {"agents": {"guest": "none"}})

    execution = await house.executions.call("pay", {"bill": "7"}, agent="guest")

    assert (execution.status, execution.agent, till.paid) == ("failed", "guest", [])
    assert "guest has no access" in execution.text


@pytest.mark.req("EXEC-05")
async def test_the_same_key_gives_what_the_first_call_gave(house: House, till: Till) -> None:
    first = await house.executions.call("pay", {"bill": "7"}, key="order-1")

    again = await house.executions.call("pay", {"bill": "7"}, key="order-1")
    with pytest.raises(AlreadyExists, match="the key 'order-1' is already used"):
        await house.executions.call("pay", {"bill": "8"}, key="order-1")

    assert (again, till.paid) == (first, ["7"])


@pytest.mark.req("EXEC-05")
async def test_the_same_key_finds_the_first_call_although_a_default_was_changed(house: House, till: Till) -> None:
    first = await house.executions.call("pay", {"bill": "7"}, key="order-1")
    tool = house.functions["pay"]
    schema = {"type": "object", "properties": {"bill": {"type": "string"}, "copies": {"default": 2}}}
    same: dict[str, Any] = {"description": "Pay.", "kind": "function", "reference": tool.reference, "mode": "inline"}
    await house.tools.put("pay", parameters=schema, version=tool.version, **same)

    again = await house.executions.call("pay", {"bill": "7"}, key="order-1")

    assert (again, till.paid) == (first, ["7"])


@pytest.mark.req("EXEC-05")
async def test_the_same_key_is_busy_as_long_as_the_first_call_is_made(house: House, till: Till) -> None:
    till.go_on.clear()
    calling = asyncio.create_task(house.executions.call("pay", {"bill": "7"}, key="order-1"))
    async with asyncio.timeout(PATIENCE):
        await till.begun.wait()

        with pytest.raises(Busy, match="is running"):
            await house.executions.call("pay", {"bill": "7"}, key="order-1")
        till.go_on.set()
        execution = await calling

    assert (execution.status, till.paid) == ("done", ["7"])


async def test_a_call_that_another_process_cancels_stops(house: House, elsewhere: House, till: Till) -> None:
    till.go_on.clear()
    calling = asyncio.create_task(house.executions.call("pay", {"bill": "7"}))
    async with asyncio.timeout(PATIENCE):
        await till.begun.wait()
        (running,) = await elsewhere.executions.list(status="running")

        cancelled = await elsewhere.executions.cancel(running.id, by="bob")
        execution = await calling
        await till.stopped.wait()

    assert (cancelled.status, execution.status, till.paid) == ("cancelled", "cancelled", [])
    assert execution.error == "it was cancelled by bob, and may have taken effect"


async def test_a_call_whose_caller_goes_away_is_cancelled(house: House, till: Till) -> None:
    till.go_on.clear()
    calling = asyncio.create_task(house.executions.call("pay", {"bill": "7"}))
    async with asyncio.timeout(PATIENCE):
        await till.begun.wait()
        calling.cancel()
        await asyncio.wait([calling])

    (execution,) = await house.executions.list()
    assert (execution.status, till.stopped.is_set()) == ("cancelled", True)


async def test_what_has_ended_is_not_cancelled(house: House) -> None:
    done = await house.executions.call("pay", {"bill": "7"})

    assert await house.executions.cancel(done.id) == done
    with pytest.raises(NotFound):
        await house.executions.cancel(uuid7())


async def test_a_call_has_the_time_that_it_is_given(house: House, till: Till) -> None:
    till.go_on.clear()

    execution = await house.executions.call("pay", {"bill": "7"}, timeout=0.1)
    with pytest.raises(InvalidInput, match="the timeout cannot be -1"):
        await house.executions.call("pay", {"bill": "7"}, timeout=-1)

    assert (execution.status, execution.error) == (
        "failed",
        f"it exceeded its timeout of 0.1 seconds. {IN_DOUBT}",
    )


@pytest.mark.req("EXEC-05")
async def test_a_call_whose_caller_died_is_unknown_and_its_key_repeats_nothing(house: House, till: Till) -> None:
    found = await lost(house, key="order-1")

    assert (found.status, found.result) == ("unknown", None)
    assert "may have taken effect" in (found.error or "")
    with pytest.raises(Conflict, match="Have a person decide"):
        await house.executions.call("pay", {"bill": "7"}, key="order-1")
    assert till.paid == []


@pytest.mark.req("EXEC-05")
async def test_a_call_that_may_be_repeated_has_failed_when_its_caller_died(engine: Engine, till: Till) -> None:
    house = House(engine)
    await serve(house, till, idempotent=True)

    found = await lost(house)

    assert (found.status, "can be called again" in (found.error or "")) == ("failed", True)


@pytest.mark.req("EXEC-05")
@pytest.mark.parametrize(
    ("finding", "error"), [("done", None), ("failed", "bob found out that it did not take effect")]
)
async def test_a_person_says_what_became_of_an_unknown_call(
    house: House, till: Till, finding: Any, error: str | None
) -> None:
    unknown = await lost(house, key="order-1")

    decided = await house.executions.decide(unknown.id, finding, by="bob")

    assert (decided.status, decided.error) == (finding, error)
    assert await house.executions.call("pay", {"bill": "7"}, key="order-1") == decided
    assert till.paid == []
    with pytest.raises(Conflict, match=f"it is {finding}"):
        await house.executions.decide(unknown.id, "again", by="bob")


@pytest.mark.req("EXEC-05")
async def test_a_person_has_an_unknown_call_made_again_once(house: House, till: Till) -> None:
    unknown = await lost(house, key="order-1")

    decided = await house.executions.decide(unknown.id, "again", by="bob")

    assert (decided.id, decided.status, till.paid) == (unknown.id, "done", ["7"])
    with pytest.raises(Conflict):
        await house.executions.decide(unknown.id, "again", by="bob")
    with pytest.raises(InvalidInput, match="is not a valid decision"):
        await house.executions.decide(unknown.id, "maybe", by="bob")  # pyright: ignore[reportArgumentType]


@pytest.mark.req("EXEC-05", "EDA-06")
async def test_what_no_worker_had_begun_when_its_caller_died_was_not_made_and_never_is(
    away: House, elsewhere: House, till: Till
) -> None:
    id = await left(away)

    given_up = await lapse(away)
    found = await away.executions.get(id)
    async with elsewhere.worker():
        await away.executions.call("pay", {"bill": "8"})

    assert (given_up, found.status, "it did not run" in (found.error or "")) == (1, "failed", True)
    assert (await away.engine.commands.get(f"execution:{id}")).state == "cancelled"
    assert till.paid == ["8"]


@pytest.mark.req("EXEC-05", "EDA-06")
async def test_a_worker_is_stopped_whose_caller_died_and_the_call_is_unknown(
    away: House, elsewhere: House, till: Till
) -> None:
    till.go_on.clear()
    async with elsewhere.worker(), asyncio.timeout(PATIENCE):
        id = await left(away)
        await till.begun.wait()
        await lapse(away)
        await till.stopped.wait()

    decided = await away.executions.decide(id, "failed", by="bob")

    assert (decided.status, till.paid) == ("failed", [])


@pytest.mark.req("EXEC-05", "EDA-06")
async def test_what_a_worker_answered_after_its_caller_died_is_what_the_call_gave(
    away: House, elsewhere: House, till: Till
) -> None:
    async with elsewhere.worker(), asyncio.timeout(PATIENCE):
        id = await left(away)
        await away.engine.commands.result(f"execution:{id}")

    given_up = await lapse(away)

    found = await away.executions.get(id)
    assert (given_up, found.status, found.result) == (0, "done", {"bill": "7", "copies": 1})
    assert found.text == '{"bill":"7","copies":1}'


@pytest.mark.req("EDA-06")
async def test_who_cancels_a_call_stops_its_worker_though_the_caller_is_gone(
    away: House, elsewhere: House, till: Till
) -> None:
    till.go_on.clear()
    async with elsewhere.worker(), asyncio.timeout(PATIENCE):
        id = await left(away, lease=PATIENCE)
        await till.begun.wait()
        cancelled = await away.executions.cancel(id, by="bob")
        await till.stopped.wait()

    assert (cancelled.status, till.paid) == ("cancelled", [])
    assert (await away.engine.commands.get(f"execution:{id}")).state == "cancelled"


async def test_what_was_called_is_listed_the_newest_first(house: House) -> None:
    made = [await house.executions.call("pay", {"bill": bill}) for bill in ("1", "unknown", "3")]

    listed = await house.executions.list()
    failed = await house.executions.list(tool="pay", status="failed")
    page = await house.executions.list(tool="pay", limit=1, before=made[2].id)

    assert listed == made[::-1]
    assert failed == page == [made[1]]
    with pytest.raises(InvalidInput, match="is not a status"):
        await house.executions.list(status="lost")  # pyright: ignore[reportArgumentType]


async def test_no_page_of_a_tool_leaves_out_a_call_that_was_made_again(house: House) -> None:
    made = [await house.executions.call("pay", {"bill": bill}) for bill in ("1", "2", "3")]
    await house.engine.database.run(BEGIN_ANEW, made[0].id)
    await house.executions.decide(made[0].id, "again", by="bob")

    pages, before = list[UUID](), None
    while page := await house.executions.list(tool="pay", limit=1, before=before):
        before = page[0].id
        pages.append(before)

    assert pages == [execution.id for execution in made[::-1]]


async def test_what_a_call_gave_before_it_was_made_again_is_not_its_output(house: House) -> None:
    text = "y" * 2_000_000

    async def much() -> str:
        """Give much."""
        return text

    await house.put(much)
    house.declare()
    first = await house.executions.call("much")
    await house.engine.database.run(BEGIN_ANEW, first.id)
    text = "little"
    again = await house.executions.decide(first.id, "again", by="bob")

    assert (first.has_output, again.has_output, again.text) == (True, False, "little")
    assert await house.executions.output(first.id) == ("text/plain; charset=utf-8", b"little")


async def test_the_whole_output_is_kept_where_a_row_holds_a_part(house: House) -> None:
    async def much() -> list[str]:
        """Give much."""
        return ["x" * 1000] * 2000

    await house.put(much)
    house.declare()

    execution = await house.executions.call("much")
    kind, whole = await house.executions.output(execution.id)

    assert (kind, len(whole), execution.has_output) == ("application/json", 2000 * 1003 + 1, True)
    assert execution.text.endswith(f"are stored as the output of the execution {execution.id}]")


async def test_calls_that_ended_long_ago_are_deleted_with_their_outputs(house: House) -> None:
    old, new = [await house.executions.call("pay", {"bill": bill}) for bill in ("1", "2")]
    await house.engine.database.run(AGE, old.id)
    sweeper = ExecutionSweeper(house.engine.postgres, ExecutionSettings(keep_days=30))

    swept = await sweeper.sweep()

    assert (swept, await house.executions.list()) == (1, [new])


@pytest.mark.req("EXEC-05")
async def test_an_unknown_call_is_kept_until_a_person_has_decided(house: House, till: Till) -> None:
    unknown = await lost(house, key="order-1")
    await house.engine.database.run(AGE, unknown.id)
    sweeper = ExecutionSweeper(house.engine.postgres, ExecutionSettings(keep_days=30))

    swept = await sweeper.sweep()

    assert (swept, await house.executions.list(status="unknown")) == (0, [await house.executions.get(unknown.id)])
    with pytest.raises(Conflict, match="Have a person decide"):
        await house.executions.call("pay", {"bill": "7"}, key="order-1")
    assert till.paid == []


async def test_nothing_looks_for_cancelled_calls_once_the_engine_is_closed(config: Config, till: Till) -> None:
    async with open_engine(config=config) as engine:
        house = House(engine)
        await serve(house, till)
        await house.executions.call("pay", {"bill": "7"})

    assert not [task for task in asyncio.all_tasks() if "executions" in task.get_name()]


@pytest.mark.req("ENG-03")
async def test_another_tenant_sees_none_of_it(engine: Engine, house: House) -> None:
    await engine.tenants.create("acme")
    done = await house.executions.call("pay", {"bill": "7"})
    other = House(engine.tenant("acme"))

    with pytest.raises(NotFound):
        await other.executions.get(done.id)
    assert await other.executions.list() == []
