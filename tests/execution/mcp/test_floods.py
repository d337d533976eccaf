"""Servers that send more than anybody asked for: the event loop goes on, and the memory of the engine is limited."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.errors import HoldfastError
from holdfast.execution.mcp.channel import ChannelServer
from holdfast.execution.mcp.exchange import MAX_MESSAGES, MAX_OPEN
from tests.execution.mcp.scripted import (
    CALL,
    DISCOVERED,
    TELL,
    TENANT,
    AskedClient,
    Message,
    ScriptedProgram,
    ScriptedPrograms,
    ScriptedServer,
    Stream,
    program,
    response,
    server_at,
    sessions,
)

pytestmark = pytest.mark.req("MCP-05", "SAFE-06")

PING: Message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CHANGED: Message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


async def test_questions_of_a_server_count_as_messages_and_few_are_answered_at_once() -> None:
    service, most = ScriptedServer(), 0

    async def flood(request: web.Request, message: Message) -> web.StreamResponse:
        stream = await Stream.begin(request)
        for _ in range(MAX_MESSAGES // 1000 + 1):
            await stream.send(*[PING] * 1000)
        await stream.send(response(message["id"], {}))
        return stream.response

    service.handlers[CALL] = flood
    async with service.serving(), sessions() as servers:
        call = asyncio.create_task(servers.call(server_at(service), CALL, TELL))
        while not call.done():
            await asyncio.sleep(0.01)
            most = max(most, sum(each.get_name() == "answer to an MCP server" for each in asyncio.all_tasks()))
        with pytest.raises(HoldfastError, match="was not heard out"):
            await call

    assert 1 <= most <= MAX_OPEN


async def test_a_server_that_asks_too_much_at_once_is_refused() -> None:
    service, answered = ScriptedServer(), asyncio.Event()

    async def ask(request: web.Request, message: Message) -> web.StreamResponse:
        stream = await Stream.begin(request)
        question = {"jsonrpc": "2.0", "method": "elicitation/create", "params": {"message": "sure?"}}
        await stream.send(*({**question, "id": number} for number in range(MAX_OPEN + 5)))
        async with asyncio.timeout(5):
            while len(service.answers_of_client) < 5:  # noqa: ASYNC110 - the answers are other requests
                await asyncio.sleep(0.005)
            answered.set()
            while len(service.answers_of_client) < MAX_OPEN + 5:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        await stream.send(response(message["id"], {}))
        return stream.response

    class Slow(AskedClient):
        async def inputs(self, requests: Any) -> Any:
            """Answer when the server has been refused."""
            await answered.wait()
            return await super().inputs(requests)

    service.handlers[CALL] = ask
    async with service.serving(), sessions() as servers:
        await servers.call(server_at(service), CALL, TELL, client=Slow(elicitation={}))

    assert Counter("error" in each for each in service.answers_of_client) == {True: 5, False: MAX_OPEN}


async def test_the_event_loop_goes_on_while_a_pipe_is_always_full() -> None:
    channel, ticks = ScriptedProgram(lambda _, __: None), 0
    for _ in range(MAX_MESSAGES - 1):
        channel.write({})
    channel.write({"jsonrpc": "2.0", "method": "last"})
    read = asyncio.Event()
    server = ChannelServer(channel, notify=lambda _: read.set())
    while not read.is_set():
        await asyncio.sleep(0)
        ticks += 1
    await server.close()

    assert ticks > MAX_MESSAGES / 200


async def test_changes_that_a_server_announces_again_and_again_are_one_change() -> None:
    told: Counter[tuple[str, str]] = Counter()

    def flood(self: ScriptedProgram, message: Message) -> None:
        for _ in range(500):
            self.write(CHANGED)
        if "id" in message:
            self.write(response(message["id"], DISCOVERED))

    async with sessions(ScriptedPrograms(lambda _: ScriptedProgram(flood))) as servers:
        servers.on_change = lambda tenant, source: told.update([(tenant, source)])
        await servers.call(program(), CALL, TELL)
        async with asyncio.timeout(5):
            while not told:  # noqa: ASYNC110 - the call back has no event
                await asyncio.sleep(0.01)

    assert told == {(TENANT, "first"): 1}
