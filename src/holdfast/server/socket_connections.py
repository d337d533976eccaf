"""The connection of a WebSocket: uvicorn's, which also notices who does not read, and says why it ends."""

import asyncio
from typing import Any

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from holdfast.server.connections import Place, Unread, bad_request

PING = 20  # seconds between two pings, and to answer one
LAST_WORD = 10.0  # seconds for the close frame to be read

SERVICE_RESTART = 1012
TRY_AGAIN_LATER = 1013
INTERNAL_ERROR = 1011


class SocketConnection(WebSocketsSansIOProtocol):
    """Closes on a client who reads nothing for a while, and on all when the server stops."""

    _unread: Unread
    place: Place | None = None  # among the connections of its address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over from HTTP."""
        super().connection_made(transport)
        self._unread = Unread(self.transport, lambda: self.leave(TRY_AGAIN_LATER, "nothing was read for too long"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._unread.end()
        if self.place is not None:
            self.place.give()
            self.place = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; a request that the handshake cannot read is refused, and not left waiting."""
        super().data_received(data)
        if not self.handshake_initiated:
            self.handshake_complete = True
            self.transport.write(bad_request("Its headers are too many or too long for a socket."))
            self.transport.close()

    def pause_writing(self) -> None:
        """More waits to be read than may."""
        super().pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """It was read."""
        super().resume_writing()
        self._unread.end()

    def keepalive_timeout(self) -> None:
        """Close on a client who is not there any more; one who is behind with reading has not seen the ping yet."""
        self.pong_timer = None
        if self.writable.is_set():
            self.leave(INTERNAL_ERROR, "no answer to a ping")
        else:
            self.schedule_ping()

    async def send(self, message: ASGISendEvent) -> None:
        """Send, if it is not closed meanwhile."""
        if self.close_sent:
            raise ClientDisconnected
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # it was refused: uvicorn would log each of these as an error

    def leave(self, code: int, reason: str) -> None:
        """Close, whether the client reads or not."""
        self.stop_keepalive()
        if not self.handshake_complete or self.close_sent or self.transport.is_closing():
            return
        closed: Any = {"type": "websocket.disconnect", "code": code, "reason": reason}
        self.queue.put_nowait(closed)
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:  # the client's close frame is to come
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(LAST_WORD, self.transport.abort)
