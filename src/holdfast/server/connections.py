"""Connections: uvicorn's, held to limits that uvicorn does not have."""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.core.errors import InvalidInput
from holdfast.core.ids import uuid7
from holdfast.server.guards import SECURITY_HEADERS
from holdfast.server.problems import problem_response

KEEP_ALIVE = 65  # seconds; longer than the 60 of common proxies, which should be the ones to hang up
MAX_HEAD_BYTES = 64 * 1024  # request line and headers
UNREAD = 60  # seconds in which somebody must read some of what waits for them


class Unread:
    """Gives up on somebody who reads nothing of what is sent to them; one who reads slowly is left in peace."""

    def __init__(self, transport: asyncio.Transport, give_up: Callable[[], None]) -> None:
        self._transport = transport
        self._give_up = give_up
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """More waits than may."""
        self._bytes = self._transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(UNREAD, self._look)

    def end(self) -> None:
        """It was read, or there is nobody any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._transport.get_write_buffer_size() < self._bytes:
            self.begin()
        else:
            self._timer = None
            self._give_up()


class Connection(HttpToolsProtocol):
    """Hangs up on a caller who keeps it waiting for a request, or whose request line and headers do not end."""

    _patience: asyncio.TimerHandle | None = None
    _in_head = False
    _head_bytes = 0
    _ended_another = False
    _unread: Unread

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._unread = Unread(transport, transport.abort)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        self._unread.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """More waits to be read than may."""
        super().pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """It was read."""
        super().resume_writing()
        self._unread.end()

    def data_received(self, data: bytes) -> None:
        """Read, but no endless head."""
        self._ended_another = False
        super().data_received(data)
        # What ended another request is not counted: most of it may have been that one's body.
        if self._in_head and not self._ended_another and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.send_400_response(f"Its request line and headers have more than {MAX_HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """The request is known; from here on the time-outs of requests hold."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request has come whole."""
        self._ended_another = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self._wait()

    def handle_websocket_upgrade(self) -> None:
        """Become a socket, unless a request before is being answered."""
        self._unread.end()
        if self.cycle and not self.cycle.response_complete:
            self.send_400_response("A socket was asked for before the answer to another request.")
        elif not self.url.isascii():
            self.send_400_response("Its address is not ASCII.")
        else:
            super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with a problem, and hang up."""
        self.transport.write(bad_request(msg))
        self.transport.close()

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
    """The answer to what is no HTTP: a problem."""
    error = InvalidInput("this is not a valid HTTP request", why=why, next="Correct it.")
    response = problem_response(error, instance="", request_id=str(uuid7()))
    head: list[tuple[bytes, bytes]] = [
        *response.raw_headers,
        *((name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()),
        (b"connection", b"close"),
    ]
    lines = [b"HTTP/1.1 400 Bad Request", *(name + b": " + value for name, value in head), b"", bytes(response.body)]
    return b"\r\n".join(lines)
