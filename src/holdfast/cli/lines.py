"""Lines to agents: frames of the sub-protocol `holdfast.v1+json`, to the running server or to an engine opened here."""

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from holdfast.cli.api import Api, Headers, Into, OpenedEngine, RunningServer, caller, error_of
from holdfast.cli.invocation import Invocation
from holdfast.cli.running_server import find_server, no_server, say_where
from holdfast.core.config import Config
from holdfast.core.errors import Forbidden, HoldfastError, TooLarge, Unavailable
from holdfast.core.threads import in_thread

Frame = dict[str, Any]
App = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]

PROTOCOL = "holdfast.v1+json"
MAX_FRAME = 64 * 1024 * 1024


class Line(Protocol):
    """Takes frames to an agent, and brings them."""

    async def send(self, frame: Frame) -> None:
        """Send a frame; on a line that is broken it goes nowhere."""
        ...

    async def receive(self) -> Frame | None:
        """The next frame; None when the line is broken."""
        ...


class Door(Protocol):
    """Where lines to agents begin."""

    @property
    def api(self) -> Api:
        """The API beside the lines."""
        ...

    def line(self, path: str) -> AbstractAsyncContextManager[Line]:
        """A line; Unavailable where none can be had now, another error where none will be."""
        ...


class ServerDoor:
    """Lines to whichever server runs on the data folder: one that is started anew is another."""

    def __init__(self, config: Config, user: str | None) -> None:
        self._config = config
        self._user = user
        self._api: Api | None = None

    @property
    def api(self) -> Api:
        """The API of the server that the last line led to."""
        assert self._api is not None
        return self._api

    async def find(self) -> tuple[str, Headers] | None:
        """Where the server is, and who it is told calls; None where none runs."""
        server = await asyncio.to_thread(find_server, self._config)
        if server is None:
            return None
        tenant = self._config.tenant
        self._api = Api(_Aside(RunningServer(server.url)), server.token, tenant, user=self._user)
        return server.url, caller(server.token, tenant, self._user)

    @asynccontextmanager
    async def line(self, path: str) -> AsyncGenerator[Line]:
        """A socket of the server."""
        found = await self.find()
        if found is None:
            raise no_server(self._config)
        url, headers = found
        try:
            socket = await connect(
                urlsplit(url)._replace(scheme="ws").geturl() + path,
                subprotocols=[Subprotocol(PROTOCOL)],
                additional_headers={name: value.decode() for name, value in headers.items()},
                compression=None,
                proxy=None,
                max_size=MAX_FRAME,
                close_timeout=1,
            )
        except InvalidStatus as error:
            raise _refusal(error.response.body) from None
        except (OSError, TimeoutError, InvalidHandshake) as error:
            raise Unavailable(f"the server at {url} did not answer", why=str(error) or type(error).__name__) from error
        async with socket:
            yield _Socket(socket)


class EngineDoor:
    """Lines to the server's application in this process."""

    def __init__(self, app: App, token: str, tenant: str, user: str | None) -> None:
        self._app = app
        self._headers = caller(token, tenant, user)
        self._api = Api(OpenedEngine(app), token, tenant, user=user)

    @property
    def api(self) -> Api:
        """The API of the engine."""
        return self._api

    @asynccontextmanager
    async def line(self, path: str) -> AsyncGenerator[Line]:
        """A socket as a web server would hand it to the application."""
        line = _Inner()
        path, _, query = path.partition("?")
        headers = {**self._headers, "host": b"localhost", "sec-websocket-protocol": PROTOCOL.encode()}
        scope: dict[str, Any] = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value) for name, value in headers.items()],
            "client": ("127.0.0.1", 0),
            "server": ("localhost", 0),
            "subprotocols": [PROTOCOL],
            "extensions": {"websocket.http.response": {}},
            "state": {},
        }
        serving = asyncio.create_task(self._serve(scope, line), name="socket")
        try:
            await line.opened()
            yield line
        finally:
            line.hang_up()
            await asyncio.wait([serving], timeout=1)
            serving.cancel()
            await asyncio.wait([serving])

    async def _serve(self, scope: dict[str, Any], line: "_Inner") -> None:
        try:
            await self._app(scope, line.to_app, line.from_app)
        finally:
            line.end()


class _Aside:
    """Carries requests to a server, while the lines go on."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server

    async def send(
        self, method: str, path: str, headers: Headers, body: bytes, into: Into | None = None
    ) -> tuple[int, bytes]:
        """Wait for the answer, or leave."""
        return await in_thread(lambda: self._server.call(method, path, headers, body, into), name="request")


class _Socket:
    """A line over the network."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, frame: Frame) -> None:
        try:
            await self._socket.send(json.dumps(frame))
        except ConnectionClosed:
            return

    async def receive(self) -> Frame | None:
        try:
            return json.loads(await self._socket.recv())
        except ConnectionClosed as closed:
            code, reason = (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (None, "")
            if code == CloseCode.MESSAGE_TOO_BIG:
                raise TooLarge("the message is too large", why=reason, next="Say less.") from None
            if code == CloseCode.POLICY_VIOLATION:
                raise Forbidden("the server ended the talk", why=reason) from None
            return None


class _Inner:
    """A line in this process: what is sent waits for the application, what it sends waits for us."""

    def __init__(self) -> None:
        self._inwards: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outwards: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._open = asyncio.Event()
        self._refused: bytes | None = None
        self._accepted = False
        self._inwards.put_nowait({"type": "websocket.connect"})

    async def opened(self) -> None:
        """Wait until the application takes the line, or refuses it."""
        await self._open.wait()
        if not self._accepted:
            raise _refusal(self._refused or b"")

    async def send(self, frame: Frame) -> None:
        self._inwards.put_nowait({"type": "websocket.receive", "text": json.dumps(frame)})

    async def receive(self) -> Frame | None:
        return await self._outwards.get()

    def hang_up(self) -> None:
        """Tell the application that nobody listens any more."""
        self._inwards.put_nowait({"type": "websocket.disconnect", "code": 1000})

    def end(self) -> None:
        """Nothing comes any more."""
        self._open.set()
        self._outwards.put_nowait(None)

    async def to_app(self) -> dict[str, Any]:
        """What the application receives."""
        return await self._inwards.get()

    async def from_app(self, message: dict[str, Any]) -> None:
        """What the application sends."""
        match message["type"]:
            case "websocket.accept":
                self._accepted = True
                self._open.set()
            case "websocket.send":
                self._outwards.put_nowait(json.loads(message["text"]))
            case "websocket.http.response.body":
                self._refused = (self._refused or b"") + message.get("body", b"")
            case "websocket.close":
                self.end()
            case _:
                return


@asynccontextmanager
async def reach_agents(invocation: Invocation, agent: str | None, *, user: str | None) -> AsyncGenerator[Door]:
    """The door of the server that runs on the data folder, or of an engine opened here, which then serves agents."""
    config = invocation.config()
    door = ServerDoor(config, user)
    if await door.find() is not None:
        yield door
        return
    from holdfast.default import default_app
    from holdfast.engine import open_engine
    from holdfast.server.app import build_app
    from holdfast.server.listening import Address

    logging.getLogger("holdfast.embeddings").setLevel(logging.ERROR)
    async with AsyncExitStack() as stack:
        with invocation.output.progress() as progress:
            engine = await stack.enter_async_context(open_engine(config=config, progress=progress))
            tenant = await engine.tenants.find(config.tenant)
            served = await stack.enter_async_context(engine.tenant(tenant.id).serving(default_app()))
        if agent is not None and agent not in served.agents:
            await engine.tenant(tenant.id).definitions.get(agent)
            raise Unavailable(
                f"nobody serves the agent {agent}",
                why=f"it is declared in a program, and no server runs on {config.data}",
                next="Start it with `holdfast up APP`.",
            )
        say_where(invocation, config)
        token = secrets.token_urlsafe()
        yield EngineDoor(build_app(engine, Address("127.0.0.1", 0), token=token), token, config.tenant, user)


def _refusal(body: bytes | None) -> HoldfastError:
    """The error that a refused line tells."""
    try:
        return error_of(json.loads(body or b""))
    except (ValueError, KeyError, TypeError):
        return Unavailable("the server takes no line to agents", why="it did not say why", next="Look at its log.")
