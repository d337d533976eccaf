"""The secrets of a source are known to its server, and to none of its callers."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import uuid4

import pytest
from aiohttp import web

from holdfast.core.errors import HoldfastError
from holdfast.execution.mcp.runner import McpBackends, McpRunner
from holdfast.mcp.inputs import MissingCapability
from holdfast.mcp.protocol import METHOD_NOT_FOUND, MISSING_CAPABILITY, McpError
from holdfast.postgres.database import Database
from holdfast.skills.request import Backend, McpServer, McpTool, RequestTemplate
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool
from tests.execution.backend import Keyring
from tests.execution.mcp.scripted import CALL, AskedClient, Message, ScriptedServer, Stream, failure, reply, response
from tests.execution.mcp.scripted import sessions as open_sessions

pytestmark = pytest.mark.req("MCP-05", "SAFE-06")

SECRET = "ghp_SuperSecretToken123456"
RUN = Run("ann", None, None, None, uuid4(), "call-1", "key-1")


class OneTenant:
    """A database that knows its tenant."""

    async def tenant(self) -> str:
        """The tenant."""
        return "one"


@pytest.fixture
async def service() -> AsyncIterator[ScriptedServer]:
    """A server that repeats its credentials."""
    async with ScriptedServer().serving() as service:
        assert isinstance(service, ScriptedServer)
        yield service


@pytest.fixture
async def backends() -> AsyncIterator[McpBackends]:
    """Servers with a secret."""
    async with open_sessions() as servers:
        yield McpBackends(cast(Database, OneTenant()), servers, Keyring(token=SECRET))


def source(service: ScriptedServer) -> Backend:
    """The server as a source with the secret."""
    server = McpServer(url=f"{service.url}/mcp")
    return Backend(source="first", headers={"Authorization": "Bearer {{secret:token}}"}, mcp=server)


def tool(service: ScriptedServer) -> Tool:
    """A tool of the server."""
    request = RequestTemplate("POST", "/", mcp=McpTool("tell"))
    return Tool("first_tell", "", {}, "mcp_server", "read", idempotent=True, request=request, backend=source(service))


async def test_progress_logs_and_questions_of_a_server_have_no_secrets(
    service: ScriptedServer, backends: McpBackends
) -> None:
    asked = asyncio.Event()

    async def tell(request: web.Request, message: Message) -> web.StreamResponse:
        said, stream = request.headers["Authorization"], await Stream.begin(request)
        token = message["params"]["_meta"]["progressToken"]
        for method, params in (
            ("notifications/progress", {"progressToken": token, "progress": 1, "message": f"GET with {said}"}),
            ("notifications/message", {"level": "debug", "logger": said, "data": {said: [said]}}),
        ):
            await stream.send({"jsonrpc": "2.0", "method": method, "params": params})
        params: dict[str, Any] = {"message": f"log in with {said}?", "requestedSchema": {"properties": {said: {}}}}
        await stream.send({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        await asked.wait()
        await stream.send(response(message["id"], {"content": [{"type": "text", "text": said}]}))
        return stream.response

    class Client(AskedClient):
        async def inputs(self, requests: Any) -> Any:
            """Let the server go on."""
            asked.set()
            return await super().inputs(requests)

    service.handlers[CALL] = tell
    client = Client(elicitation={})

    result = await McpRunner(backends).run(tool(service), {}, dataclasses.replace(RUN, client=client), timeout=10)

    seen = json.dumps([client.got, [each.params for each in client.asked.values()], result.value])
    assert len(client.got) == 2
    assert seen.count("[secret]") == 7
    assert SECRET not in seen


async def test_errors_of_a_server_have_no_secrets(service: ScriptedServer, backends: McpBackends) -> None:
    async def get(request: web.Request, message: Message) -> web.StreamResponse:
        said = request.headers["Authorization"]
        return reply(failure(message["id"], -32603, f"rejected: {said}", {"headers": {"Authorization": said}}))

    service.handlers["prompts/get"] = service.handlers[CALL] = get

    with pytest.raises(McpError) as failed:
        await backends.request(source(service), "prompts/get", {"name": "one"}, RUN)
    result = await McpRunner(backends).run(tool(service), {}, RUN, timeout=10)

    assert failed.value.message == "rejected: Bearer [secret]"
    assert SECRET not in json.dumps([str(failed.value), failed.value.data, result.value])


async def test_a_capability_that_a_server_misses_is_named_without_secrets(backends: McpBackends) -> None:
    async def get(request: web.Request, message: Message) -> web.StreamResponse:
        missing: dict[str, Any] = {"requiredCapabilities": {request.headers["Authorization"]: {}}}
        return reply(failure(message["id"], MISSING_CAPABILITY, "missing", missing))

    async with ScriptedServer(modern=True).serving() as service:
        assert isinstance(service, ScriptedServer)
        service.handlers["prompts/get"] = get
        with pytest.raises(MissingCapability) as failed:
            await backends.request(source(service), "prompts/get", {"name": "one"}, RUN)

    assert SECRET not in json.dumps([str(failed.value), dict(failed.value.missing)])


async def test_what_a_server_says_of_itself_has_no_secrets(service: ScriptedServer, backends: McpBackends) -> None:
    async def initialize(request: web.Request, message: Message) -> web.StreamResponse:
        return reply(failure(message["id"], METHOD_NOT_FOUND, f"go away, {request.headers['Authorization']}"))

    service.handlers["initialize"] = initialize
    upstream, _ = await backends.upstream(source(service))

    with pytest.raises((McpError, HoldfastError)) as failed:
        await backends.servers.about(upstream)

    assert SECRET not in str(failed.value)
    assert "[secret]" in str(failed.value)
