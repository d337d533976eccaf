"""Floods: what one caller sends too much of, to a server on this machine; each is bounded in number, and ends."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from holdfast import App
from holdfast.agents import Incoming
from holdfast.engine import Engine
from tests.server.socket_client import UPGRADE
from tests.server.wire import Reply, Wire, connect

SLOW_LOGIN = (
    b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\nl"
)
AT_ONCE = 50  # connections that are opened at once


@dataclass(frozen=True, slots=True)
class Target:
    """A server, and who floods it: `engine` is on the same database."""

    port: int
    key: str
    engine: Engine

    def request(self, method: str, path: str, body: Any = None, headers: Any = ()) -> bytes:
        """A request of theirs, as it is sent."""
        content = b"" if body is None else json.dumps(body).encode()
        sent = {"Host": "127.0.0.1", "Authorization": f"Bearer {self.key}", **dict(headers)}
        sent |= {"Content-Type": "application/json", "Content-Length": str(len(content))} if content else {}
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content


def app_of(opened: asyncio.Event | None = None, seconds: float = 600) -> App:
    """A program whose agent takes its time over slow messages: until it is let go, or so long."""
    app = App()

    @app.system("support")
    async def support(incoming: Incoming) -> str:
        """Answer."""
        if incoming.text.startswith("slow"):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await (opened or asyncio.Event()).wait()
        return "Done."

    return app


async def opened(stack: AsyncExitStack, port: int, sends: list[bytes]) -> list[Wire]:
    """Connections on which these were sent; who is refused has an answer, who is not has none yet."""
    wires: list[Wire] = []
    for start in range(0, len(sends), AT_ONCE):
        part = sends[start : start + AT_ONCE]
        found = await asyncio.gather(*(stack.enter_async_context(connect(port)) for _ in part))
        for wire, data in zip(found, part, strict=True):
            with suppress(ConnectionError):
                await wire.send(data)
        wires += found
    return wires


@asynccontextmanager
async def slow_logins(target: Target, count: int) -> AsyncGenerator[list[Wire]]:
    """Anonymous connections that begin to sign in."""
    async with AsyncExitStack() as stack:
        yield await opened(stack, target.port, [SLOW_LOGIN] * count)


@asynccontextmanager
async def sockets(target: Target, count: int) -> AsyncGenerator[list[Reply]]:
    """Sockets of one user, and how each was answered."""
    asked = target.request("GET", "/ws/support", headers=UPGRADE)
    async with AsyncExitStack() as stack:
        wires = await opened(stack, target.port, [asked] * count)
        yield [await wire.reply_without_body() for wire in wires]


@asynccontextmanager
async def slow_chats(target: Target, count: int) -> AsyncGenerator[list[Wire]]:
    """Chats of one user that are not answered for long."""
    said = [{"message": "slow", "agent_id": "support", "session_id": f"flood-{number}"} for number in range(count)]
    async with AsyncExitStack() as stack:
        yield await opened(stack, target.port, [target.request("POST", "/api/chat", body) for body in said])


@asynccontextmanager
async def locked_appends(target: Target, count: int) -> AsyncGenerator[list[asyncio.Task[None]]]:
    """A transaction that holds a conversation, and appends to it that wait; those that fail are sent again."""
    talk = await target.engine.conversations.create(user="eve")
    asked = target.request("POST", f"/api/conversations/{talk.id}/nodes", {"content": "hello"})
    async with target.engine.postgres.owner() as owner, owner.transaction():
        await owner.all("select from conversation where id = $1 for update", talk.id)
        async with repeated(target, asked, count) as tasks:
            yield tasks


@asynccontextmanager
async def heavy_searches(target: Target, count: int) -> AsyncGenerator[list[asyncio.Task[None]]]:
    """Searches of one user through many memories, again and again; their answers are small, their work is not."""
    body = {"query": "tea of autumn and winter", "limit": 50, "min_importance": 0}
    async with repeated(target, target.request("POST", "/api/memories/search", body), count) as tasks:
        yield tasks


@asynccontextmanager
async def repeated(target: Target, asked: bytes, count: int) -> AsyncGenerator[list[asyncio.Task[None]]]:
    """Connections that each ask the same again when it was answered."""

    async def ask() -> None:
        async with connect(target.port) as wire:
            while True:
                await wire.send(asked)
                await wire.reply()

    tasks = [asyncio.create_task(ask()) for _ in range(count)]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
