"""Exchanges: the responses to the requests that a client with a session has posted.

The response is a JSON object, or an event stream if something is sent before it or if it takes long. The messages of
the stream are stored. If the client loses the stream, the work continues, and the client can resume the stream in any
process.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from holdfast.core.errors import HoldfastError, TooLarge, Unavailable
from holdfast.core.ids import uuid7
from holdfast.core.text import render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.answers import RequestId
from holdfast.gateway.mcp.legacy.sessions import McpSession
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.gateway.mcp.legacy.stored_streams import StoredStreams, Stream
from holdfast.mcp.protocol import INVALID_REQUEST, LEGACY, McpError
from holdfast.server.gateway_request import GatewayRequest
from holdfast.server.mcp.event_stream import STREAM, encode_event, encode_first_event, wait_for_disconnect
from holdfast.server.streams import SIGN_OF_LIFE

SLOW: Final = 10.0  # seconds that a client has to read an event while its request runs
NEWEST: Final = LEGACY[0]  # the only version whose clients resume a stream on which nothing was sent yet
NOT_ACCEPTABLE: Final = 406

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AcceptedTypes:
    """The media types that a client accepts."""

    json: bool
    stream: bool

    @classmethod
    def of(cls, accept: str | None) -> "AcceptedTypes":
        """Parse an Accept header. Without one, both are accepted."""
        kinds = {kind.partition(";")[0].strip().lower() for kind in (accept or "*/*").split(",")}
        return cls(
            not kinds.isdisjoint({"*/*", "application/*", "application/json"}),
            not kinds.isdisjoint({"*/*", "text/*", "text/event-stream"}),
        )

    def check(self, *, stream: bool = False) -> None:
        """Raise McpError if the client accepts neither; with `stream`, if it does not accept event streams."""
        if not (self.stream or (self.json and not stream)):
            wanted = "text/event-stream" if stream else "application/json and text/event-stream"
            raise McpError(INVALID_REQUEST, f"the client has to accept {wanted}", status=NOT_ACCEPTABLE)

    async def answer(
        self, http_request: GatewayRequest, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        """Send the whole response, as JSON if the client accepts it, else as one event."""
        if self.json:
            await http_request.answer(body, headers=headers)
        else:
            (_, kind), *more = STREAM
            await http_request.answer(encode_event(body), content_type=kind, headers=(*more, *headers))


class LegacyExchange(Protocol):
    """Sends the responses, notifications and questions of some requests to their client."""

    async def send_message(self, message: Mapping[str, Any]) -> None:
        """Send a notification or a question. Raises Unavailable if a question cannot reach the client."""
        ...

    async def respond(self, body: bytes) -> None:
        """Send the response to one of the requests."""
        ...

    async def refuse(self) -> bool:
        """End without a response, if an HTTP error can be the response: one request, and nothing was sent yet."""
        ...

    async def detach(self) -> None:
        """Close the connection, if the client can resume the stream later."""
        ...

    async def beat(self) -> None:
        """Renew the lease of the stream and send a keep-alive."""
        ...

    @property
    def stream(self) -> str | None:
        """The id of the stream, if the client can resume it."""
        ...

    def stop_sending(self) -> None:
        """Stop sending on this connection: the client has resumed the stream on another one."""
        ...

    async def close(self) -> None:
        """End the exchange."""
        ...


class HttpExchange(LegacyExchange):
    """The response to a POST of one request or a `batch`."""

    def __init__(
        self,
        http_request: GatewayRequest,
        gateway: Gateway,
        session: McpSession,
        ids: Sequence[RequestId],
        forms: AcceptedTypes,
        *,
        batch: bool,
    ) -> None:
        self._http_request = http_request
        self._session = session
        self._ids = ids
        self._forms = forms
        self._batch = batch
        self._streams = StoredStreams(gateway)
        self._signals = Signals.of(gateway)
        self._max_bytes = gateway.engine.config.gateway.max_result_bytes
        self._sending = asyncio.Lock()
        self._stream: Stream | None = None
        self._attached = True
        self._resumed_elsewhere = False
        self._left = len(ids)
        self._responses: list[bytes] = []
        self._disconnect: asyncio.Future[None] | None = None

    async def send_message(self, message: Mapping[str, Any]) -> None:
        """Send a notification or a question on the stream."""
        data = render(message)
        _refuse_larger(data, self._max_bytes)
        is_question = "id" in message
        async with self._sending:
            if self._left and await self._open_stream() is not None:
                await self._put(data, is_question=is_question)
            elif is_question:
                why = "it takes no stream, or its session has ended"
                raise Unavailable("the client cannot be asked", why=why, next="Accept text/event-stream.")

    async def respond(self, body: bytes) -> None:
        """Send the response to one of the requests. The last one ends the exchange."""
        async with self._sending:
            self._left -= 1
            if self._stream is not None:
                await self._put(body, last=not self._left)
                return
            self._responses.append(body)
            if not self._left:
                whole = b"[%b]" % b",".join(self._responses) if self._batch else body
                await self._forms.answer(self._http_request, whole)

    async def refuse(self) -> bool:
        """End without a response, if an HTTP error can be the response."""
        async with self._sending:
            if self._batch or self._stream is not None:
                return False
            self._left = 0
            return True

    async def detach(self) -> None:
        """Close the connection and continue the work. Only clients of the newest version reconnect by themselves."""
        async with self._sending:
            if self._session.version == NEWEST and self._left and await self._open_stream() is not None:
                await self._hang_up()

    async def beat(self) -> None:
        """Renew the lease of the stream and send a keep-alive. The first call opens the stream."""
        if self._stream is not None:
            await self._streams.renew(self._stream)
        if self._disconnect is None:
            self._disconnect = asyncio.ensure_future(wait_for_disconnect(self._http_request))
        # A message that is being sent is a keep-alive too. Waiting for a slow reader could outlast the lease.
        if self._sending.locked():
            return
        async with self._sending:
            self._attached = self._attached and not self._disconnect.done()
            if not self._left:
                return
            if self._stream is None:
                await self._open_stream()
            elif self._resumed_elsewhere:
                await self._hang_up()
            else:
                await self._send(SIGN_OF_LIFE)

    @property
    def stream(self) -> str | None:
        """The id of the stream, once it is open."""
        return None if self._stream is None else self._stream.id

    def stop_sending(self) -> None:
        """Stop sending on this connection: the client has resumed the stream on another one."""
        self._resumed_elsewhere = True

    async def close(self) -> None:
        """Stop waiting for the client to disconnect."""
        if self._disconnect is not None:
            self._disconnect.cancel()
            await asyncio.wait([self._disconnect])

    async def _open_stream(self) -> Stream | None:
        """Return the stream, opened if necessary. None if the client accepts no stream or its session has ended."""
        if self._stream is None and self._forms.stream:
            stream = await self._streams.open(self._session, self._ids, whole=not self._batch)
            if stream is None:
                return None
            await self._http_request.send({"type": "http.response.start", "status": 200, "headers": [*STREAM]})
            self._stream = stream
            if self._session.version == NEWEST:  # clients of other versions cannot parse an event without data
                await self._send(encode_first_event(self._stream.position))
            responses, self._responses = self._responses, []
            for body in responses:
                await self._put(body)
        return self._stream

    async def _put(self, data: bytes, *, last: bool = False, is_question: bool = False) -> None:
        """Store a message and send it; the last one ends the stream. If it cannot be stored, it is sent anyway."""
        assert self._stream is not None
        store = self._streams.end if last else self._streams.leave if is_question else self._streams.store
        try:
            await store(self._stream, data)
            if not self._is_read:
                await self._signals.notify(self._session.key, "events")
        except HoldfastError as error:
            if is_question and not self._is_read:
                raise
            log.warning("what an MCP client is told could not be kept for it: %s", error)
        if self._is_read:
            await self._send(encode_event(data, self._stream.position))
        if last:
            await self._hang_up()

    @property
    def _is_read(self) -> bool:
        """Whether the client still reads the stream on this connection."""
        return self._attached and not self._resumed_elsewhere

    async def _send(self, data: bytes) -> None:
        if not self._attached:
            return
        try:
            async with asyncio.timeout(SLOW):
                await self._http_request.send({"type": "http.response.body", "body": data, "more_body": True})
        except TimeoutError:
            self._attached = False

    async def _hang_up(self) -> None:
        if self._attached:
            self._attached = False
            await self._http_request.send({"type": "http.response.body", "body": b""})


class SseExchange(LegacyExchange):
    """The response to a message of HTTP+SSE: it is stored, and the process of the session's stream sends it."""

    def __init__(self, gateway: Gateway, session: McpSession) -> None:
        self._session = session
        self._streams = StoredStreams(gateway)
        self._signals = Signals.of(gateway)
        self._stream = Stream(session.key, uuid7().hex)
        self._max_bytes = gateway.engine.config.gateway.max_result_bytes

    async def send_message(self, message: Mapping[str, Any]) -> None:
        """Send a notification or a question. Notifications are dropped when too much is stored."""
        data = render(message)
        _refuse_larger(data, self._max_bytes)
        if "id" in message or not self._stream.is_full:
            await self.respond(data)

    async def respond(self, body: bytes) -> None:
        """Store the response to one of the requests, and notify the process of the stream."""
        await self._streams.leave(self._stream, body)
        await self._signals.notify(self._session.key, "events")

    async def refuse(self) -> bool:
        """Return False: the POST was answered when it came."""
        return False

    async def detach(self) -> None:
        """Do nothing: a session ends with its stream."""

    async def beat(self) -> None:
        """Do nothing: the process of the stream sends keep-alives."""

    @property
    def stream(self) -> str | None:
        """None: the stream of the session cannot be resumed."""
        return None

    def stop_sending(self) -> None:
        """Do nothing: the stream cannot be resumed."""

    async def close(self) -> None:
        """Do nothing."""


def _refuse_larger(data: bytes, most: int) -> None:
    if len(data) > most:
        raise TooLarge(
            "the message is too large", why=f"it has {len(data)} bytes, at most {most} are sent", next="Send less."
        )
