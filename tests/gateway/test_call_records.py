"""Calls through the gateway, each of them a row."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast import App, Run
from holdfast.access.principals import Principal
from holdfast.core.config import Config
from holdfast.core.errors import Unavailable
from holdfast.core.ids import uuid7
from holdfast.core.settings import ExecutionSettings
from holdfast.engine import Engine, open_engine
from holdfast.execution import call_records
from holdfast.execution.executions import Execution
from holdfast.execution.sweeper import ExecutionSweeper
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.skills.client import InputRequired
from tests.clock import Clock
from tests.execution.house import House
from tests.gateway.shop import MEMBER, Person, caller

pytestmark = pytest.mark.req("EXEC-02")

PATIENCE = 30
OF_ALL = "select * from tool_executions where tenant_id = $1 order by id"


class Till:
    """Tools of an app. What they do is seen from outside, and they can be held."""

    def __init__(self) -> None:
        self.begun = asyncio.Queue[UUID]()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.app = App()
        self.app.tool(idempotent=True)(self.look)
        self.app.tool(access="read")(self.count)
        self.app.tool(self.pay)
        self.app.tool(self.ship)
        self.app.service("shop.example/till/pay/1.0")(self.settle)

    async def look(self, bill: str) -> dict[str, str]:
        """Look at a bill."""
        return {"bill": bill}

    async def count(self, to: int) -> str:
        """Count."""
        return "1" * to

    async def pay(self, bill: str, run: Run) -> str:
        """Pay a bill."""
        self.begun.put_nowait(UUID(run.call_id))
        await self.go_on.wait()
        if bill == "lost":
            raise ValueError("there is no such bill")
        return f"{bill} is paid"

    async def settle(self, bill: str) -> str:
        """Settle a bill."""
        return f"{bill} is settled"

    async def ship(self, order: str, run: Run) -> str:
        """Ship an order, when its buyer says where to."""
        reply = await run.client.elicit("where", "Where to?", {"type": "object", "properties": {}})
        return f"{order} goes to {reply.content['city']}"


@pytest.fixture
def till() -> Till:
    """A till that pays at once."""
    return Till()


@pytest.fixture
def app(till: Till) -> App:
    """The program."""
    return till.app


@pytest.fixture
async def ann(gateway: Gateway) -> Principal:
    """A person who may do everything."""
    return await caller(gateway)


async def recorded(engine: Engine) -> list[Execution]:
    """The rows of all calls, oldest first, once what waits is written."""
    await engine.call_records.flush()
    return [await engine.executions.get(row["id"]) for row in await engine.database.all(OF_ALL)]


async def began(till: Till) -> UUID:
    """The execution that begins next."""
    async with asyncio.timeout(PATIENCE):
        return await till.begun.get()


async def test_a_call_of_a_tool_that_may_run_again_is_a_row_behind_its_answer(
    gateway: Gateway, served: Engine, ann: Principal
) -> None:
    before = await served.database.now()
    await gateway.call(ann, "look", {"bill": "7"})
    at_once = await served.database.all(OF_ALL)
    (row,) = await recorded(served)

    assert at_once == []
    assert (row.tool, row.tool_id) == ("look", (await served.tools.get("look")).id)
    assert (row.status, row.arguments, row.result, row.text) == ("done", {"bill": "7"}, {"bill": "7"}, '{"bill":"7"}')
    assert (row.user, row.agent, row.run_id, row.error) == ("ann", None, None, None)
    assert row.latency_ms is not None
    assert row.finished_at is not None
    assert before - timedelta(seconds=1) < row.created_at <= row.finished_at <= await served.database.now()


async def test_a_tool_that_only_reads_needs_no_row_before_it_runs(
    gateway: Gateway, served: Engine, ann: Principal
) -> None:
    await gateway.call(ann, "count", {"to": 3})

    assert await served.database.all(OF_ALL) == []
    assert [row.result for row in await recorded(served)] == ["111"]


@pytest.mark.req("EXEC-05")
async def test_a_call_that_must_not_run_twice_is_a_row_before_it_begins(
    gateway: Gateway, served: Engine, ann: Principal, till: Till
) -> None:
    till.go_on.clear()
    calling = asyncio.create_task(gateway.call(ann, "pay", {"bill": "7"}))
    id = await began(till)
    running = await served.executions.get(id)
    till.go_on.set()
    outcome = await calling
    (row,) = await recorded(served)

    assert (running.status, running.tool, running.arguments, running.user) == ("running", "pay", {"bill": "7"}, "ann")
    assert outcome.text == "7 is paid"
    assert (row.id, row.status, row.text, row.arguments) == (id, "done", "7 is paid", {"bill": "7"})
    assert row.finished_at is not None
    assert row.finished_at >= row.created_at


async def test_a_failed_call_is_a_row_with_its_error(gateway: Gateway, served: Engine, ann: Principal) -> None:
    await gateway.call(ann, "pay", {"bill": "lost"})

    (row,) = await recorded(served)
    assert (row.status, row.error) == ("failed", "ValueError: there is no such bill")


@pytest.mark.req("EXEC-05")
async def test_a_call_whose_process_died_becomes_unknown_and_a_person_decides(
    gateway: Gateway, served: Engine, ann: Principal, till: Till, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> None:
        """Lose the end of a call, as a process does that dies."""

    monkeypatch.setattr(call_records.CallRecords, "add", lose)
    await gateway.call(ann, "pay", {"bill": "7"})
    id = await began(till)
    await clock.set(await served.database.now() + timedelta(minutes=5))
    served.postgres.clear()  # its connections know the time of before

    lapsed = await ExecutionSweeper(served.postgres, ExecutionSettings()).lapse()
    unknown = await served.executions.list(status="unknown")
    again = await served.executions.decide(id, "again", by="ann")

    assert (lapsed, [row.id for row in unknown]) == (1, [id])
    assert (again.status, again.text, await began(till)) == ("done", "7 is paid", id)


async def test_a_caller_that_disconnects_leaves_a_cancelled_call(
    gateway: Gateway, served: Engine, ann: Principal, till: Till
) -> None:
    till.go_on.clear()
    calling = asyncio.create_task(gateway.call(ann, "pay", {"bill": "7"}))
    await began(till)

    calling.cancel()
    await asyncio.wait([calling])

    (row,) = await recorded(served)
    assert (row.status, row.error) == ("cancelled", "its caller disconnected; it may have taken effect")


@pytest.mark.req("EXEC-05")
async def test_a_call_whose_caller_disconnects_while_its_row_is_written_did_not_run(
    gateway: Gateway, served: Engine, ann: Principal, till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = type(served.database).all
    committed, answer = asyncio.Event(), asyncio.Event()

    async def slow(self: Any, statement: str, *args: Any) -> Any:
        rows = await real(self, statement, *args)
        if "before they begin" in statement:
            committed.set()
            await answer.wait()
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(type(served.database), "all", slow)
        calling = asyncio.create_task(gateway.call(ann, "pay", {"bill": "7"}))
        async with asyncio.timeout(PATIENCE):
            await committed.wait()
        calling.cancel()
        await asyncio.wait([calling])
        answer.set()
        async with asyncio.timeout(PATIENCE):
            while not served.call_records.has_values:  # noqa: ASYNC110 - the batch ends
                await asyncio.sleep(0)

    (row,) = await recorded(served)
    assert till.begun.empty()
    assert (row.status, row.error) == ("cancelled", "its caller disconnected before it began; it did not run")


async def test_a_call_can_be_cancelled_from_another_process(
    gateway: Gateway, served: Engine, ann: Principal, till: Till, config: Config
) -> None:
    till.go_on.clear()
    calling = asyncio.create_task(gateway.call(ann, "pay", {"bill": "7"}))
    id = await began(till)

    async with open_engine(config=config) as other:
        await other.executions.cancel(id, by="bob")
    async with asyncio.timeout(PATIENCE):
        outcome = await calling

    (row,) = await recorded(served)
    assert (outcome.status, "was cancelled" in outcome.text) == ("failed", True)
    assert (row.status, row.error) == ("cancelled", "it was cancelled by bob, and may have taken effect")


@pytest.mark.req("MCP-03")
async def test_a_call_that_asks_its_client_is_one_row_when_it_comes_back_with_the_answer(
    gateway: Gateway, served: Engine, ann: Principal
) -> None:
    with pytest.raises(InputRequired):
        await gateway.call(ann, "ship", {"order": "A-1"}, client=Person())
    waiting = await recorded(served)

    await gateway.call(ann, "ship", {"order": "A-1"}, client=Person(where={"city": "Bern"}))

    assert waiting == []
    assert [(row.status, row.text) for row in await recorded(served)] == [("done", "A-1 goes to Bern")]


async def test_a_call_of_the_engines_own_tools_is_a_row_without_what_they_hold(
    gateway: Gateway, served: Engine, ann: Principal
) -> None:
    await gateway.call(ann, "remember", {"content": "likes tea"})
    await gateway.call(ann, "recall", {"query": "tea"})

    rows = await recorded(served)
    assert [(row.tool, row.status, row.user) for row in rows] == [
        ("remember", "done", "ann"),
        ("recall", "done", "ann"),
    ]
    assert [(row.arguments, row.text, row.result) for row in rows] == [(None, "", None)] * 2


async def test_calls_of_users_and_agents_have_their_names(gateway: Gateway, served: Engine, app: App) -> None:
    await served.definitions.put("support", instructions="Help.")
    await served.tools.permit("look", {"agents": {"support": "execute"}})
    agent = await caller(gateway, scopes=MEMBER, agent="support")

    await gateway.call(agent, "look", {"bill": "7"})

    assert [(row.user, row.agent) for row in await recorded(served)] == [("ann", "support")]
    assert [row.tool for row in await served.executions.list(user="ann")] == ["look"]


@pytest.mark.req("RPC-01")
async def test_a_call_of_a_service_is_a_row(gateway: Gateway, served: Engine, ann: Principal) -> None:
    await gateway.call(ann, "shop.example/till/pay/1.0", {"bill": "7"})

    assert [(row.status, row.text) for row in await recorded(served)] == [("done", "7 is settled")]


async def test_a_row_has_the_beginning_of_a_large_result(gateway: Gateway, served: Engine, ann: Principal) -> None:
    outcome = await gateway.call(ann, "count", {"to": 200_000})

    (row,) = await recorded(served)
    assert len(outcome.text) == 200_000
    assert len(row.text) <= 64_000
    assert row.text.startswith("111")
    assert "bytes are missing" in row.text
    assert (row.result, row.has_output) == (row.text, False)


async def test_a_row_has_the_beginning_of_large_arguments_unless_the_call_can_be_repeated_by_it(
    gateway: Gateway, served: Engine, ann: Principal
) -> None:
    large = {"bill": "7" * 900_000}
    await gateway.call(ann, "look", large)
    await gateway.call(ann, "pay", large)

    looked, paid = sorted(await recorded(served), key=lambda row: row.tool)
    assert 1000 < len(looked.arguments["bill"]) <= 64_000
    assert looked.arguments["bill"].startswith("777")
    assert paid.arguments == large


async def test_arguments_that_are_too_large_are_refused(gateway: Gateway, served: Engine, ann: Principal) -> None:
    outcome = await gateway.call(ann, "look", {"bill": "7" * 1024 * 1024})

    assert (outcome.status, outcome.code) == ("failed", "too_large")
    assert "the limit is 1048576" in outcome.text
    assert await recorded(served) == []


async def test_the_records_of_a_tenant_leave_room_for_those_of_others(
    served: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_records, "MOST_BYTES", 100_000)
    await served.tenants.create("acme")
    acme = served.tenant(await served.tenants.id_of("acme"))

    def add(engine: Engine, input_params: Any) -> UUID:
        id = uuid7()
        record = call_records.CallRecord(id=id, tool="t", status="done", began=0, ended=0, input_params=input_params)
        served.call_records.add(engine.database, record)
        return id

    for _ in range(10):
        add(served, {"bill": "7" * 20_000})
    theirs = add(acme, {"bill": "8"})

    assert await served.call_records.dropped() == {await served.database.tenant(): 7}
    assert len(await recorded(served)) == 3
    assert (await acme.executions.get(theirs)).status == "done"


async def test_text_that_postgresql_cannot_store_is_recorded(gateway: Gateway, served: Engine, ann: Principal) -> None:
    await gateway.call(ann, "look", {"bill": "a\0b\ud83d"})

    (row,) = await recorded(served)
    assert row.result == {"bill": "a\0b\ud83d"}


async def test_calls_that_begin_together_share_a_commit(
    gateway: Gateway, served: Engine, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = statements_of(served, monkeypatch, "before they begin")

    await asyncio.gather(*(gateway.call(ann, "pay", {"bill": str(n)}) for n in range(50)))

    assert len(await recorded(served)) == 50
    assert len(commits) <= 3


async def test_a_call_that_cannot_be_recorded_first_is_not_made(
    gateway: Gateway, served: Engine, ann: Principal, till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("the database is away")

    monkeypatch.setattr(served.recorder, "_begin_call", away)

    with pytest.raises(Unavailable):
        await gateway.call(ann, "pay", {"bill": "7"})
    assert till.begun.empty()


async def test_records_wait_while_the_database_is_away(
    gateway: Gateway, served: Engine, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(call_records.CallRecords, "_send", away)
        await gateway.call(ann, "look", {"bill": "7"})
        await gateway.call(ann, "pay", {"bill": "8"})
        await served.call_records.flush()
        kept = served.call_records.has_values

    assert kept
    assert {(row.tool, row.status) for row in await recorded(served)} == {("look", "done"), ("pay", "done")}


async def test_records_that_find_no_room_are_counted_and_delay_no_call(
    gateway: Gateway,
    served: Engine,
    ann: Principal,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(call_records, "MOST", 2)

    with caplog.at_level(logging.WARNING):
        outcomes = [await gateway.call(ann, "look", {"bill": "7"}) for _ in range(5)]

    tenant = await served.database.tenant()
    assert {outcome.status for outcome in outcomes} == {"done"}
    assert await served.call_records.dropped() == {tenant: 3}
    assert sum("dropped the records" in line for line in caplog.messages) == 1
    assert len(await recorded(served)) == 2


async def test_a_record_that_the_database_refuses_takes_no_other_with_it(
    gateway: Gateway, served: Engine, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = call_records._encoded  # pyright: ignore[reportPrivateUsage]

    def spoiled(record: call_records.CallRecord) -> str:
        return real(record).replace('"look"', "null") if record.input_params == {"bill": "8"} else real(record)

    monkeypatch.setattr(call_records, "_encoded", spoiled)
    for bill in ("7", "8", "9"):
        await gateway.call(ann, "look", {"bill": bill})

    assert [row.arguments for row in await recorded(served)] == [{"bill": "7"}, {"bill": "9"}]
    assert sum((await served.call_records.dropped()).values()) == 1


async def test_an_orderly_stop_loses_no_record(config: Config, engine: Engine, till: Till, no_models: None) -> None:
    async with open_engine(config=config) as stopped, stopped.serving(till.app):
        gateway = Gateways(stopped, till.app).of(await stopped.database.tenant())
        who = await caller(gateway)
        await asyncio.gather(*(gateway.call(who, "look", {"bill": str(n)}) for n in range(1200)))

    assert len(await engine.database.all(OF_ALL)) == 1200


@pytest.mark.req("EDA-06")
async def test_a_call_by_a_worker_gives_a_result_that_is_too_large_for_a_record(
    gateway: Gateway, served: Engine, ann: Principal
) -> None:
    async def much(times: int) -> str:
        """Give much."""
        return "x" * times

    house = House(served)
    await house.put(much, mode="event", idempotent=True)
    await gateway.inventory.current()
    async with house.worker():
        async with asyncio.timeout(PATIENCE):
            while "much" not in (await gateway.tools(ann)).by_name:  # noqa: ASYNC110 - the inventory is read again
                await asyncio.sleep(0.05)
        outcome = await gateway.call(ann, "much", {"times": 900_000})

    (row,) = await recorded(served)
    assert outcome.text == "x" * 900_000
    assert (row.tool, row.status) == ("much", "done")


def statements_of(engine: Engine, monkeypatch: pytest.MonkeyPatch, part: str) -> list[str]:
    """Return a list of the statements that contain a text, which grows while they run."""
    found: list[str] = []
    real: Callable[..., Any] = type(engine.database)._call  # pyright: ignore[reportPrivateUsage]

    async def counted(self: Any, method: str, statement: str, *args: Any, **options: Mapping[str, Any]) -> Any:
        if part in statement:
            found.append(statement)
        return await real(self, method, statement, *args, **options)

    monkeypatch.setattr(type(engine.database), "_call", counted)
    return found
