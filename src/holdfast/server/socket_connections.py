"""WebSocket connections: uvicorn's protocol, with a timeout for clients that do not read, and close reasons."""

import asyncio
from typing import Any

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from holdfast.server.connections import ConnectionSlot, WriteTimeout, bad_request

PING = 20  # seconds between two pings, and the timeout of a pong
LAST_WORD = 10.0  # seconds for the client to answer the close frame

SERVICE_RESTART = 1012
TRY_AGAIN_LATER = 1013
INTERNAL_ERROR = 1011


class SocketConnection(WebSocketsSansIOProtocol):
    """The connection of one WebSocket. It is closed if the client stops reading, and when the server stops."""

    _unread: WriteTimeout
    place: ConnectionSlot | None = None  # its place among the connections of its address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over from HTTP."""
        super().connection_made(transport)
        self._unread = WriteTimeout(
            self.transport, lambda: self.leave(TRY_AGAIN_LATER, "nothing was read for too long")
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer and release the place."""
        self._unread.end()
        if self.place is not None:
            self.place.give()
            self.place = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read data. A request that the handshake cannot parse gets an error; without it, the client would wait."""
        super().data_received(data)
        if not self.handshake_initiated:
            self.handshake_complete = True
            self.transport.write(bad_request("Its headers are too many or too long for a socket."))
            self.transport.close()

    def pause_writing(self) -> None:
        """The write buffer is full: start the timer."""
        super().pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """The write buffer has room again: stop the timer."""
        super().resume_writing()
        self._unread.end()

    def keepalive_timeout(self) -> None:
        """Close the connection, unless writing is paused: a slow reader may not have seen the ping yet."""
        self.pong_timer = None
        if self.writable.is_set():
            self.leave(INTERNAL_ERROR, "no answer to a ping")
        else:
            self.schedule_ping()

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message. Raises ClientDisconnected if a close frame was sent."""
        if self.close_sent:
            raise ClientDisconnected
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # uvicorn would log the refusal as an error

    def leave(self, code: int, reason: str) -> None:
        """Close the WebSocket, whether the client reads or not."""
        self.stop_keepalive()
        if not self.handshake_complete or self.close_sent or self.transport.is_closing():
            return
        closed: Any = {"type": "websocket.disconnect", "code": code, "reason": reason}
        self.queue.put_nowait(closed)
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:  # to receive the client's close frame
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(LAST_WORD, self.transport.abort)
