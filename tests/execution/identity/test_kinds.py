"""Every kind of service learns who calls, and the engine says that it is itself when it asks what they have."""

from typing import Any

import jwt
import pytest
from aiohttp import web

from holdfast.engine import Engine
from holdfast.skills.request import BackendIdentity
from tests.execution.backend import Service
from tests.execution.identity.conftest import EVERYTHING, SECRET, told
from tests.execution.identity.test_token_exchange import exchange, token_of
from tests.oauth.authorization_server import SmallServer

pytestmark = pytest.mark.req("MCP-06")

HEADER = "Holdfast-Identity"
METHODS: dict[str, Any] = {
    "openrpc": "1.3.2",
    "info": {"title": "Market", "version": "1"},
    "methods": [{"name": "price", "params": [], "result": {"name": "price", "schema": {}}}],
}


def claims(token: str) -> dict[str, Any]:
    """The claims of a token."""
    return jwt.decode(token.removeprefix("Bearer "), options={"verify_signature": False})


@pytest.fixture
def market(shop: Service) -> Service:
    """A JSON-RPC service that describes itself."""

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json()
        result = METHODS if asked["method"] == "rpc.discover" else {"price": 7}
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    shop.will_answer("/rpc", answer)
    return shop


async def test_a_json_rpc_service_learns_who_calls_and_that_the_engine_asks_for_its_methods(
    engine: Engine, market: Service
) -> None:
    identity = BackendIdentity("signed")
    await engine.sources.add("market", kind="jsonrpc", url=f"{market.url}/rpc", choice=EVERYTHING, identity=identity)

    done = await engine.executions.call("price", user="ann")

    discovery, call = (claims(headers[HEADER]) for headers in told(market))
    assert done.result == {"price": 7}
    assert not {"sub", "agent", "tool"} & discovery.keys()
    assert (call["sub"], call["tool"], call["aud"]) == ("ann", "price", market.url)


async def test_what_a_service_has_is_read_with_the_engine_s_own_token(
    engine: Engine, market: Service, authority: SmallServer
) -> None:
    await engine.secrets.set("client", SECRET)
    await engine.sources.add(
        "market", kind="jsonrpc", url=f"{market.url}/rpc", choice=EVERYTHING, identity=exchange(authority)
    )

    await engine.executions.call("price", user="ann", token=token_of("ann"))

    discovery, call = (headers["Authorization"] for headers in told(market))
    assert [each["grant_type"].rpartition(":")[2] for each in authority.asked] == [
        "client_credentials",
        "token-exchange",
    ]
    assert discovery != call
    assert claims(call)["aud"] == "shop"


async def test_a_graphql_service_learns_who_calls(engine: Engine, shop: Service) -> None:
    shop.will_answer("/graphql", text='{"data": {"total": 7}}', content_type="application/json")
    await engine.sources.add(
        "shop",
        kind="graphql",
        document=b"type Query { total: Int }",
        choice=EVERYTHING,
        base_url=f"{shop.url}/graphql",
        identity=BackendIdentity("signed"),
    )
    (tool,) = (await engine.sources.get("shop")).tools

    done = await engine.executions.call(tool.name, user="ann")

    [headers] = told(shop)
    assert done.result == 7
    assert claims(headers[HEADER])["sub"] == "ann"
