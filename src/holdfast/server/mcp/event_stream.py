"""Event streams to MCP clients, as server-sent events."""

import asyncio
from contextlib import ExitStack
from time import monotonic
from typing import Final, Self

from starlette.requests import ClientDisconnect

from holdfast.server.gateway_request import GatewayRequest
from holdfast.server.streams import HEARTBEAT, SIGN_OF_LIFE

SLOW: Final = 30.0  # seconds that a client has to read an event
RETRY: Final = 1000  # milliseconds after which a client reconnects when it has lost its stream
STREAM: Final = [
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),  # some proxies buffer the stream otherwise
]


def encode_event(message: bytes, position: str | None = None) -> bytes:
    """Encode a message for the stream. The JSON has no line breaks. `position`: where a client resumes."""
    id = b"" if position is None else b"id: %b\n" % position.encode()
    return b"%bevent: message\ndata: %b\n\n" % (id, message)


def encode_first_event(position: str) -> bytes:
    """Encode the first event of a stream. It tells the client where to resume, and after how long."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (position.encode(), RETRY)


async def wait_for_disconnect(http_request: GatewayRequest) -> None:
    """Wait until the client has disconnected."""
    while (await http_request.receive())["type"] != "http.disconnect":
        pass


class McpEventStream:
    """An open stream to a client, inside `async with`. Others set `woken` when there may be something to send."""

    def __init__(self, http_request: GatewayRequest) -> None:
        self._http_request = http_request
        self._last_sent = monotonic()
        self._begun = False
        self._watched = ExitStack()
        self.woken = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._http_request.slot.listen()
        self._disconnect = asyncio.ensure_future(wait_for_disconnect(self._http_request))
        self._stopping = asyncio.ensure_future(self._http_request.slot.stopping.wait())
        self._ended = self._watched.enter_context(self._http_request.caller_session.watched())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._watched.close()
        for task in (self._disconnect, self._stopping):
            task.cancel()
        await asyncio.wait([self._disconnect, self._stopping])
        if kind is None and self._begun:
            await self._http_request.send({"type": "http.response.body", "body": b""})

    async def begin(self, first: bytes = b"") -> None:
        """Start the response."""
        self._begun = True
        await self._http_request.send({"type": "http.response.start", "status": 200, "headers": [*STREAM]})
        await self.send(first or SIGN_OF_LIFE)

    async def send(self, data: bytes) -> None:
        """Send data. Raises ClientDisconnect if the client does not read it in time."""
        try:
            async with asyncio.timeout(SLOW):
                await self._http_request.send({"type": "http.response.body", "body": data, "more_body": True})
        except TimeoutError:
            raise ClientDisconnect from None
        self._last_sent = monotonic()

    async def wait(self, seconds: float) -> bool:
        """Wait until woken, at most `seconds`. Return False if the server is stopping.

        Raises ClientDisconnect if the client has disconnected, and an error if its access has ended.
        """
        woken = asyncio.ensure_future(self.woken.wait())
        ends = [woken, self._disconnect, self._stopping, self._ended]
        try:
            done, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if self._disconnect in done:
                raise ClientDisconnect
            if self._ended.done():
                raise self._ended.result()
            await self._http_request.caller_session.check()
        finally:
            woken.cancel()
        self.woken.clear()
        if monotonic() - self._last_sent > HEARTBEAT:
            await self.send(SIGN_OF_LIFE)
        return not self._stopping.done()
