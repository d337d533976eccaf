"""MCP over HTTP, byte by byte: both eras on a connection, as a client says them that may say anything."""

import base64
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holdfast.mcp.protocol import CAPABILITIES, LEGACY, MODERN, VERSION
from tests.server.wire import Reply, Site, Wire

ACCEPT = "application/json, text/event-stream"
NEWEST = LEGACY[0]
BATCHES = "2025-03-26"  # the one version that has batches
HELLO: dict[str, Any] = {"capabilities": {"elicitation": {}}, "clientInfo": {"name": "test", "version": "1"}}


def modern(method: str, params: Mapping[str, Any] = {}, *, id: Any = 7, **meta: Any) -> dict[str, Any]:
    """A modern request."""
    said: dict[str, Any] = {VERSION: MODERN, CAPABILITIES: {"elicitation": {}}, **meta}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": said}}


def legacy(method: str, params: Mapping[str, Any] = {}, *, id: Any = 7) -> dict[str, Any]:
    """A request of a session."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": dict(params)}


def mirror(body: Mapping[str, Any]) -> dict[str, str]:
    """The headers that say what a modern request says."""
    params = body["params"]
    name = params.get("name", params.get("uri"))
    named = {"mcp-name": wrapped(name)} if isinstance(name, str) else {}
    return {"accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": body["method"], **named}


def wrapped(name: str) -> str:
    """A name as a header has it."""
    return f"=?base64?{base64.b64encode(name.encode(errors='surrogatepass')).decode()}?="


async def ask(
    door: Site | Wire, method: str, params: Mapping[str, Any] = {}, *, key: str | None = None, id: Any = 7, **meta: Any
) -> Reply:
    """The answer to a modern request."""
    body = modern(method, params, id=id, **meta)
    return await door.ask("POST", "/mcp", key=key, json=body, headers=mirror(body))


async def call(door: Site | Wire, name: str, arguments: Mapping[str, Any] = {}, *, key: str | None = None) -> Reply:
    """The answer to a modern call of a tool."""
    return await ask(door, "tools/call", {"name": name, "arguments": arguments}, key=key)


async def begin(door: Site | Wire, *, key: str | None = None, version: str = NEWEST) -> str:
    """The id of a new session."""
    reply = await post(door, None, legacy("initialize", {"protocolVersion": version, **HELLO}), key=key)
    assert reply.status == 200, reply
    return reply.headers["mcp-session-id"]


async def post(door: Site | Wire, session: str | None, message: Any, *, key: str | None = None) -> Reply:
    """The answer to what is posted in a session."""
    return await door.ask("POST", "/mcp", key=key, json=message, headers=of_session(session))


def of_session(session: str | None) -> dict[str, str]:
    """The headers of a request of a session."""
    return {"accept": ACCEPT} if session is None else {"accept": ACCEPT, "mcp-session-id": session}


@asynccontextmanager
async def opened(
    site: Site, method: str, path: str, *, headers: Mapping[str, str] = {}, json: Any = None, key: str | None = None
) -> AsyncGenerator[Wire]:
    """A connection on which a request was made whose answer is not read yet."""
    body = b"" if json is None else encoded(json)
    said = {"host": "127.0.0.1", "accept": ACCEPT, "content-type": "application/json", **headers}
    said |= {} if key is None else {"authorization": f"Bearer {key}"}
    head = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    async with site.connect() as wire:
        await wire.send(f"{method} {path} HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        yield wire


@asynccontextmanager
async def sse(site: Site, *, key: str | None = None) -> AsyncGenerator[tuple[Wire, str]]:
    """A stream of HTTP+SSE, and the address that its client posts to."""
    async with opened(site, "GET", "/mcp/sse", key=key) as wire:
        await wire.reply_without_body()
        first = await anext(wire.chunks())
        yield wire, first.decode().partition("data: ")[2].strip()


async def messages(wire: Wire) -> AsyncGenerator[dict[str, Any]]:
    """What comes on a stream."""
    async for chunk in wire.chunks():
        for line in chunk.splitlines():
            if line.startswith(b"data: {"):
                yield json.loads(line.removeprefix(b"data: "))


def encoded(value: Any) -> bytes:
    """A value as JSON."""
    return json.dumps(value).encode()
