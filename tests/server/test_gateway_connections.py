"""What a call through the gateway holds while a back end works: no connection to the database."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from holdfast.core.config import Config
from holdfast.engine import open_engine
from tests.execution.backend import Service
from tests.server.conftest import running
from tests.server.mcp_wire import begin, call, legacy, post
from tests.server.wire import Site

TOOL = "find_parcel"
COUNT = "select count(*) from tool_t where host_id = $1"


@pytest.fixture
async def site(config: Config, no_models: None) -> AsyncIterator[Site]:
    """A server with one connection to the database, in front of a back end that needs it to answer."""
    async with Service().serving() as parcels:
        execution = config.execution.model_copy(update={"allow_private": (f"127.0.0.1:{parcels.port}",)})
        database = config.database.model_copy(update={"pool_size": 1})
        config = config.model_copy(update={"execution": execution, "database": database})
        async with open_engine(config=config) as engine:

            async def counted(_: web.Request) -> web.StreamResponse:
                return web.json_response({"tools": await engine.database.value(COUNT)})

            parcels.will_answer("/parcels", counted)
            await engine.tools.put(
                TOOL, description="It.", parameters={}, kind="rest", method="GET", endpoint=f"{parcels.url}/parcels"
            )
            async with running(engine, config) as site:
                yield site


@pytest.mark.req("MCP-10")
async def test_no_connection_is_held_while_a_back_end_works(site: Site) -> None:
    session = await begin(site)
    request = {"jsonrpc": "2.0", "id": 7, "method": TOOL}

    async with asyncio.timeout(10):
        modern = await call(site, TOOL)
        before = await post(site, session, legacy("tools/call", {"name": TOOL}))
        rpc = await site.ask("POST", "/rpc", json=request)

    assert modern.json()["result"]["structuredContent"] == {"tools": 1}
    assert before.json()["result"]["structuredContent"] == {"tools": 1}
    assert rpc.json()["result"] == {"tools": 1}
