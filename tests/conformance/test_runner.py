"""What every way to run a tool promises: functions and HTTP back ends, in this process and by a worker."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.config import Config, load_config
from holdfast.engine import Engine, open_engine
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.outcomes import NOTHING, Outcome
from holdfast.execution.rest import HttpRunner
from holdfast.skills.tool import Mode, Tool
from tests.execution.backend import Keyring, Service
from tests.execution.house import House, alone

pytestmark = pytest.mark.req("EDA-06", "EXEC-01", "EXEC-02")

PATIENCE = 30
VALUE: dict[str, Any] = {"a": [1, True, None, 1.5], "b": {"c": ""}}
STRANGE = "日本 \U0001f600 \u202e é\n"
BIG = [{"number": number, "text": "x" * 100} for number in range(3000)]
BEGIN = """
insert into tool_executions (tenant_id, id, tool, status, correlation_id) values ($1, $2, 'whole', 'running', $3)
"""
WHOLE = "y" * 1_500_000  # more than a row or a record holds
HUGE = [{"number": number, "text": "ü" * 1000} for number in range(2500)]  # more than 4 MB of JSON
ACTS = ("value", "nothing", "strange", "fails", "breaks", "odd", "big", "whole", "huge")


class Acts:
    """Tools that behave in one way each, all of one kind."""

    def __init__(self, house: House, mode: Mode) -> None:
        self.house = house
        self.mode: Mode = mode
        self.begun = asyncio.Queue[str]()
        self.stopped = asyncio.Event()
        self.go_on = asyncio.Event()

    async def tool(self, act: str) -> Tool:
        """The tool that does it."""
        raise NotImplementedError

    async def slow(self, name: str) -> str:
        """Take until it is let go, and say when it was stopped."""
        self.begun.put_nowait(name)
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return name

    async def outcome(self, act: str, **options: Any) -> Outcome:
        """What comes of it."""
        async with asyncio.timeout(PATIENCE):
            return await self.house.run(await self.tool(act), **options)


class FunctionActs(Acts):
    """Functions of a program."""

    async def tool(self, act: str) -> Tool:
        known = self.house.functions.get(act)
        return known or await self.house.put(getattr(self, f"_{act}"), mode=self.mode, name=act)

    async def _value(self) -> Any:
        return VALUE

    def _nothing(self) -> None:
        return

    async def _strange(self) -> Any:
        return {STRANGE: STRANGE}

    async def _fails(self) -> None:
        raise ValueError("there is no such parcel")

    def _breaks(self) -> None:
        raise ConnectionError

    async def _odd(self) -> object:
        return object()

    async def _big(self) -> Any:
        return BIG

    async def _whole(self) -> Any:
        return WHOLE

    async def _huge(self) -> Any:
        return HUGE

    async def _slow(self, name: str = "") -> str:
        return await self.slow(name)


class RestActs(Acts):
    """Operations of an HTTP service."""

    def __init__(self, house: House, mode: Mode, service: Service) -> None:
        super().__init__(house, mode)
        self._url = service.url
        service.will_answer("/value", lambda _: _json(VALUE))
        service.will_answer("/nothing", status=204)
        service.will_answer("/strange", lambda _: _json({STRANGE: STRANGE}))
        service.will_answer("/fails", status=404, text="there is no such parcel")
        service.will_answer("/odd", body=b"\x89PNG\0\xff", content_type="image/png")
        service.will_answer("/big", lambda _: _json(BIG))
        service.will_answer("/whole", text=WHOLE)
        service.will_answer("/huge", lambda _: _json(HUGE))
        service.will_answer("/slow", self._slow)

    async def tool(self, act: str) -> Tool:
        url = "http://127.0.0.1:9/breaks" if act == "breaks" else f"{self._url}/{act}"
        known = await self.house.tools.by_names([act])
        return (
            known.get(act)
            or (
                await self.house.tools.put(
                    act,
                    description=act,
                    parameters={"type": "object", "properties": {"name": {"type": "string"}}},
                    kind="rest",
                    method="GET",
                    endpoint=url,
                    mode=self.mode,
                )
            ).tool
        )

    async def _slow(self, request: web.Request) -> web.Response:
        slow = asyncio.ensure_future(self.slow(request.query.get("name", "")))
        while not slow.done():
            await asyncio.wait({slow}, timeout=0.05)
            if request.transport is None or request.transport.is_closing():  # who asked has hung up
                slow.cancel()
        return await _json(await slow)


async def _json(value: Any) -> web.Response:
    return web.json_response(value)


@pytest.fixture
def config(database_url: str, tmp_path: Path) -> Config:
    """Settings of an engine on the test's database."""
    flags = {"database.url": database_url, "data": tmp_path / "data", "memory.embedding.fetch": False}
    return load_config(flags, environ={}, cwd=tmp_path)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A back end."""
    async with Service().serving() as service:
        yield service


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    """A way out that reaches the test's own back end."""
    async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
        yield egress


@pytest.fixture(params=["function", "rest"])
def kind(request: pytest.FixtureRequest) -> str:
    """What runs."""
    return request.param


@pytest.fixture(params=["inline", "event"])
async def acts(
    request: pytest.FixtureRequest, kind: str, config: Config, engine: Engine, egress: Egress, service: Service
) -> AsyncIterator[Acts]:
    """Tools of each kind, run each way; a worker has an engine of its own, as another process would."""
    mode: Mode = request.param
    house = House(engine, rest=HttpRunner(egress, Keyring()))
    acts = FunctionActs(house, mode) if kind == "function" else RestActs(house, mode, service)
    if mode == "inline":
        yield acts
        return
    for act in (*ACTS, "slow"):
        await acts.tool(act)
    async with open_engine(config=config) as other:
        elsewhere = House(other, rest=HttpRunner(egress, Keyring()))
        elsewhere.functions = house.functions
        async with elsewhere.worker("kind:rest"):
            yield acts


async def test_a_result_is_text_for_the_model_and_json_for_the_record(acts: Acts) -> None:
    outcome = await acts.outcome("value")

    assert (outcome.status, outcome.result, outcome.error, outcome.whole) == ("done", VALUE, None, None)
    assert outcome.text == '{"a":[1,true,null,1.5],"b":{"c":""}}'


async def test_nothing_is_a_result_that_says_so(acts: Acts) -> None:
    outcome = await acts.outcome("nothing")

    assert (outcome.status, outcome.text, outcome.result) == ("done", NOTHING, None)


async def test_text_of_any_kind_comes_back_as_it_was(acts: Acts) -> None:
    outcome = await acts.outcome("strange")

    assert outcome.result == {STRANGE: STRANGE}


async def test_a_failure_is_a_text_that_the_model_reads(acts: Acts) -> None:
    outcome = await acts.outcome("fails")

    assert outcome.status == "failed"
    assert "there is no such parcel" in outcome.text
    assert outcome.text.startswith("fails failed: ")
    assert "Traceback" not in outcome.text


async def test_an_exception_is_a_text_that_the_model_reads(acts: Acts) -> None:
    outcome = await acts.outcome("breaks")

    assert (outcome.status, outcome.result) == ("failed", None)
    assert outcome.text == f"breaks failed: {outcome.error}"
    assert outcome.error


async def test_what_is_no_json_is_told_and_harms_nobody(acts: Acts, kind: str) -> None:
    outcome = await acts.outcome("odd")

    told = ("failed", "cannot be encoded as JSON") if kind == "function" else ("done", "image/png")
    assert (outcome.status, told[1] in outcome.text) == (told[0], True)
    assert (await acts.outcome("value")).status == "done"


async def test_a_big_output_is_shortened_for_the_model_and_kept(acts: Acts) -> None:
    outcome = await acts.outcome("big", max_output_bytes=5000)

    assert (outcome.status, outcome.result) == ("done", BIG)
    assert len(outcome.text.encode()) <= 5000
    assert outcome.text.startswith('[{"number":0')


async def test_what_takes_too_long_is_stopped_and_told(acts: Acts) -> None:
    outcome = await acts.outcome("slow", timeout=1)

    assert outcome.status == "failed"
    assert "1 second" in outcome.text or "longer than the 1" in outcome.text
    assert "may have taken effect" in outcome.text
    async with asyncio.timeout(PATIENCE):
        await acts.stopped.wait()


async def test_who_cancels_the_caller_stops_the_tool(acts: Acts) -> None:
    calling = asyncio.create_task(acts.outcome("slow", timeout=PATIENCE))
    async with asyncio.timeout(PATIENCE):
        await acts.begun.get()

        calling.cancel()
        await asyncio.wait([calling])
        await acts.stopped.wait()

    assert calling.cancelled()


async def test_two_calls_at_once_know_their_own_arguments(acts: Acts) -> None:
    tool = await acts.tool("slow")
    async with asyncio.timeout(PATIENCE):
        calling = [asyncio.create_task(acts.house.run(tool, {"name": name})) for name in ("one", "two")]
        begun = {await acts.begun.get(), await acts.begun.get()}
        acts.go_on.set()
        outcomes = await asyncio.gather(*calling)

    assert begun == {"one", "two"}
    assert [outcome.result for outcome in outcomes] == ["one", "two"]


@pytest.mark.parametrize("acts", ["event"], indirect=True)
@pytest.mark.parametrize("act", ACTS)
async def test_a_worker_gives_exactly_what_this_process_gives(acts: Acts, act: str) -> None:
    tool, run = await acts.tool(act), alone()
    await acts.house.engine.database.run(BEGIN, run.call_id, run.key)

    there = await acts.house.run(tool, run=run, max_output_bytes=5000)
    here = await acts.house.run(replace(tool, mode="inline"), max_output_bytes=5000, mode="inline")

    assert _told(there) == _told(here)


async def test_what_no_record_holds_comes_back_whole(acts: Acts) -> None:
    tool, run = await acts.tool("whole"), alone()
    await acts.house.engine.database.run(BEGIN, run.call_id, run.key)

    outcome = await acts.house.run(tool, run=run)

    assert (outcome.status, outcome.whole) == ("done", WHOLE.encode())


def _told(outcome: Outcome) -> tuple[object, ...]:
    return outcome.status, outcome.text, outcome.result, outcome.error, outcome.whole, outcome.content_type
