"""Exchanges: the answer to what a client with a session has posted.

It is one JSON object, or, once something is told before it or it takes its time, a stream. What is sent on the stream
is kept: when the client loses it, the work goes on, and the client takes it up again, here or elsewhere.
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
from holdfast.gateway.mcp.legacy.kept_streams import KeptStreams, Stream
from holdfast.gateway.mcp.legacy.sessions import Session
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.mcp.protocol import INVALID_REQUEST, LEGACY, McpError
from holdfast.server.arrivals import Arrival
from holdfast.server.mcp.staying import STREAM, disconnected, framed, primed
from holdfast.server.streams import SIGN_OF_LIFE

SLOW: Final = 10.0  # seconds that a client may take to read what it is told while its request is worked on
NEWEST: Final = LEGACY[0]  # the one version whose clients come back for a stream that was only begun
NOT_ACCEPTABLE: Final = 406

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Forms:
    """Which forms of an answer a client takes."""

    json: bool
    stream: bool

    @classmethod
    def of(cls, accept: str | None) -> "Forms":
        """What an Accept header says; without one, both."""
        kinds = {kind.partition(";")[0].strip().lower() for kind in (accept or "*/*").split(",")}
        return cls(
            not kinds.isdisjoint({"*/*", "application/*", "application/json"}),
            not kinds.isdisjoint({"*/*", "text/*", "text/event-stream"}),
        )

    def check(self, *, stream: bool = False) -> None:
        """Refuse a client that takes nothing that it could be answered with; `stream`: it has to be a stream."""
        if not (self.stream or (self.json and not stream)):
            wanted = "text/event-stream" if stream else "application/json and text/event-stream"
            raise McpError(INVALID_REQUEST, f"the client has to accept {wanted}", status=NOT_ACCEPTABLE)

    async def answer(self, arrival: Arrival, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """Answer with all of it at once."""
        if self.json:
            await arrival.answer(body, headers=headers)
        else:
            (_, kind), *more = STREAM
            await arrival.answer(framed(body), content_type=kind, headers=(*more, *headers))


class Exchange(Protocol):
    """How a client hears of its requests."""

    async def tell(self, message: Mapping[str, Any]) -> None:
        """Tell something before the answer, or ask it; Unavailable where a question would reach nobody."""
        ...

    async def respond(self, body: bytes) -> None:
        """Answer one of the requests."""
        ...

    async def detach(self) -> None:
        """Let the client come back for what follows, where it can."""
        ...

    async def beat(self) -> None:
        """Show that the requests are worked on."""
        ...

    @property
    def stream(self) -> str | None:
        """The stream that its client may take up elsewhere."""
        ...

    def taken_up(self) -> None:
        """Somebody has taken up the stream, and is told there what follows."""
        ...

    async def close(self) -> None:
        """Nothing more is said."""
        ...


class HttpExchange(Exchange):
    """The answer to a POST: to one request, or to a `batch`."""

    def __init__(
        self,
        arrival: Arrival,
        gateway: Gateway,
        session: Session,
        ids: Sequence[RequestId],
        forms: Forms,
        *,
        batch: bool,
    ) -> None:
        self._arrival = arrival
        self._session = session
        self._ids = ids
        self._forms = forms
        self._batch = batch
        self._streams = KeptStreams(gateway)
        self._signals = Signals.of(gateway)
        self._max_bytes = gateway.engine.config.gateway.max_result_bytes
        self._sending = asyncio.Lock()
        self._stream: Stream | None = None
        self._attached = True
        self._taken = False
        self._left = len(ids)
        self._responses: list[bytes] = []
        self._gone: asyncio.Future[None] | None = None

    async def tell(self, message: Mapping[str, Any]) -> None:
        """Tell something before the answer, or ask it."""
        data = render(message)
        _refuse_larger(data, self._max_bytes)
        asks = "id" in message
        async with self._sending:
            if self._left and await self._opened() is not None:
                await self._put(data, asks=asks)
            elif asks:
                why = "it takes no stream, or its session has ended"
                raise Unavailable("the client cannot be asked", why=why, next="Accept text/event-stream.")

    async def respond(self, body: bytes) -> None:
        """Answer one of the requests."""
        async with self._sending:
            self._left -= 1
            if self._stream is not None:
                await self._put(body, last=not self._left)
                return
            self._responses.append(body)
            if not self._left:
                whole = b"[%b]" % b",".join(self._responses) if self._batch else body
                await self._forms.answer(self._arrival, whole)

    async def detach(self) -> None:
        """End the connection, and go on: the client comes back by itself if it has the newest of these versions."""
        async with self._sending:
            if self._session.version == NEWEST and self._left and await self._opened() is not None:
                await self._hang_up()

    async def beat(self) -> None:
        """Show that the requests are worked on."""
        if self._stream is not None:
            await self._streams.renew(self._stream)
        if self._gone is None:
            self._gone = asyncio.ensure_future(disconnected(self._arrival))
        # What is being sent shows it, too: to wait for somebody who reads slowly might outlast the lease.
        if self._sending.locked():
            return
        async with self._sending:
            self._attached = self._attached and not self._gone.done()
            if not self._left:
                return
            if self._stream is None:
                await self._opened()
            elif self._taken:
                await self._hang_up()
            else:
                await self._send(SIGN_OF_LIFE)

    @property
    def stream(self) -> str | None:
        """The stream that its client may take up elsewhere."""
        return None if self._stream is None else self._stream.id

    def taken_up(self) -> None:
        """Somebody has taken up the stream, and is told there what follows."""
        self._taken = True

    async def close(self) -> None:
        """Nothing more is said."""
        if self._gone is not None:
            self._gone.cancel()
            await asyncio.wait([self._gone])

    async def _opened(self) -> Stream | None:
        """The stream of the answer, where the client takes one and its session has not ended."""
        if self._stream is None and self._forms.stream:
            stream = await self._streams.open(self._session, self._ids, whole=not self._batch)
            if stream is None:
                return None
            await self._arrival.send({"type": "http.response.start", "status": 200, "headers": [*STREAM]})
            self._stream = stream
            if self._session.version == NEWEST:  # others cannot read what has no data
                await self._send(primed(self._stream.position))
            responses, self._responses = self._responses, []
            for body in responses:
                await self._put(body)
        return self._stream

    async def _put(self, data: bytes, *, last: bool = False, asks: bool = False) -> None:
        """Keep a message, and send it; the last one ends the stream. What cannot be kept is sent all the same."""
        assert self._stream is not None
        keep = self._streams.end if last else self._streams.leave if asks else self._streams.store
        try:
            await keep(self._stream, data)
            if not self._is_read:
                await self._signals.say(self._session.key, "events")
        except HoldfastError as error:
            if asks and not self._is_read:
                raise
            log.warning("what an MCP client is told could not be kept for it: %s", error)
        if self._is_read:
            await self._send(framed(data, self._stream.position))
        if last:
            await self._hang_up()

    @property
    def _is_read(self) -> bool:
        """Whether the stream is still read where it began."""
        return self._attached and not self._taken

    async def _send(self, data: bytes) -> None:
        if not self._attached:
            return
        try:
            async with asyncio.timeout(SLOW):
                await self._arrival.send({"type": "http.response.body", "body": data, "more_body": True})
        except TimeoutError:
            self._attached = False

    async def _hang_up(self) -> None:
        if self._attached:
            self._attached = False
            await self._arrival.send({"type": "http.response.body", "body": b""})


class SseExchange(Exchange):
    """The answer to a message of HTTP+SSE: all of it goes to whoever has the stream of the session."""

    def __init__(self, gateway: Gateway, session: Session) -> None:
        self._session = session
        self._streams = KeptStreams(gateway)
        self._signals = Signals.of(gateway)
        self._stream = Stream(session.key, uuid7().hex)
        self._max_bytes = gateway.engine.config.gateway.max_result_bytes

    async def tell(self, message: Mapping[str, Any]) -> None:
        """Tell something before the answer, or ask it."""
        data = render(message)
        _refuse_larger(data, self._max_bytes)
        if "id" in message or not self._stream.is_full:
            await self.respond(data)

    async def respond(self, body: bytes) -> None:
        """Answer one of the requests."""
        await self._streams.leave(self._stream, body)
        await self._signals.say(self._session.key, "events")

    async def detach(self) -> None:
        """The session is its stream: there is no coming back."""

    async def beat(self) -> None:
        """The one who has the stream shows that it lives."""

    @property
    def stream(self) -> str | None:
        """The session is its stream."""
        return None

    def taken_up(self) -> None:
        """There is none to take up."""

    async def close(self) -> None:
        """Nothing more is said."""


def _refuse_larger(data: bytes, most: int) -> None:
    if len(data) > most:
        raise TooLarge(
            "the message is too large", why=f"it has {len(data)} bytes, at most {most} are sent", next="Send less."
        )
