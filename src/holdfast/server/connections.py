"""HTTP connections: uvicorn's protocol, with limits that uvicorn does not have."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.ids import uuid7
from holdfast.core.shares import Holder, Shares
from holdfast.server.middleware import SECURITY_HEADERS
from holdfast.server.problems import SlowHead, problem_response

KEEP_ALIVE = 65  # seconds; longer than the usual 60 of proxies, so that the proxy closes the connection
MAX_HEAD_BYTES = 64 * 1024  # request line and headers
UNREAD = 60  # seconds in which a client must read some of the buffered data


class WriteTimeout:
    """A timer for clients that do not read. It runs while the write buffer is full; a slow reader restarts it."""

    def __init__(self, transport: asyncio.Transport, give_up: Callable[[], None]) -> None:
        self._transport = transport
        self._give_up = give_up
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Start the timer: the write buffer is full."""
        self._bytes = self._transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(UNREAD, self._check)

    def end(self) -> None:
        """Stop the timer: the buffer has room, or the connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        if self._transport.get_write_buffer_size() < self._bytes:
            self.begin()
        else:
            self._timer = None
            self._give_up()


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of connections: places per address, and seconds for the request line and headers."""

    places: Shares
    head_timeout: float


class ConnectionSlot:
    """A connection's place among those of its address. After an upgrade, the WebSocket keeps it."""

    def __init__(self, places: Shares, holder: Holder) -> None:
        self._places = places
        self._holder = holder
        places.acquire(holder)

    def give(self) -> None:
        """Release the place."""
        self._places.release(self._holder)


class HttpConnection(HttpToolsProtocol):
    """An HTTP connection with timeouts for idle clients and slow headers, and a size limit for headers."""

    _patience: asyncio.TimerHandle | None = None
    _place: ConnectionSlot | None = None
    _in_head = False
    _head_bytes = 0
    _ended_another = False
    _unread: WriteTimeout

    def __init__(self, *given: Any, gate: ConnectionLimits, **named: Any) -> None:
        super().__init__(*given, **named)
        self._gate = gate

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place and wait for the first request. Refuse the connection if its address has too many."""
        super().connection_made(transport)
        self._unread = WriteTimeout(transport, transport.abort)
        try:
            self._place = ConnectionSlot(self._gate.places, (self.client[0] if self.client else "", ""))
        except HoldfastError as error:
            self._refuse(error)
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers and release the place."""
        self._stop_waiting()
        if self._place is not None:
            self._place.give()
            self._place = None
        self._unread.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The write buffer is full: start the timer."""
        super().pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """The write buffer has room again: stop the timer."""
        super().resume_writing()
        self._unread.end()

    def data_received(self, data: bytes) -> None:
        """Parse data, and refuse a request line and headers over `MAX_HEAD_BYTES`."""
        self._ended_another = False
        super().data_received(data)
        # Data that completed another request is not counted: most of it may be the body of that request.
        if self._in_head and not self._ended_another and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.send_400_response(f"Its request line and headers have more than {MAX_HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        """A request begins: start the timeout of its headers."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0
        self._stop_waiting()
        self._patience = self.loop.call_later(self._gate.head_timeout, self._head_is_late)

    def on_headers_complete(self) -> None:
        """The headers are complete: from here on, the timeouts of requests apply."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request has arrived completely."""
        self._ended_another = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self._wait()

    def handle_websocket_upgrade(self) -> None:
        """Upgrade to a WebSocket, unless an earlier request is not answered yet."""
        self._unread.end()
        if self.cycle and not self.cycle.response_complete:
            self.send_400_response("A socket was asked for before the answer to another request.")
        elif not self.url.isascii():
            self.send_400_response("Its address is not ASCII.")
        else:
            super().handle_websocket_upgrade()
            socket: Any = self.transport.get_protocol()
            socket.place, self._place = self._place, None

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid request with a problem, and close the connection."""
        self.transport.write(bad_request(msg))
        self.transport.close()

    def _refuse(self, error: HoldfastError) -> None:
        self.transport.write(problem_bytes(error))
        self.transport.close()

    def _head_is_late(self) -> None:
        limit = self._gate.head_timeout
        if self.cycle and not self.cycle.response_complete:  # do not interrupt the response to the previous request
            self._patience = self.loop.call_later(limit, self._head_is_late)
            return
        why = f"its request line and headers took over {limit:g} seconds"
        self._refuse(SlowHead("the request did not arrive in time", why=why, next="Send it faster."))

    def _wait(self) -> None:
        self._stop_waiting()
        self._patience = self.loop.call_later(KEEP_ALIVE, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _hang_up(self, *_: Any) -> None:
        self.transport.close()


def bad_request(why: str) -> bytes:
    """Return the response to an invalid request, as bytes."""
    return problem_bytes(InvalidInput("this is not a valid HTTP request", why=why, next="Correct it."))


def problem_bytes(error: HoldfastError) -> bytes:
    """Return a problem as the bytes of an HTTP response, for requests that do not reach the application."""
    response = problem_response(error, instance="", request_id=str(uuid7()))
    head: list[tuple[bytes, bytes]] = [
        *response.raw_headers,
        *((name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()),
        (b"connection", b"close"),
    ]
    status = HTTPStatus(response.status_code)
    first = f"HTTP/1.1 {status.value} {status.phrase}".encode()
    lines = [first, *(name + b": " + value for name, value in head), b"", bytes(response.body)]
    return b"\r\n".join(lines)
