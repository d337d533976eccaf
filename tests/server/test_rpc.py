from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import App
from holdfast.core.config import Config
from holdfast.engine import open_engine
from tests.agents.stage import Player, calls
from tests.gateway.jsonrpc.mutations import messages
from tests.server.chatting import say
from tests.server.conftest import make_key, running
from tests.server.wire import Reply, Site, Wire

pytestmark = pytest.mark.req("RPC-01")

JSON = {"Content-Type": "application/json"}
CREATE = "shop.example/market/createOrder/1.0"
LOOK = "shop.example/market/look/1.0"
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {"parcel": {"type": "string"}, "amount": {"type": "integer", "default": 1}},
    "required": ["parcel"],
}
FUZZ = 400


@pytest.fixture
def app() -> App:
    """A program with services, one of which its agent has."""
    app = App("shop")

    @app.service(CREATE, schema=ORDER)
    async def create_order(order: dict[str, Any]) -> dict[str, Any]:
        """Order something."""
        if order["parcel"] == "broken":
            raise KeyError("inner secret")
        return {"ordered": order}

    @app.service(LOOK, access="read")
    async def look(order: str) -> str:
        """Look at an order."""
        return order

    app.agent("support", tools=[create_order], memory=False)
    return app


@pytest.fixture
async def site(config: Config, app: App, no_models: None) -> AsyncIterator[Site]:
    """A server that serves the program."""
    async with (
        open_engine(config=config) as engine,
        engine.serving(app),
        running(engine, config, app=app) as site,
    ):
        yield site


def request(method: str = CREATE, params: Any = None, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {"parcel": "AB"} if params is None else params, **more}


async def rpc(wire: Wire | Site, message: Any, **more: Any) -> Reply:
    return await wire.ask("POST", "/rpc", json=message, **more)


async def test_every_answer_of_json_rpc_is_a_200_and_none_is_a_204(site: Site) -> None:
    async with site.connect() as wire:
        done = await rpc(wire, request(id=1))
        failed = await rpc(wire, request(params={}, id="a"))
        unheard = await rpc(wire, request())
        batch = await rpc(wire, [request(id=1), request("foobar", id=2), request()])
        broken = await rpc(wire, request(params={"parcel": "broken"}, id=3), headers={"X-Request-Id": "try-7"})

    assert (done.status, done.headers["content-type"]) == (200, "application/json")
    assert done.json() == {"jsonrpc": "2.0", "result": {"ordered": {"parcel": "AB", "amount": 1}}, "id": 1}
    assert (failed.status, failed.json()["error"]["code"], failed.json()["id"]) == (200, -32602, "a")
    assert (unheard.status, unheard.body, "content-length" in unheard.headers) == (204, b"", False)
    assert [("result" in each, each["id"]) for each in batch.json()] == [(True, 1), (False, 2)]
    assert "try-7" in broken.json()["error"]["data"]["description"]
    assert b"secret" not in broken.body


async def test_what_is_not_a_post_of_json_by_somebody_is_a_problem(site: Site) -> None:
    await make_key(site.engine)

    nobody = await rpc(site, request(id=1))
    text = await site.ask("POST", "/rpc", key=site.file.token, body=b"{}", headers={"Content-Type": "text/plain"})
    got = await site.ask("GET", "/rpc", key=site.file.token)

    assert (nobody.status, nobody.code) == (401, "unauthenticated")
    assert (text.status, text.code) == (415, "invalid_input")
    assert (got.status, got.headers["allow"]) == (405, "POST")


@pytest.mark.req("RPC-03")
async def test_the_old_envelope_is_answered_in_its_form_and_counted(site: Site) -> None:
    parts = {"host": "shop.example", "service": "market", "action": "createOrder", "version": "1.0"}

    done = await rpc(site, {**parts, "data": {"parcel": "AB"}, "title": "Order", "success": "/done"})
    wrong = await rpc(site, {**parts, "data": {"parcel": 7}})
    unknown = await rpc(site, {**parts, "action": "drop"})
    metrics = (await site.ask("GET", "/metrics")).body.decode()

    assert (done.status, done.json()) == (200, {"ordered": {"parcel": "AB", "amount": 1}})
    assert (wrong.status, wrong.json()["statusCode"], wrong.json()["code"]) == (400, 400, "invalid_input")
    assert "`parcel`" in wrong.json()["description"]
    assert (unknown.status, unknown.json()["code"]) == (404, "not_found")
    assert f'holdfast_envelope_calls_total{{service="{CREATE}",tenant="default"}} 2.0' in metrics
    assert 'holdfast_envelope_calls_total{service="unknown",tenant="default"} 1.0' in metrics


@pytest.mark.req("RPC-02", "ENG-08")
async def test_no_message_breaks_the_server(site: Site) -> None:
    async with site.connect() as wire:
        replies = [await wire.ask("POST", "/rpc", body=each, headers=JSON) for each in messages(FUZZ, seed=9)]

        assert {reply.status for reply in replies} <= {200, 204, 400, 404}
        assert (await rpc(wire, request(id=1))).status == 200


@pytest.mark.req("RPC-04")
async def test_services_are_listed_to_those_who_can_call_them(site: Site) -> None:
    admin = await make_key(site.engine, "root")
    reader = await make_key(site.engine, "eve", scopes=["read", "admin"])
    user = await make_key(site.engine, "bob", scopes=["read", "write"])

    listed, read, seen = [
        (await site.ask("GET", "/api/services", key=key)).json()["services"] for key in (admin, reader, user)
    ]

    assert [each["method"] for each in listed] == [CREATE, LOOK]
    assert listed[0] == {
        "method": CREATE,
        "tool": "shop_example_market_createOrder_1_0",
        "description": "Order something.",
        "schema": ORDER,
    }
    assert [each["method"] for each in read] == [LOOK]
    assert seen == []


@pytest.mark.req("RPC-04")
async def test_a_service_is_a_tool_that_an_agent_calls(desk: Site, model: Player) -> None:
    model.says(calls(("shop_example_market_createOrder_1_0", {"parcel": "AB"})), "Ordered.")

    reply = await say(desk, "Order AB")

    shown = [message.content for message in model.requests[-1].messages if message.role == "tool"]
    assert reply.json()["reply"] == "Ordered."
    assert any('"ordered"' in str(content) for content in shown)
