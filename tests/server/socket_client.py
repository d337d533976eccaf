"""A client of sockets."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from tests.server.wire import PATIENCE, Site

JSON = [Subprotocol("holdfast.v1+json")]
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


class Client:
    """A client of the sub-protocol with events."""

    def __init__(self, socket: ClientConnection, ready: dict[str, Any]) -> None:
        self.socket = socket
        self.ready = ready

    async def send(self, type: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type, **fields}))

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            return json.loads(await self.socket.recv())

    async def until(self, *kinds: str) -> list[dict[str, Any]]:
        """All frames up to one of a kind."""
        seen = [await self.next()]
        while seen[-1]["kind"] not in kinds:
            seen.append(await self.next())
        return seen

    async def rest(self) -> list[dict[str, Any]]:
        """All frames that came before it was closed."""
        seen: list[dict[str, Any]] = []
        with suppress(ConnectionClosed):
            while True:
                seen.append(await self.next())
        return seen


def address(site: Site, agent: str = "support", **query: str) -> str:
    given = "&".join(f"{name}={value}" for name, value in query.items())
    return f"ws://127.0.0.1:{site.port}/ws/{agent}?{given}"


@asynccontextmanager
async def client(site: Site, *, key: str | None = None, **query: str) -> AsyncGenerator[Client]:
    """Somebody connected."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with connect(address(site, **query), subprotocols=JSON, additional_headers=headers) as socket:
        assert socket.subprotocol == JSON[0]
        yield Client(socket, json.loads(await socket.recv()))


def kinds(frames: Iterable[dict[str, Any]]) -> list[str]:
    return [frame["kind"] for frame in frames]


def text_of(frames: Iterable[dict[str, Any]]) -> str:
    return "".join(frame["text"] for frame in frames if frame["kind"] == "token")


async def receive(socket: ClientConnection) -> str | bytes:
    async with asyncio.timeout(PATIENCE):
        return await socket.recv()


async def closed(socket: ClientConnection) -> tuple[int, str]:
    """The code and the reason that the server closes with."""
    async with asyncio.timeout(PATIENCE):
        await socket.wait_closed()
    return socket.close_code or 0, socket.close_reason or ""
