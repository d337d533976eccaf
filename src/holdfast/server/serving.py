"""The running server: serves requests on a bound socket and shuts down gracefully."""

import asyncio
import gc
import logging
import resource
import secrets
import signal
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import uvicorn
import uvloop

from holdfast.app import App
from holdfast.core.config import Config
from holdfast.engine import Engine
from holdfast.gateway.mcp.legacy.sessions import SessionSweeper
from holdfast.postgres.address import place_of
from holdfast.postgres.logins import LoginWatch, login_limits
from holdfast.server.app import OPERATIONS, build_app
from holdfast.server.connections import KEEP_ALIVE, ConnectionLimits, HttpConnection
from holdfast.server.operations import ApiOperation
from holdfast.server.port import BACKLOG, ServerAddress, address_of
from holdfast.server.request_limits import RequestLimits
from holdfast.server.server_file import ServerFile
from holdfast.server.socket_connections import PING, SERVICE_RESTART, SocketConnection

MAX_FILES = 10_240  # open files: each connection is one, and the default limit is often 1024
ENVELOPE = 64 * 1024  # bytes of a frame around a message
ACCEPTED = 32  # listeners: the event loop accepts one connection of each per iteration
FAREWELL = 1  # seconds for connections to close after the last response
COLLECTED = (5_000, 20, 100)  # thresholds of the garbage collector, for its three generations
SIGNALS = (signal.SIGINT, signal.SIGTERM)

Result = TypeVar("Result")


async def serve(
    engine: Engine,
    listener: socket.socket,
    config: Config,
    on_ready: Callable[[ServerFile], None] = lambda _: None,
    *,
    operations: Sequence[ApiOperation] = OPERATIONS,
    app: App | None = None,
) -> None:
    """Serve requests until SIGINT or SIGTERM, or until cancelled.

    After a signal, the server accepts no new requests, and the running ones have `server.shutdown_grace` seconds to
    finish. A second signal aborts them. `on_ready` is called with the content of `server.json` when the server is
    ready. `app` is the app whose resources and prompts the gateway offers.
    """
    address = address_of(listener)
    url = config.database.url
    file = ServerFile.new(address.url, config.data, None if url is None else place_of(url.get_secret_value()))
    traffic = RequestLimits(config.limits)
    served = build_app(engine, address, token=file.token, traffic=traffic, operations=operations, app=app)
    server = _Server(served, traffic, config)
    async with SessionSweeper(engine.postgres), LoginWatch(engine.postgres.owner, login_limits(config.database)):
        with _signals(server.stop):
            listeners = [listener, *(listener.dup() for _ in range(ACCEPTED - 1))]
            running = asyncio.create_task(server.serve(sockets=listeners))
            try:
                await server.ready.wait()
                if server.started:
                    await asyncio.to_thread(file.write, config.data)
                    on_ready(file)
                await asyncio.wait([running])
            finally:
                server.stop_at_once()
                await running
                for each in listeners:
                    each.close()
                file.remove(config.data)


@asynccontextmanager
async def serve_privately(engine: Engine, config: Config) -> AsyncGenerator[tuple[Path, str]]:
    """Serve requests on a Unix socket that only this account can reach. Yield its path and the operator's token."""
    token, traffic = secrets.token_urlsafe(), RequestLimits(config.limits)
    server = _Server(build_app(engine, ServerAddress("127.0.0.1", 0), token=token, traffic=traffic), traffic, config)
    with TemporaryDirectory(prefix="holdfast-") as folder, socket.socket(socket.AF_UNIX) as listener:
        file = Path(folder) / "server.sock"
        listener.bind(str(file))
        listener.listen()
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await server.ready.wait()
            yield file, token
        finally:
            server.stop_at_once()
            await running


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on uvloop, and raise the limit of open files to `MAX_FILES` if possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def settle() -> None:
    """Exclude all current objects from garbage collection, and make it rarer: each collection blocks all requests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED)


class _Server(uvicorn.Server):
    """uvicorn with our limits and our shutdown."""

    def __init__(self, app: Callable[..., Any], traffic: RequestLimits, settings: Config) -> None:
        gate = ConnectionLimits(traffic.connections, settings.server.head_timeout)
        config = uvicorn.Config(
            app,
            http=cast(Any, partial(HttpConnection, gate=gate)),
            ws=SocketConnection,
            ws_max_size=3 * settings.agents.max_message_bytes + ENVELOPE,  # JSON escapes make a message longer
            ws_ping_interval=PING,
            ws_ping_timeout=PING,
            ws_per_message_deflate=False,  # events are short, and compression needs memory for each socket
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # any client can send these headers
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=FAREWELL,
        )
        super().__init__(config)
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # do not log invalid requests of clients
        self.ready = asyncio.Event()
        self._traffic = traffic
        self._grace = settings.server.shutdown_grace
        self._stopping: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then set `ready`, also after a failure."""
        try:
            await super().startup(sockets)
        finally:
            self.ready.set()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Install no handlers: `serve` handles the signals."""
        yield

    def stop(self) -> None:
        """Drain and stop. The second call stops at once."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._drain())
        else:
            self.stop_at_once()

    def stop_at_once(self) -> None:
        """Stop without draining."""
        self._traffic.stopping.set()
        self.should_exit = self.force_exit = True
        self._traffic.cut()

    def _close_sockets(self) -> None:
        """Close all WebSockets. Their clients resume on another server with their cursor."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, SocketConnection):
                connection.leave(SERVICE_RESTART, "the server stops; come back with your cursor")

    async def _drain(self) -> None:
        await self.ready.wait()
        for server in self.servers:
            server.close()
        self._close_sockets()
        await self._traffic.drain(self._grace)
        self.should_exit = True


@contextmanager
def _signals(stop: Callable[[], None]) -> Generator[None, None, None]:
    """Call `stop` on SIGINT and SIGTERM inside the block. Does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number, handler in previous.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
