"""`@holdfast/rpc` against a real server with services."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import App
from holdfast.core.config import Config
from holdfast.engine import open_engine
from tests.clients.node import PATIENCE
from tests.npm import NODE
from tests.server.conftest import make_key, running
from tests.server.wire import Site

DRIVER = Path(__file__).with_name("rpc_client.mjs")
CREATE = "lightapi.net/market/createOrder/0.1.0"

pytestmark = pytest.mark.req("RPC-05", "RPC-01")


@pytest.fixture
def orders() -> list[str]:
    """What was ordered."""
    return []


@pytest.fixture
async def market(config: Config, orders: list[str], no_models: None) -> AsyncIterator[Site]:
    """A server with a service that takes orders."""
    app = App()

    @app.service(CREATE)
    async def create_order(item: str, count: int = 1) -> dict[str, Any]:
        """Order something."""
        orders.append(item)
        return {"item": item, "count": count}

    server = config.server.model_copy(update={"port": 0})
    config = config.model_copy(update={"server": server})
    async with open_engine(config=config) as engine, engine.serving(app), running(engine, config) as site:
        yield site


async def run(site: Site, *steps: Any) -> Any:
    """What a page is told that takes these steps, one after another; the calls of a step are made at once."""
    given = {"url": f"http://127.0.0.1:{site.port}/rpc", "key": await make_key(site.engine), "steps": steps}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(NODE, DRIVER, stdin=pipe, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(PATIENCE):
        told, complaints = await process.communicate(json.dumps(given).encode())
    assert process.returncode == 0, complaints.decode()
    return json.loads(told)


async def test_a_page_calls_services_in_either_form_and_hears_each_answer(market: Site, orders: list[str]) -> None:
    host, service, action, version = CREATE.split("/")
    order = {"host": host, "service": service, "action": action, "version": version, "title": "Order", "success": "/ok"}
    many = [{"method": CREATE, "params": {"item": f"tea {n}"}} for n in range(9)]
    wrong: dict[str, Any] = {"method": CREATE, "params": {"item": 7}}

    batch, old, old_wrong, as_jsonrpc, unknown, told = await run(
        market,
        {"calls": [*many, wrong]},
        {"calls": [{"method": {**order, "data": {"item": "coffee"}}}]},
        {"calls": [{"method": {**order, "data": {"item": 7}}}]},
        {"calls": [{"method": {**order, "data": {"item": "cake", "count": 2}}}], "jsonrpc": True},
        {"calls": [{"method": "lightapi.net/market/noSuch/0.1.0"}]},
        {"notifications": [{"method": CREATE, "params": {"item": "milk"}}]},
    )

    assert [each["value"] for each in batch["told"][:9]] == [{"item": f"tea {n}", "count": 1} for n in range(9)]
    assert (batch["told"][9]["name"], batch["told"][9]["code"]) == ("RpcError", -32602)
    assert batch["told"][9]["status"]["code"] == "invalid_input"
    assert "item" in batch["told"][9]["status"]["description"]
    assert batch["requests"] == 1
    assert old["told"] == [{"value": {"item": "coffee", "count": 1}}]
    assert old_wrong["told"][0] == {**batch["told"][9], "message": old_wrong["told"][0]["message"]}
    assert as_jsonrpc["told"] == [{"value": {"item": "cake", "count": 2}}]
    assert unknown["told"][0]["code"] == -32601
    assert told["told"] == [{}]
    assert sorted(orders) == ["cake", "coffee", "milk", *(f"tea {n}" for n in range(9))]


async def test_a_page_without_a_key_is_told_that_it_needs_one(market: Site) -> None:
    await make_key(market.engine)  # ends that whoever is on this machine needs none

    (step,) = await run(market, {"calls": [{"method": CREATE}, {"method": CREATE}], "key": None})

    assert [each["name"] for each in step["told"]] == ["RpcError", "RpcError"]
    assert [(each["code"], each["status"]["code"]) for each in step["told"]] == [(-31401, "unauthenticated")] * 2
