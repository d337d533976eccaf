"""Logs of programs that are MCP servers: they reach the caller whose request wrote them, and nobody else."""

import asyncio

import pytest

from holdfast.execution.mcp.connections import Upstream
from tests.execution.mcp.scripted import (
    CALL,
    DISCOVERED,
    TOLD,
    AskedClient,
    Message,
    ScriptedProgram,
    ScriptedPrograms,
    program,
    response,
    sessions,
)

pytestmark = pytest.mark.req("MCP-05")


def writing(_: int) -> ScriptedProgram:
    """A program that writes a log when somebody calls it, and answers after a while."""

    def handle(self: ScriptedProgram, message: Message) -> None:
        if message["method"] == "server/discover":
            self.write(response(message["id"], DISCOVERED))
        elif message["method"] == CALL:
            loop = asyncio.get_running_loop()
            loop.call_later(0.05, self.write, log_of(f"read by {message['params']['arguments']['who']}"))
            loop.call_later(0.1, self.write, response(message["id"], TOLD))

    return ScriptedProgram(handle)


def log_of(text: str) -> Message:
    """A log message."""
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}}


async def logs_of(*upstreams: Upstream) -> list[list[object]]:
    """The logs that the clients of calls at the same time get, one call per server."""
    clients = [AskedClient() for _ in upstreams]
    programs = ScriptedPrograms(writing)
    async with sessions(programs) as servers:
        await asyncio.gather(
            *(
                servers.call(each, CALL, {"name": "t", "arguments": {"who": f"{each.user}{number}"}}, client=client)
                for number, (each, client) in enumerate(zip(upstreams, clients, strict=True))
            )
        )
    return [client.got for client in clients]


async def test_a_user_gets_its_own_logs_while_others_call_the_same_server() -> None:
    ann, bob = await logs_of(program("ann"), program("bob"))

    assert ann == [(None, "read by ann0")]
    assert bob == [(None, "read by bob1")]


async def test_a_log_that_may_belong_to_several_requests_reaches_nobody() -> None:
    assert await logs_of(program(), program()) == [[], []]
