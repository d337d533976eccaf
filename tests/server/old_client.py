"""A client of MCP before 2026-07-28, without any SDK: plain HTTP, and server-sent events read line by line."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.mcp.protocol import LEGACY
from tests.server.wire import PATIENCE, Reply, Wire, connect

NEWEST = LEGACY[0]
ACCEPT = "application/json, text/event-stream"
CAPABILITIES: Mapping[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream."""

    id: str
    kind: str
    data: str

    @property
    def message(self) -> dict[str, Any]:
        """The message that it carries."""
        return json.loads(self.data)


def request(method: str, params: Mapping[str, Any] | None = None, *, id: Any = 7) -> dict[str, Any]:
    """A request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def note(method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def calling(name: str, *, id: Any = 7, token: Any = None, **arguments: Any) -> dict[str, Any]:
    """The request that calls a tool; `token` is what its progress is told by."""
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request("tools/call", {"name": name, "arguments": arguments, **meta}, id=id)


def hello(version: str = NEWEST, capabilities: Mapping[str, Any] = CAPABILITIES) -> dict[str, Any]:
    """The request that begins a session."""
    about = {"name": "old", "version": "1"}
    return request("initialize", {"protocolVersion": version, "capabilities": capabilities, "clientInfo": about}, id=0)


def text_of(message: Mapping[str, Any]) -> str:
    """What a tool gave."""
    return message["result"]["content"][0]["text"]


@dataclass
class OldClient:
    """A client with a session; `port` is the node that it talks to, which may change."""

    port: int
    key: str | None = None
    version: str = NEWEST
    session: str = ""

    async def begin(self, capabilities: Mapping[str, Any] = CAPABILITIES) -> "OldClient":
        """Begin a session."""
        reply = await self.post(hello(self.version, capabilities))
        self.session = reply.headers["mcp-session-id"]
        assert (await self.post(note("notifications/initialized"))).status == 202
        return self

    def at(self, port: int) -> "OldClient":
        """The same session, at another node."""
        return OldClient(port, self.key, self.version, self.session)

    @property
    def headers(self) -> dict[str, str]:
        """What each request of the session carries."""
        session = {"mcp-session-id": self.session, "mcp-protocol-version": self.version} if self.session else {}
        return {"accept": ACCEPT, **session}

    async def post(self, message: Any, **headers: str) -> Reply:
        """Send a message, and wait for the whole answer."""
        return await self.ask("POST", json=message, **headers)

    async def ask(self, method: str, *, json: Any = None, **headers: str) -> Reply:
        """Send a request, and wait for the whole answer."""
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        async with connect(self.port) as wire:
            return await wire.ask(method, "/mcp", key=self.key, json=json, headers=sent)

    @asynccontextmanager
    async def streaming(self, message: Any = None, **headers: str) -> AsyncGenerator[AsyncIterator[Event]]:
        """The events that follow on a message, or, without one, on listening."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with connect(self.port) as wire:
            body = b"" if message is None else json.dumps(message).encode()
            await send(wire, "GET" if message is None else "POST", "/mcp", self.key, {**self.headers, **sent}, body)
            head = await wire.reply_without_body()
            assert (head.status, head.headers["content-type"]) == (200, "text/event-stream"), head
            yield events(wire)


async def send(
    wire: Wire, method: str, path: str, key: str | None, headers: Mapping[str, str], body: bytes = b""
) -> None:
    """Send a request whose answer is read later."""
    all = {"host": "127.0.0.1", **headers}
    all |= {"authorization": f"Bearer {key}"} if key else {}
    all |= {"content-type": "application/json", "content-length": str(len(body))} if body else {}
    head = "".join(f"{name}: {value}\r\n" for name, value in all.items())
    await wire.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)


async def events(wire: Wire) -> AsyncIterator[Event]:
    """The events of a stream, as they come; signs of life are none."""
    read = b""
    async for chunk in wire.chunks():
        read += chunk
        while b"\n\n" in read:
            block, _, read = read.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if not line.startswith(":"))
            if "data" in fields:
                yield Event(fields.get("id", ""), fields.get("event", "message"), fields["data"])


def parsed(reply: Reply) -> list[Event]:
    """The events of a stream that is over."""
    blocks = [block for block in reply.body.decode().split("\n\n") if block and not block.startswith(":")]
    fields = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    return [Event(each.get("id", ""), each.get("event", "message"), each["data"]) for each in fields]


async def soon(stream: AsyncIterator[Event]) -> Event:
    """The next event, which comes soon."""
    async with asyncio.timeout(PATIENCE):
        return await anext(stream)


async def rest(stream: AsyncIterator[Event]) -> list[Event]:
    """All that comes until the server ends the stream."""
    async with asyncio.timeout(PATIENCE):
        return [event async for event in stream]
