"""HTTP, byte by byte: a client that sends what no decent client would."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.engine import Engine
from holdfast.server.server_file import ServerFile

PATIENCE = 30  # seconds: a busy machine is no failure


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of the problem that it is."""
        assert self.headers["content-type"] == "application/problem+json", self
        return self.json()["code"]


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        json: Any = None,
        body: bytes = b"",
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    ) -> Reply:
        """Send a request and wait for its answer."""
        sent = list(headers.items() if isinstance(headers, Mapping) else headers)
        names = {name.lower() for name, _ in sent}
        if json is not None:
            body = _encoded(json)
            sent.append(("Content-Type", "application/json"))
        if key is not None:
            sent.append(("Authorization", f"Bearer {key}"))
        if "host" not in names:
            sent.append(("Host", "127.0.0.1"))
        if body and "transfer-encoding" not in names:
            sent.append(("Content-Length", str(len(body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in sent)
        await self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode(errors="surrogateescape") + body)
        return await self.reply()

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def reply(self) -> Reply:
        """The next answer."""
        head = await self.reply_without_body()
        return await self.whole(head)

    async def whole(self, head: Reply) -> Reply:
        """The answer whose status and headers have come."""
        async with asyncio.timeout(PATIENCE):
            if head.headers.get("transfer-encoding") == "chunked":
                body = b"".join([part async for part in self.chunks()])
            else:
                body = await self._reader.readexactly(int(head.headers.get("content-length", "0")))
        return Reply(head.status, head.headers, body)

    async def reply_without_body(self) -> Reply:
        """The next answer's status and headers."""
        async with asyncio.timeout(PATIENCE):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        return Reply(int(head[0].split()[1]), headers, b"")

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The parts of a body of unknown length, as they come."""
        while size := int(await self._reader.readline(), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()

    async def rest(self) -> bytes:
        """All that comes until the server hangs up."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read()

    async def ended(self) -> bool:
        """Whether the server hangs up, having said nothing more."""
        return await self.rest() == b""


@dataclass(frozen=True, slots=True)
class Site:
    """A server that runs."""

    engine: Engine
    file: ServerFile
    port: int

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Wire]:
        """A connection to it."""
        async with connect(self.port) as wire:
            yield wire

    async def ask(self, method: str, path: str, **request: Any) -> Reply:
        """The answer to one request, on a connection of its own."""
        async with self.connect() as wire:
            return await wire.ask(method, path, **request)


@asynccontextmanager
async def connect(port: int) -> AsyncGenerator[Wire]:
    """A connection to a port of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
