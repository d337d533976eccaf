"""MCP servers that learn who calls: sessions are kept, and what is said of callers is not."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import pytest
from aiohttp import web

from holdfast.core.errors import Unavailable
from holdfast.execution.identity.sent_identity import SentIdentity
from holdfast.execution.mcp.runner import McpBackends, McpRunner
from holdfast.execution.mcp.servers import McpServers
from holdfast.execution.redaction import Redaction
from holdfast.postgres.database import Database
from holdfast.skills.client import NoClient
from holdfast.skills.request import Backend, BackendIdentity, McpServer, McpTool, RequestTemplate
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool
from tests.execution.backend import Keyring
from tests.execution.mcp.scripted import CALL, Message, ScriptedServer, reply, response, sessions
from tests.execution.mcp.test_secrets import RUN, OneTenant

pytestmark = pytest.mark.req("MCP-06")


class ModernClient(NoClient):
    """A client of the newest generation that can be asked nothing."""

    is_modern = True


class Callers:
    """Says who calls by a token of the user's own, and a new one when it is renewed."""

    def __init__(self) -> None:
        self.renewed = 0
        self.asked: list[tuple[str | None, str | None, str]] = []

    async def identify(
        self, backend: Backend, run: Run, *, tool: str | None, kind: Any, origin: str
    ) -> SentIdentity | None:
        self.asked.append((run.user, tool, origin))
        return self._sent(run, 0)

    def _sent(self, run: Run, number: int) -> SentIdentity:
        async def renew() -> SentIdentity | None:
            self.renewed += 1
            return self._sent(run, self.renewed)

        token = f"token-of-{run.user}-{number}"
        return SentIdentity({"Authorization": f"Bearer {token}"}, Redaction([token]), renew)


@pytest.fixture
def callers() -> Callers:
    return Callers()


@pytest.fixture
async def servers() -> AsyncIterator[McpServers]:
    async with sessions() as servers:
        yield servers


@pytest.fixture
def runner(servers: McpServers, callers: Callers) -> McpRunner:
    """What calls tools of servers that learn who calls."""
    return McpRunner(McpBackends(cast(Database, OneTenant()), servers, Keyring(), identify=callers.identify))


def tool(service: ScriptedServer) -> Tool:
    """A tool of the server, which is not idempotent."""
    server = McpServer(url=f"{service.url}/mcp")
    backend = Backend(source="first", mcp=server, identity=BackendIdentity("signed"))
    request = RequestTemplate("POST", "/", mcp=McpTool("tell"))
    return Tool("first_tell", "", {}, "mcp_server", "write", request=request, backend=backend)


def by(user: str) -> Run:
    """The run of a user."""
    return replace(RUN, user=user, client=ModernClient())


def authorizations(service: ScriptedServer) -> list[str]:
    """What each request said of its caller."""
    return [asked.headers.get("Authorization", "nothing") for asked in service.asked]


@pytest.mark.parametrize("modern", [True, False], ids=["modern", "legacy"])
async def test_each_request_says_who_calls_though_a_session_is_kept(
    runner: McpRunner, callers: Callers, modern: bool
) -> None:
    async with ScriptedServer(modern=modern).serving() as service:
        assert isinstance(service, ScriptedServer)
        for user in ("ann", "bob", "ann", "bob"):
            await runner.run(tool(service), {}, by(user), timeout=10)

        calls = [asked for asked in service.asked if b'"tools/call"' in asked.body]
    assert [asked.headers["Authorization"][-5:] for asked in calls] == ["ann-0", "bob-0", "ann-0", "bob-0"]
    assert "nothing" not in authorizations(service)
    assert callers.asked[0] == ("ann", "first_tell", service.url)
    if modern:
        assert service.methods["server/discover"] == 1


async def test_a_refused_token_is_renewed_once_and_the_call_made_again(runner: McpRunner, callers: Callers) -> None:
    async with ScriptedServer(modern=True).serving() as service:
        assert isinstance(service, ScriptedServer)

        async def tell(request: web.Request, message: Message) -> web.StreamResponse:
            said = request.headers["Authorization"]
            if said.endswith("-0"):
                return web.Response(status=401)
            return reply(response(message["id"], {"content": [{"type": "text", "text": f"done as {said}"}]}))

        service.handlers[CALL] = tell
        result = await runner.run(tool(service), {}, by("ann"), timeout=10)

    assert (result.value, callers.renewed, service.methods[CALL]) == ("done as Bearer [secret]", 1, 2)


async def test_a_server_that_refuses_every_token_is_asked_twice(runner: McpRunner, callers: Callers) -> None:
    async with ScriptedServer(modern=True).serving() as service:
        assert isinstance(service, ScriptedServer)

        async def refuse(_: web.Request, __: Message) -> web.StreamResponse:
            return web.Response(status=401)

        service.handlers[CALL] = refuse
        with pytest.raises(Unavailable, match="returned 401"):
            await runner.run(tool(service), {}, by("ann"), timeout=10)

    assert (callers.renewed, service.methods[CALL]) == (1, 2)


@pytest.mark.parametrize("status", [401, 200])
async def test_a_prompt_is_asked_for_again_with_a_new_token(servers: McpServers, callers: Callers, status: int) -> None:
    backends = McpBackends(cast(Database, OneTenant()), servers, Keyring(), identify=callers.identify)
    async with ScriptedServer(modern=True).serving() as service:
        assert isinstance(service, ScriptedServer)

        async def give(request: web.Request, message: Message) -> web.StreamResponse:
            said = request.headers["Authorization"]
            if said.endswith("-0"):
                return web.Response(status=401)
            return reply(response(message["id"], {"description": f"for {said}"}))

        service.handlers["prompts/get"] = give
        backend = tool(service).backend
        assert backend is not None
        found = await backends.request(backend, "prompts/get", {"name": "a"}, by("ann"))

    assert found["description"] == "for Bearer [secret]"
    assert (callers.renewed, service.methods["prompts/get"]) == (1, 2)
