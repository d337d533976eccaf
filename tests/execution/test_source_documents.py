"""Services that fail when they are asked for the document of a source."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.config import Config
from holdfast.core.errors import TimedOut, Unavailable
from holdfast.engine import Engine, open_engine
from holdfast.execution import source_documents
from tests.execution.backend import Service, with_calls_to_this_machine

pytestmark = pytest.mark.req("MCP-05", "SKILL-05")

PATIENCE = 10  # seconds
SECRET = "s3cret-0123456789"


class Server(Service):
    """An MCP service. `mode` says how it lists its tools: not at all, or with an error."""

    def __init__(self) -> None:
        super().__init__()
        self.mode = ""
        self.will_answer("/mcp", self._respond)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        message = json.loads(self.asked[-1].body or b"{}")
        id, about = message.get("id"), {"name": "faulty", "version": "1"}
        match message.get("method"):
            case "initialize":
                result: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
                return web.json_response({"jsonrpc": "2.0", "id": id, "result": result})
            case "tools/list" if self.mode == "hangs":
                await asyncio.Event().wait()
            case "tools/list" if self.mode == "fails":
                error = {"code": -32000, "message": f"rate limit of {SECRET} exceeded"}
                return web.json_response({"jsonrpc": "2.0", "id": id, "error": error})
            case "tools/list":
                result = {"tools": [{"name": "good", "inputSchema": {"type": "object"}}]}
                return web.json_response({"jsonrpc": "2.0", "id": id, "result": result})
            case _ if id is None:
                return web.Response(status=202)
            case _:
                pass
        return web.json_response({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})


@pytest.fixture
async def service() -> AsyncIterator[Server]:
    """An MCP server on this machine."""
    async with Server().serving() as service:
        assert isinstance(service, Server)
        yield service


@pytest.fixture
def config(config: Config) -> Config:
    """The settings of an engine that may call services on this machine."""
    return with_calls_to_this_machine(config)


@pytest.fixture
async def engine(config: Config, no_models: None) -> AsyncIterator[Engine]:
    """An engine that reloads sources."""
    async with open_engine(config=config) as engine:
        yield engine


async def test_the_error_of_an_mcp_server_is_told_without_secrets(engine: Engine, service: Server) -> None:
    await engine.secrets.set("key", SECRET, hosts=["127.0.0.1"], by="ann")
    headers = {"X-Key": "{{secret:key}}"}
    service.mode = "fails"

    with pytest.raises(Unavailable, match=r"rate limit of .* exceeded") as failed:
        await engine.sources.add("shop", kind="mcp", url=f"{service.url}/mcp", headers=headers)

    assert SECRET not in str(failed.value)


async def test_an_mcp_server_that_does_not_answer_is_a_time_out(
    engine: Engine, service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_documents, "TIMEOUT", 0.5)
    service.mode = "hangs"

    with pytest.raises(TimedOut, match=r"did not respond within 0\.5 seconds"):
        await engine.sources.add("shop", kind="mcp", url=f"{service.url}/mcp")


async def test_the_error_of_an_mcp_server_is_the_error_of_a_check(engine: Engine, service: Server) -> None:
    await engine.sources.add("shop", kind="mcp", url=f"{service.url}/mcp", reload_seconds=3600)
    service.mode = "fails"

    await engine.source_checks.ask("shop")
    async with asyncio.timeout(PATIENCE):
        while not (error := (await engine.sources.get("shop")).source.error):  # noqa: ASYNC110 - the row tells
            await asyncio.sleep(0.05)

    assert "rate limit" in error
    assert "internal error" not in error
