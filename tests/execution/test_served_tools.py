"""Which tools a worker serves: the functions of its app, and the registered tools that it declares."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from holdfast import App
from holdfast.core.config import Config
from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine, open_engine
from holdfast.execution.executions import Execution
from holdfast.execution.served_tools import ServedTools
from holdfast.skills.sources.source import Choice
from tests.execution.backend import Service, with_calls_to_this_machine
from tests.execution.house import SERVED

pytestmark = pytest.mark.req("EDA-06")

PATIENCE = 30
COMMANDS = "select state from command where tenant_id = $1 and skill = $2"
WORKERS = "select count(*) from worker_presence where tenant_id = $1"
MISSING: dict[str, Any] = {"description": "None.", "content": {"application/json": {"schema": {"type": "object"}}}}
METHODS = [
    {"name": "item", "params": [{"name": "id", "required": True, "schema": {"type": "integer"}}]},
]
OF_KIND = {"rest": "get_items_by_id", "jsonrpc": "item"}
GIVEN = ({"id": 7}, {"id": 404})


class Shop(Service):
    """A back end with one thing to ask for, by REST and by JSON-RPC."""

    def __init__(self) -> None:
        super().__init__()
        self.will_answer("/items/7", lambda _: _json({"id": 7, "name": "tea"}))
        self.will_answer("/items/404", lambda _: _json({"error": "no such item"}, status=404))
        self.will_answer("/rpc", self._rpc)

    @property
    def document(self) -> bytes:
        """Its OpenAPI document."""
        parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        operation = {"operationId": OF_KIND["rest"], "parameters": [parameter], "responses": {"200": MISSING}}
        paths = {"/items/{id}": {"get": operation}}
        info = {"title": "Shop", "version": "1"}
        return json.dumps({"openapi": "3.0.3", "info": info, "servers": [{"url": self.url}], "paths": paths}).encode()

    async def _rpc(self, request: web.Request) -> web.Response:
        call = json.loads(self.asked[-1].body)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call["id"]}
        if call["method"] == "rpc.discover":
            answer["result"] = {"openrpc": "1.3.2", "info": {"title": "Shop"}, "methods": METHODS}
        elif call["params"]["id"] == 404:
            answer["error"] = {"code": -32050, "message": "no such item"}
        else:
            answer["result"] = call["params"] | {"name": "tea"}
        return await _json(answer)


async def _json(value: Any, **options: Any) -> web.Response:
    return web.json_response(value, **options)


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    """A back end on this machine."""
    service = Shop()
    async with service.serving():
        yield service


@pytest.fixture
def reaching(config: Config) -> Config:
    """The settings of a process that may call this machine."""
    return with_calls_to_this_machine(config)


@pytest.fixture(params=["rest", "jsonrpc"])
async def tool(request: pytest.FixtureRequest, reaching: Config, shop: Shop, no_models: None) -> str:
    """A tool of the source `shop`, of each kind."""
    async with open_engine(config=reaching) as engine:
        if request.param == "rest":
            await engine.sources.add("shop", document=shop.document, choice=Choice(everything=True))
        else:
            await engine.sources.add("shop", kind="jsonrpc", url=f"{shop.url}/rpc", choice=Choice(everything=True))
    return OF_KIND[request.param]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask which worker is there at each call."""
    monkeypatch.setattr("holdfast.execution.presence.FRESH", 0.0)


async def called(engine: Engine, tool: str) -> list[Execution]:
    """What comes of calls of a tool."""
    async with asyncio.timeout(PATIENCE):
        return [await engine.executions.call(tool, given) for given in GIVEN]


async def present(engine: Engine, count: str, *args: object) -> None:
    """Wait until a statement counts a worker."""
    async with asyncio.timeout(PATIENCE):
        while not await engine.database.value(count, *args):  # noqa: ASYNC110 - rows tell
            await asyncio.sleep(0.01)


def said(executions: Sequence[Execution]) -> list[tuple[object, ...]]:
    """What callers are told."""
    return [(each.status, each.text, each.result, each.error) for each in executions]


async def test_a_worker_that_cannot_reach_a_back_end_takes_no_call_of_a_process_that_can(
    config: Config, reaching: Config, tool: str
) -> None:
    async with AsyncExitStack() as stack:
        cut_off = await stack.enter_async_context(open_engine(config=config))
        caller = await stack.enter_async_context(open_engine(config=reaching))
        await stack.enter_async_context(cut_off.worker(App()))
        await present(caller, WORKERS)

        found = await called(caller, tool)

        assert [each.status for each in found] == ["done", "failed"]
        assert "no such item" in found[1].text
        assert await caller.database.all(COMMANDS, tool) == []


@pytest.mark.parametrize("declared", ["source:shop", "kind:{kind}", "{name}", "*"])
async def test_a_worker_that_declares_a_tool_takes_its_calls_with_the_same_result(
    config: Config, reaching: Config, tool: str, declared: str
) -> None:
    kind = next(kind for kind, name in OF_KIND.items() if name == tool)
    async with AsyncExitStack() as stack:
        cut_off = await stack.enter_async_context(open_engine(config=config))
        worker = await stack.enter_async_context(open_engine(config=reaching))
        here = await called(worker, tool)
        tools = [declared.format(kind=kind, name=f"{tool[:-1]}?")]
        await stack.enter_async_context(worker.worker(App(), tools=tools))
        await present(cut_off, SERVED, tool)

        there = await called(cut_off, tool)

        assert said(there) == said(here)
        assert [row["state"] for row in await worker.database.all(COMMANDS, tool)] == ["done", "done"]


async def test_a_call_that_must_go_to_a_worker_waits_for_one_that_declares_the_tool(
    reaching: Config, tool: str
) -> None:
    async with open_engine(config=reaching) as engine:
        await engine.database.run("update tool_t set mode = 'event' where host_id = $1 and name = $2", tool)
        async with engine.worker(App()):
            waited = await engine.executions.call(tool, {"id": 7}, timeout=0.2)
            calling = asyncio.create_task(engine.executions.call(tool, {"id": 7}, timeout=PATIENCE))
            async with engine.worker(App(), tools=["source:shop"]), asyncio.timeout(PATIENCE):
                served = await calling

    assert "no worker started it within its timeout of 0.2 seconds" in waited.text
    assert (served.status, served.result) == ("done", {"id": 7, "name": "tea"})


@pytest.mark.parametrize(
    ("declared", "served"),
    [
        ([], ServedTools()),
        (["kind:rest", "kind:mcp_server"], ServedTools(kinds=("rest", "mcp_server"))),
        (["source:git*"], ServedTools(sources=("git%",))),
        (["pay_?", "a\\b%"], ServedTools(names=(r"pay\__", r"a\\b\%"))),
        (["*"], ServedTools(names=("%",))),
    ],
)
def test_declarations_are_names_sources_and_kinds(declared: list[str], served: ServedTools) -> None:
    assert ServedTools.parse(declared) == served


@pytest.mark.parametrize(
    "declared", [["kind:function"], ["kind:java"], ["kind:nothing"], ["sources:shop"], [""], ["source:"], "github_*"]
)
def test_a_declaration_that_names_no_tools_is_refused(declared: Any) -> None:
    with pytest.raises(InvalidInput):
        ServedTools.parse(declared)
