"""Tools that call JSON-RPC services: what is sent, what comes back, and how a service is read by its own methods."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.config import Config
from holdfast.core.errors import InvalidInput, Unavailable
from holdfast.engine import Engine, open_engine
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.rest.jsonrpc import JSON_RPC
from holdfast.execution.rest.runner import HttpRunner
from holdfast.execution.runner import Result
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.jsonrpc.failures import RpcFailure
from holdfast.gateway.jsonrpc.methods import Methods
from holdfast.skills.request import Backend, RequestTemplate, RpcMethod
from holdfast.skills.sources.source import Choice
from holdfast.skills.tool import Tool
from tests.execution.backend import RUN, Keyring, Service, with_calls_to_this_machine
from tests.gateway.shop import caller

pytestmark = pytest.mark.req("MCP-11")

ORDER = "lightapi.net/market/createOrder/0.1.0"
METHODS: list[dict[str, Any]] = [
    {"name": ORDER, "params": [{"name": "item", "required": True, "schema": {"type": "string"}}]},
    {
        "name": "subtract",
        "paramStructure": "by-position",
        "params": [{"name": "minuend", "schema": {"type": "number"}}, {"name": "subtrahend", "schema": {}}],
    },
]


class Market(Service):
    """A service that describes itself, and echoes the calls of its methods."""

    def __init__(self) -> None:
        super().__init__()
        self.methods: list[Any] = [*METHODS]
        self.will_answer("/rpc", self._rpc)

    async def _rpc(self, request: web.Request) -> web.StreamResponse:
        call = json.loads(self.asked[-1].body)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call["id"]}
        if call["method"] == "rpc.discover":
            answer["result"] = {"openrpc": "1.3.2", "info": {"title": "Market"}, "methods": self.methods}
        elif call["params"] == {"item": "none"}:
            answer["error"] = {"code": -32050, "message": "sold out", "data": {"until": "Monday"}}
        else:
            answer["result"] = {"echo": call["params"]}
        return web.json_response(answer)


@pytest.fixture
async def market() -> AsyncIterator[Market]:
    """A JSON-RPC service."""
    service = Market()
    async with service.serving():
        yield service


@pytest.fixture
def config(config: Config) -> Config:
    """The settings of an engine that may call services on this machine."""
    return with_calls_to_this_machine(config)


@pytest.fixture
async def engine(config: Config, no_models: None) -> AsyncIterator[Engine]:
    """An engine that finds by words alone."""
    async with open_engine(config=config) as engine:
        yield engine


async def call(market: Market, method: RpcMethod, arguments: dict[str, Any], path: str = "/rpc") -> Result:
    request = RequestTemplate("POST", market.url + path, rpc=method)
    tool = Tool("order", "", {}, "jsonrpc", request=request, backend=Backend(headers={"X-Key": "{{secret:key}}"}))
    async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
        runner = HttpRunner(egress, Keyring(key="s3cret-0123456789"), dialect=JSON_RPC)
        return await runner.run(tool, arguments, RUN, timeout=5)


async def test_params_and_results_are_passed_on_unchanged(market: Market) -> None:
    params = {"item": "tea", "nested": {"a": [1, None, {"b": 1.5}]}, "nothing": None}

    result = await call(market, RpcMethod(ORDER), params)

    (asked,) = market.asked
    assert json.loads(asked.body) == {"jsonrpc": "2.0", "id": 1, "method": ORDER, "params": params}
    assert (asked.headers["Content-Type"], asked.headers["X-Key"]) == ("application/json", "s3cret-0123456789")
    assert (result.value, result.failed) == ({"echo": params}, False)


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [({"a": 1, "b": 2}, [1, 2]), ({"a": 1}, [1]), ({"b": 2}, [None, 2]), ({}, [])],
)
async def test_params_by_position_end_with_the_last_that_is_given(
    market: Market, arguments: dict[str, Any], sent: list[Any]
) -> None:
    await call(market, RpcMethod("subtract", ("a", "b")), arguments)

    assert json.loads(market.asked[0].body)["params"] == sent


async def test_an_error_of_the_service_is_a_failed_result_with_its_code_and_data(market: Market) -> None:
    result = await call(market, RpcMethod(ORDER), {"item": "none"})

    assert result.failed
    assert result.value == {"code": -32050, "message": "sold out", "data": {"until": "Monday"}}


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"[]",
        b'{"jsonrpc": "2.0", "id": 2, "result": 1}',
        b'{"jsonrpc": "2.0", "id": 1}',
        b'{"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": ""}}',
        b'{"jsonrpc": "1.0", "id": 1, "result": 1}',
        b"",
    ],
)
async def test_what_is_no_answer_to_the_request_is_an_error(market: Market, body: bytes) -> None:
    market.will_answer("/odd", body=body, content_type="application/json")

    with pytest.raises(Unavailable, match="did not answer with JSON-RPC"):
        await call(market, RpcMethod(ORDER), {}, "/odd")


async def test_an_http_error_without_json_rpc_is_a_failed_result_with_advice(market: Market) -> None:
    market.will_answer("/closed", status=401, text="who are you?")

    result = await call(market, RpcMethod(ORDER), {}, "/closed")

    assert result.failed
    assert (result.value["status"], "credentials" in str(result.value)) == (401, True)


async def test_a_service_describes_itself_and_its_methods_are_called(engine: Engine, market: Market) -> None:
    report = await engine.sources.add(
        "market", kind="jsonrpc", url=f"{market.url}/rpc", choice=Choice(everything=True), by="ann"
    )
    ordered = await engine.executions.call(report.added[0], {"item": "tea"}, user="ann")
    failed = await engine.executions.call(report.added[0], {"item": "none"}, user="ann")
    entry = await engine.tools.get(report.added[0])

    assert (report.source.kind, report.source.title) == ("jsonrpc", "Market")
    assert report.added == ("lightapi_net_market_createOrder_0_1_0", "subtract")
    assert (ordered.status, ordered.result) == ("done", {"echo": {"item": "tea"}})
    assert failed.status == "failed"
    assert "sold out" in (failed.error or "")
    assert (entry.tool.service, entry.tool.kind, entry.source) == (ORDER, "jsonrpc", "market")


async def test_clients_of_the_gateway_call_a_method_by_its_own_name(engine: Engine, market: Market) -> None:
    await engine.sources.add("market", kind="jsonrpc", url=f"{market.url}/rpc", choice=Choice(everything=True))
    gateway = Gateways(engine).of(await engine.database.tenant())
    methods = Methods(gateway, await caller(gateway), request_id="r-1")

    ordered = await methods.call(ORDER, {"item": "tea"})
    with pytest.raises(RpcFailure):
        await methods.call(ORDER, {"item": "none"})

    assert json.loads(ordered) == {"echo": {"item": "tea"}}
    assert [json.loads(asked.body)["method"] for asked in market.asked[1:]] == [ORDER, ORDER]


async def test_a_reload_asks_the_service_again(engine: Engine, market: Market) -> None:
    url, everything = f"{market.url}/rpc", Choice(everything=True)
    await engine.sources.add("market", kind="jsonrpc", url=url, choice=everything, pin="follow")
    market.methods = [METHODS[1], {"name": "add", "params": []}]

    report = await engine.sources.reload("market")

    assert (report.added, report.removed) == (("add",), ("lightapi_net_market_createOrder_0_1_0",))
    assert report.unchanged == ("subtract",)


async def test_a_service_id_that_another_tool_has_stays_with_it(engine: Engine, market: Market) -> None:
    url, everything = f"{market.url}/rpc", Choice(everything=True)
    await engine.sources.add("market", kind="jsonrpc", url=url, choice=everything)

    again = await engine.sources.add("mirror", kind="jsonrpc", url=url, choice=everything)

    tools = [(await engine.tools.get(name)).tool for name in again.added]
    assert [tool.service for tool in tools] == [None, None]
    assert again.added[0].startswith("mirror_")
    assert (await engine.sources.reload("mirror")).written is False


async def test_a_service_that_does_not_describe_itself_needs_a_document(engine: Engine, market: Market) -> None:
    market.will_answer("/silent", body=b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}')
    document = json.dumps({"openrpc": "1.3.2", "methods": METHODS}).encode()

    with pytest.raises(InvalidInput, match=r"rpc\.discover returned .*-32601"):
        await engine.sources.add("market", kind="jsonrpc", url=f"{market.url}/silent")
    report = await engine.sources.add(
        "market", document=document, base_url=f"{market.url}/rpc", choice=Choice(everything=True)
    )
    called = await engine.executions.call("subtract", {"minuend": 5}, user="ann")

    assert (report.source.kind, called.result) == ("jsonrpc", {"echo": [5]})


async def test_a_changed_address_of_the_service_takes_effect(engine: Engine, market: Market) -> None:
    document = json.dumps({"openrpc": "1.3.2", "methods": METHODS}).encode()
    choice = Choice(everything=True)
    added = await engine.sources.add("market", document=document, base_url=f"{market.url}/old", choice=choice)

    await engine.sources.change("market", version=added.source.version, base_url=f"{market.url}/rpc", document=document)
    called = await engine.executions.call("subtract", {"minuend": 5}, user="ann")

    assert called.result == {"echo": [5]}
