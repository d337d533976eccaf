"""Questions of MCP servers to the clients of their callers."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.errors import HoldfastError
from holdfast.mcp.inputs import InputRequest, Reply
from holdfast.mcp.protocol import METHOD_NOT_FOUND
from holdfast.skills.client import InputRequired
from tests.execution.mcp.scripted import (
    CALL,
    TELL,
    TOLD,
    AskedClient,
    Message,
    ScriptedServer,
    Stream,
    reply,
    response,
    server_at,
    sessions,
)

pytestmark = pytest.mark.req("MCP-05")

PARAMS: dict[str, dict[str, Any]] = {
    "sampling/createMessage": {"messages": [], "maxTokens": 9},
    "elicitation/create": {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}},
    "roots/list": {},
}
FORBIDDEN: Sequence[tuple[str, dict[str, Any]]] = [
    ("sampling/createMessage", {"sampling": {}}),
    ("elicitation/create", {}),
    ("roots/list", {}),
]


def ask_before_result(service: ScriptedServer, method: str) -> None:
    """Ask the client of each call something, and wait for its answer."""

    async def handle(request: web.Request, message: Message) -> web.StreamResponse:
        stream = await Stream.begin(request)
        await stream.send({"jsonrpc": "2.0", "id": "q", "method": method, "params": PARAMS[method]})
        async with asyncio.timeout(5):
            while not service.answers_of_client:  # noqa: ASYNC110 - the answer is another request
                await asyncio.sleep(0.005)
        await stream.send(response(message["id"], TOLD))
        return stream.response

    service.handlers[CALL] = handle


@pytest.mark.parametrize(("method", "declared"), FORBIDDEN)
async def test_a_server_cannot_ask_for_what_it_was_not_offered(method: str, declared: dict[str, Any]) -> None:
    service, client = ScriptedServer(), AskedClient(**declared)
    ask_before_result(service, method)
    async with service.serving(), sessions() as servers:
        assert await servers.call(server_at(service), CALL, TELL, client=client) == TOLD

    assert not client.asked
    assert service.answers_of_client[0]["error"]["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize(("method", "declared"), FORBIDDEN)
async def test_a_modern_server_cannot_either(method: str, declared: dict[str, Any]) -> None:
    service, client = ScriptedServer(modern=True), AskedClient(**declared)

    async def handle(_: web.Request, message: Message) -> web.StreamResponse:
        asked = {"q": {"method": method, "params": PARAMS[method]}}
        return reply(response(message["id"], {"resultType": "input_required", "inputRequests": asked}))

    service.handlers[CALL] = handle
    async with service.serving(), sessions() as servers:
        with pytest.raises(HoldfastError, match=r"does not allow that|has not declared"):
            await servers.call(server_at(service), CALL, TELL, client=client)

    assert not client.asked


async def test_a_server_can_ask_the_model_of_a_client_if_its_source_allows_it() -> None:
    service, client = ScriptedServer(), AskedClient({"role": "assistant"}, sampling={})
    ask_before_result(service, "sampling/createMessage")
    async with service.serving(), sessions() as servers:
        await servers.call(server_at(service, sampling=True), CALL, TELL, client=client)

    assert service.answers_of_client[0]["result"] == {"role": "assistant"}


async def test_a_client_that_answers_after_the_server_went_on_gets_the_result() -> None:
    service = ScriptedServer()

    async def go_on(request: web.Request, message: Message) -> web.StreamResponse:
        stream = await Stream.begin(request)
        method = "elicitation/create"
        await stream.send({"jsonrpc": "2.0", "id": "q", "method": method, "params": PARAMS[method]})
        await asked.wait()
        await stream.send(response(message["id"], TOLD))
        return stream.response

    class Away(AskedClient):
        async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
            """Come back later."""
            raise InputRequired(requests)

    asked = asyncio.Event()
    service.handlers[CALL] = go_on
    async with service.serving(), sessions() as servers, asyncio.timeout(5):
        away, back = Away(elicitation={}), AskedClient(elicitation={})
        exchange = servers.begin(server_at(service), CALL, TELL, client=away)
        with pytest.raises(InputRequired):
            await exchange.result(away)
        asked.set()
        await exchange.wait()

        assert await exchange.result(back) == TOLD

    assert not back.asked
