"""What a call through the gateway holds while a back end works: no connection to the database."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from holdfast.core.config import Config
from holdfast.core.issuers import AccessSettings, Issuer
from holdfast.engine import open_engine
from holdfast.skills.request import BackendIdentity
from tests.access.issuing import SECRET, shared_token
from tests.execution.backend import Service
from tests.execution.identity.conftest import EVERYTHING, document
from tests.server.conftest import running
from tests.server.mcp_wire import begin, call, legacy, post
from tests.server.wire import Site

ISSUER = "https://login.example.com"
COUNT = "select count(*) from tool_t where host_id = $1"
TOOLS = ("get_order", "post_order")  # one reads; the other has a row before it begins
RULES = 'large: deny user "ann" tool "*" when amount > 100'
LIMITS = ("each user: 1000 requests per second", "each user of each tool: 3 concurrent calls")


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """The back end."""
    async with Service().serving() as service:
        yield service


@pytest.fixture
async def site(config: Config, service: Service, no_models: None) -> AsyncIterator[Site]:
    """A server with one connection to the database and all governance, before a back end that needs it to answer."""
    update = {
        "access": AccessSettings(
            issuers=(Issuer.model_validate({"issuer": ISSUER, "audience": "holdfast", "secret": SECRET}),)
        ),
        "execution": config.execution.model_copy(update={"allow_private": (f"127.0.0.1:{service.port}",)}),
        "database": config.database.model_copy(update={"pool_size": 1}),
    }
    config = config.model_copy(update=update)
    async with open_engine(config=config) as engine:
        own = engine.tenant(await engine.tenants.id_of("default"))

        async def counted(_: web.Request) -> web.StreamResponse:
            return web.json_response({"tools": await own.database.value(COUNT)})

        service.will_answer("/order", counted)
        await own.sources.add(
            "shop", document=document(service.url), choice=EVERYTHING, identity=BackendIdentity("signed")
        )
        for tool in TOOLS:
            await own.tools.permit(tool, {"users": "execute"})
        await own.rules.put(RULES)
        for limit in LIMITS:
            await (await own.quotas.limits()).set(limit, by="boss")
        async with running(engine, config) as site:
            yield site


@pytest.mark.req("MCP-10", "MCP-06", "MCP-07")
@pytest.mark.parametrize("tool", TOOLS)
async def test_no_connection_is_held_while_a_back_end_works(site: Site, service: Service, tool: str) -> None:
    token = shared_token(ISSUER)
    session = await begin(site, key=token)

    async with asyncio.timeout(10):
        modern = await call(site, tool, key=token)
        before = await post(site, session, legacy("tools/call", {"name": tool}), key=token)
        rpc = await site.ask("POST", "/rpc", key=token, json={"jsonrpc": "2.0", "id": 7, "method": tool})

    own = site.engine.tenant(await site.engine.tenants.id_of("default"))
    recorded = await own.audit.list(action="tool.call")
    assert modern.json()["result"]["structuredContent"] == {"tools": 2}
    assert before.json()["result"]["structuredContent"] == {"tools": 2}
    assert rpc.json()["result"] == {"tools": 2}
    assert ["Holdfast-Identity" in asked.headers for asked in service.asked] == [True] * 3
    assert [(each.target, each.outcome, each.user) for each in recorded] == [(tool, "done", "ann")] * 3
