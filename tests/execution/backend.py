"""A back end: a real HTTP service that says what it was asked, or whatever a test wants; and one that breaks HTTP."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from aiohttp import web

from holdfast.core.config import Config
from holdfast.execution.rest.runner import HostSecret
from holdfast.skills.request import Backend, RequestTemplate
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

RUN = Run(None, "support", None, None, uuid4(), "call-1", "key-1")


def with_calls_to_this_machine(config: Config) -> Config:
    """The settings of an engine that may call services on this machine."""
    execution = config.execution.model_copy(update={"allow_private": ["127.0.0.1"]})
    return config.model_copy(update={"execution": execution})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str  # with the query, encoded
    headers: Mapping[str, str]
    body: bytes


class Service:
    """Echoes what it is asked, but for the paths that have an answer of their own; it listens on every address."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[Asked] = []
        self.answers: dict[str, Handler] = {}

    @property
    def url(self) -> str:
        """Its address on loopback."""
        return f"http://127.0.0.1:{self.port}"

    def will_answer(self, path: str, handler: Handler | None = None, **response: Any) -> None:
        """Answer at a path by a handler, or by a response of these arguments."""

        async def respond(_: web.Request) -> web.StreamResponse:
            return web.Response(**response)

        self.answers[path] = handler or respond

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator["Service"]:
        """Listen as long as it lasts."""
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(app, shutdown_timeout=0.1)  # what still waits for an answer by then is cut off
        await runner.setup()
        await web.TCPSite(runner, "0.0.0.0", 0).start()
        self.port = runner.addresses[0][1]
        await web.TCPSite(runner, "::1", self.port).start()
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.method, request.raw_path, dict(request.headers), await request.read())
        self.asked.append(asked)
        if request.path in self.answers:
            return await self.answers[request.path](request)
        return web.json_response(echo(asked))


def echo(asked: Asked) -> dict[str, Any]:
    """What a request was, as JSON."""
    return {
        "method": asked.method,
        "path": asked.path,
        "headers": {name.lower(): value for name, value in asked.headers.items()},
        "body": asked.body.decode(errors="replace"),
        "base64": base64.b64encode(asked.body).decode(),
    }


@asynccontextmanager
async def raw_service(*pieces: bytes, hang: bool = False, trickle: bytes = b"") -> AsyncGenerator["RawService"]:
    """Sends these bytes for each request and closes; or goes on for ever, silent or with a trickle."""
    service = RawService(pieces, hang=hang, trickle=trickle)
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.port = server.sockets[0].getsockname()[1]
    try:
        yield service
    finally:
        server.close()


class RawService:
    """Sends bytes that need not be HTTP, and counts requests and connections."""

    def __init__(self, pieces: Collection[bytes], *, hang: bool, trickle: bytes) -> None:
        self.port = 0
        self.requests = 0
        self.connections = 0
        self.arrived = asyncio.Event()
        self.left = asyncio.Event()
        self.last: bytes | None = None  # what is sent from the second request of a connection on; None: nothing
        self._pieces = pieces
        self._hang = hang
        self._trickle = trickle

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        self.connections += 1
        try:
            await self._read(reader)
            for piece in self._pieces:
                writer.write(piece)
                await writer.drain()
            if self.last is not None:
                await self._read(reader)
                writer.write(self.last)
                await writer.drain()
            while self._trickle:
                writer.write(self._trickle)
                await writer.drain()
                await asyncio.sleep(0.02)  # its pace
            if self._hang:
                await reader.read(1)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        self.arrived.set()
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                await reader.readexactly(int(line.partition(b":")[2]))


@dataclass(frozen=True, slots=True)
class Known:
    """A secret of a test."""

    value: str
    hosts: tuple[str, ...] = ()

    def allows(self, host: str) -> bool:
        """Whether a host may see it."""
        return not self.hosts or host in self.hosts


class Keyring:
    """Secrets by name; it keeps what it was asked for."""

    def __init__(self, **secrets: Known | str) -> None:
        self._secrets = {name: Known(value) if isinstance(value, str) else value for name, value in secrets.items()}
        self.asked: list[frozenset[str]] = []

    async def __call__(self, names: Collection[str]) -> Mapping[str, HostSecret]:
        """Those of these names that are there."""
        self.asked.append(frozenset(names))
        return {name: self._secrets[name] for name in names if name in self._secrets}


def rest_tool(
    method: str, url: str, *, backend: Backend | None = None, idempotent: bool | None = None, **request: Any
) -> Tool:
    """A tool that calls a back end."""
    return Tool(
        "call_it",
        "Calls it.",
        {"type": "object"},
        kind="rest",
        idempotent=method in ("GET", "HEAD", "PUT", "DELETE") if idempotent is None else idempotent,
        request=RequestTemplate(method, url, **request),
        backend=backend,
    )
