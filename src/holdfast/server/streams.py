"""Event streams: sends events of a conversation or of research to a client as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.text import render
from holdfast.server.operations import ApiCall

Item = TypeVar("Item")

EVENT_STREAM = "text/event-stream"
HEARTBEAT = 15  # seconds without an event after which a keep-alive comment is sent
SIGN_OF_LIFE = b": still here\n\n"


class EventStream(Response):
    """A response of server-sent events, sent as the generator yields them."""

    media_type = EVENT_STREAM

    def __init__(self, parts: AsyncGenerator[bytes], *, first: bytes = b"") -> None:
        # Some proxies buffer the response otherwise.
        super().__init__(headers={"x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._parts = parts
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        async with aclosing(self._parts) as parts:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if self._first:
                await send({"type": "http.response.body", "body": self._first, "more_body": True})
            async for part in parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def wants_stream(request: Request) -> bool:
    """Whether the client accepts an event stream."""
    return request.method != "HEAD" and EVENT_STREAM in request.headers.get("accept", "").lower()


def encode_event(kind: str, cursor: str, data: object) -> bytes:
    """Encode an event for the stream. The rendered JSON has no line breaks."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), kind.encode(), render(data))


async def follow_events(
    call: ApiCall, watch: AsyncIterator[Item], *, stops: bool = False
) -> AsyncGenerator[Item | None]:
    """Yield events while the client is connected and its access is valid; None after `HEARTBEAT` without an event.

    `stops`: end when the server stops.
    """
    assert call.caller_session is not None
    disconnect = asyncio.ensure_future(_wait_for_disconnect(call.request))
    stopping = asyncio.ensure_future(call.slot.stopping.wait())
    next_event: asyncio.Future[Item | None] | None = None
    with call.caller_session.watched() as ended:
        ends = [disconnect, ended, stopping] if stops else [disconnect, ended]
        try:
            while True:
                next_event = next_event or asyncio.ensure_future(_next(watch))
                await asyncio.wait([next_event, *ends], timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
                if disconnect.done():
                    raise ClientDisconnect
                if ended.done():
                    raise ended.result()
                await call.caller_session.check()
                if next_event.done():
                    event, next_event = next_event.result(), None
                    if event is None:
                        return
                    yield event
                elif stops and stopping.done():
                    return
                else:
                    yield None
        finally:
            for task in (disconnect, stopping, *([next_event] if next_event else [])):
                task.cancel()
                await asyncio.wait([task])


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _next(watch: AsyncIterator[Item]) -> Item | None:
    """Return the next event, or None at the end: a task cannot raise StopAsyncIteration."""
    return await anext(watch, None)
