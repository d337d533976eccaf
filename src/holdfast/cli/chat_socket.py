"""WebSocket connections to agents: frames of the subprotocol `holdfast.v1+json`."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from holdfast.cli.api import Api, error_of
from holdfast.cli.invocation import Invocation
from holdfast.cli.servers import FoundServer, Server, find_server
from holdfast.core.errors import Forbidden, HoldfastError, TooLarge, Unavailable
from holdfast.core.threads import run_in_thread

if TYPE_CHECKING:
    from holdfast.engine import Engine

Frame = dict[str, Any]

PROTOCOL = "holdfast.v1+json"
MAX_FRAME = 64 * 1024 * 1024


class ChatSocket:
    """A connection to an agent: sends and receives frames."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, frame: Frame) -> None:
        """Send a frame. A broken connection drops it."""
        try:
            await self._socket.send(json.dumps(frame))
        except ConnectionClosed:
            return

    async def receive(self) -> Frame | None:
        """Return the next frame, or None if the connection is broken."""
        try:
            return json.loads(await self._socket.recv())
        except ConnectionClosed as closed:
            code, reason = (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (None, "")
            if code == CloseCode.MESSAGE_TOO_BIG:
                raise TooLarge("the message is too large", why=reason, next="Send a shorter message.") from None
            if code == CloseCode.POLICY_VIOLATION:
                raise Forbidden("the server closed the connection", why=reason) from None
            return None


class AgentServer:
    """Opens connections to agents on the command's server, also after a restart of the server."""

    def __init__(self, found: FoundServer) -> None:
        self._found = found
        self.api = Api(found.server)

    @asynccontextmanager
    async def connect(self, path: str) -> AsyncGenerator[ChatSocket]:
        """Open a connection. Raise Unavailable if a later attempt may succeed, otherwise another error."""
        server: Server = await run_in_thread(self._found.again, name="server")
        self.api = Api(server)
        try:
            socket = await _connect(server, path)
        except InvalidStatus as error:
            raise _refusal(error.response.body) from None
        except (OSError, TimeoutError, InvalidHandshake) as error:
            why = str(error) or type(error).__name__
            raise Unavailable(f"the server at {server.url} did not answer", why=why) from error
        async with socket:
            yield ChatSocket(socket)


async def _connect(server: Server, path: str) -> ClientConnection:
    url = urlsplit(server.url)
    address = url._replace(scheme="wss" if url.scheme == "https" else "ws").geturl() + path
    settings: dict[str, Any] = {
        "subprotocols": [Subprotocol(PROTOCOL)],
        "additional_headers": {name: value.decode() for name, value in server.headers.items()},
        "compression": None,
        "max_size": MAX_FRAME,
        "close_timeout": 1,
    }
    if server.socket is not None:
        return await unix_connect(server.socket, address, **settings)
    return await connect(address, proxy=None, **settings)


@asynccontextmanager
async def reach_agents(invocation: Invocation, agent: str | None, *, user: str | None) -> AsyncGenerator[AgentServer]:
    """Yield connections to the command's server. A server started for it serves the default and stored agents."""

    @asynccontextmanager
    async def serve(engine: "Engine") -> AsyncGenerator[None]:
        from holdfast.default import default_app

        config = invocation.config()
        tenant = await engine.tenants.find(config.tenant)
        async with engine.tenant(tenant.id).serving(default_app()) as served:
            if agent is not None and agent not in served.agents:
                await engine.tenant(tenant.id).definitions.get(agent)
                raise Unavailable(
                    f"no process serves the agent {agent}",
                    why=f"it is declared in a program, and no server runs on {config.data}",
                    next="Start it with `holdfast up APP`.",
                )
            yield

    async with find_server(invocation, user=user, serve=serve) as found:
        yield AgentServer(found)


def _refusal(body: bytes | None) -> HoldfastError:
    """Return the error of a refused connection."""
    try:
        return error_of(json.loads(body or b""))
    except (ValueError, KeyError, TypeError):
        return Unavailable("the server takes no line to agents", why="it did not say why", next="Look at its log.")
