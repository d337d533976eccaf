"""Time limits of requests that are not calls of tools."""

import asyncio
from typing import cast
from uuid import uuid4

import pytest
from aiohttp import web

from holdfast.core.errors import TimedOut
from holdfast.execution.mcp.runner import McpBackends
from holdfast.postgres.database import Database
from holdfast.skills.request import Backend, McpServer
from holdfast.skills.run import Run
from tests.execution.backend import Keyring
from tests.execution.mcp.scripted import Message, ScriptedServer, sessions

pytestmark = pytest.mark.req("MCP-05")

RUN = Run("ann", None, None, None, uuid4(), "call-1", "key-1")
SHORT = 0.2  # seconds


class OneTenant:
    """A database that knows its tenant."""

    async def tenant(self) -> str:
        """The tenant."""
        return "one"


@pytest.mark.parametrize("method", ["resources/read", "prompts/get", "completion/complete"])
@pytest.mark.parametrize(("of_source", "of_engine"), [(SHORT, 60.0), (None, SHORT)])
async def test_a_request_that_hangs_ends_within_the_limit_of_its_source(
    method: str, of_source: float | None, of_engine: float
) -> None:
    service = ScriptedServer()

    async def hang(_: web.Request, __: Message) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    service.handlers[method] = hang
    async with service.serving(), sessions() as servers, asyncio.timeout(5):
        backends = McpBackends(cast(Database, OneTenant()), servers, Keyring(), timeout=of_engine)
        source = Backend(source="first", timeout=of_source, mcp=McpServer(url=f"{service.url}/mcp"))
        with pytest.raises(TimedOut, match="did not respond within"):
            await backends.request(source, method, {}, RUN)

    assert service.methods["notifications/cancelled"] == 1
