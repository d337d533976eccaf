"""Which versions of the protocol a server speaks, and what is done if it does not say."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.mcp.protocol import MODERN, McpError
from tests.execution.mcp.scripted import (
    CALL,
    DISCOVERED,
    INITIALIZED,
    TELL,
    TOLD,
    Message,
    ScriptedProgram,
    ScriptedPrograms,
    ScriptedServer,
    failure,
    program,
    reply,
    response,
    server_at,
    sessions,
)

pytestmark = pytest.mark.req("MCP-05")


def modern(self: ScriptedProgram, message: Message) -> None:
    """Answer as a program that speaks the modern version only."""
    if message["method"] == "server/discover":
        self.write(response(message["id"], DISCOVERED))
    elif message["method"] == CALL and "_meta" in message["params"]:
        self.write(response(message["id"], TOLD))
    elif "id" in message:
        self.write(failure(message["id"], -32022, "only the modern version"))


def legacy(self: ScriptedProgram, message: Message) -> None:
    """Answer as a program with a handshake."""
    if "id" in message:
        self.write(response(message["id"], INITIALIZED if message["method"] == "initialize" else TOLD))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start programs again soon."""
    monkeypatch.setattr("holdfast.execution.mcp.connections.FIRST_PAUSE", 0.0)


@pytest.mark.parametrize("status", [429, 409, 503])
async def test_a_passing_refusal_does_not_make_a_server_one_of_an_earlier_version(status: int) -> None:
    service = ScriptedServer(modern=True)
    discover = service.handlers["server/discover"]

    async def refuse(_: web.Request, __: Message) -> web.StreamResponse:
        service.handlers["server/discover"] = discover
        return web.Response(status=status, text="later")

    service.handlers["server/discover"] = refuse
    async with service.serving(), sessions() as servers:
        with pytest.raises((HoldfastError, McpError)):
            await servers.call(server_at(service), CALL, TELL)

        assert await servers.call(server_at(service), CALL, TELL) == TOLD


async def test_an_internal_error_does_not_either() -> None:
    service = ScriptedServer(modern=True)
    discover = service.handlers["server/discover"]

    async def fail(_: web.Request, message: Message) -> web.StreamResponse:
        service.handlers["server/discover"] = discover
        return reply(failure(message["id"], -32603, "the database is down"))

    service.handlers["server/discover"] = fail
    async with service.serving(), sessions() as servers:
        with pytest.raises((HoldfastError, McpError)):
            await servers.call(server_at(service), CALL, TELL)

        assert await servers.call(server_at(service), CALL, TELL) == TOLD
        assert await servers.speaks_modern(server_at(service))


@pytest.mark.parametrize("code", [-32601, -32603, -32000])
async def test_a_server_that_shakes_hands_is_one_of_an_earlier_version_however_it_refuses(code: int) -> None:
    service = ScriptedServer()

    async def refuse(_: web.Request, message: Message) -> web.StreamResponse:
        return reply(failure(message["id"], code, "what?"))

    service.handlers["server/discover"] = refuse
    async with service.serving(), sessions() as servers:
        for _ in range(3):
            assert await servers.call(server_at(service), CALL, TELL) == TOLD

    assert service.methods["server/discover"] == 1


async def test_a_program_whose_first_start_fails_is_asked_again_for_its_versions() -> None:
    programs = ScriptedPrograms(lambda number: ScriptedProgram(None if number == 0 else modern))
    async with sessions(programs) as servers:
        with pytest.raises((HoldfastError, McpError)):
            await servers.call(program("ann"), CALL, TELL)

        assert await servers.call(program("ann"), CALL, TELL) == TOLD
        assert MODERN in (await servers.about(program("ann")))["protocolVersions"]


async def test_a_program_that_ends_at_an_unknown_request_is_used_by_its_handshake() -> None:
    programs = ScriptedPrograms(lambda number: ScriptedProgram(None if number == 0 else legacy))
    async with sessions(programs) as servers:
        for _ in range(3):
            assert await servers.call(program("ann"), CALL, TELL) == TOLD

    assert len(programs.started) == 2


async def test_a_modern_program_that_fails_at_each_start_is_not_started_for_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.execution.mcp.connections.FIRST_PAUSE", 60.0)

    class Ending(ScriptedProgram):
        """A program that ends after it was asked for its versions."""

        async def messages(self) -> AsyncIterator[Message]:
            """Yield one message."""
            async for message in super().messages():
                yield message
                return

    programs = ScriptedPrograms(lambda number: Ending(modern) if number == 0 else ScriptedProgram(None))
    async with sessions(programs) as servers:
        for _ in range(10):
            with pytest.raises(Unavailable):
                await servers.call(program("ann"), CALL, TELL)

    assert len(programs.started) <= 2


async def test_a_program_that_refuses_each_handshake_is_not_started_for_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.execution.mcp.connections.FIRST_PAUSE", 60.0)

    def refuse(self: ScriptedProgram, message: Message) -> None:
        if "id" in message:
            self.write(failure(message["id"], -32601, "what?"))

    programs = ScriptedPrograms(lambda _: ScriptedProgram(refuse))
    async with sessions(programs) as servers:
        for _ in range(10):
            with pytest.raises((HoldfastError, McpError)):
                await servers.call(program("ann"), CALL, TELL)

    assert len(programs.started) == 1
