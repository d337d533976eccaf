"""Kept streams: stores the messages on the stream of an answer, so that a client that lost the stream can resume it.

The client resumes from the id of the last message that it has, in any process. If the process that worked on the answer
is gone, the client gets an error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

from holdfast.core.ids import uuid7
from holdfast.core.text import loads, render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.answers import RequestId, encode_error
from holdfast.gateway.mcp.legacy.sessions import McpSession
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.mcp.protocol import INTERNAL_ERROR
from holdfast.postgres.sql import statements

LEASE: Final = timedelta(seconds=20)  # of the process that works on the answer
KEPT_FOR: Final = timedelta(minutes=5)  # after the end of a stream
MOST: Final = 1000  # stored messages of one stream, besides questions and the last message
MOST_BYTES: Final = 4_000_000  # of stored messages; further ones are sent, but not stored
BATCH: Final = 20  # messages in one read: they can be as large as results
LAST: Final = 2**40  # number of the last message of an abandoned stream

GIVEN_UP: Final = "whoever worked on this request has stopped: it may have taken effect, or not"

_POSITION = re.compile(r"([0-9a-f]{32})\.([0-9]{1,15})")

sql = statements(__name__)


@dataclass(slots=True)
class Stream:
    """A stream as its sender knows it: the number of its last message, and how many bytes are stored."""

    session: str
    id: str
    number: int = 0
    stored_bytes: int = 0

    @property
    def position(self) -> str:
        """The id of the last message, from which a client resumes."""
        return f"{self.id}.{self.number}"

    @property
    def is_full(self) -> bool:
        """Whether only messages that have to arrive are still stored, such as questions and the answer."""
        return self.number >= MOST or self.stored_bytes >= MOST_BYTES


@dataclass(frozen=True, slots=True)
class StoredPart:
    """The next messages of a stream with their numbers, whether the stream is over, and its latest reader."""

    messages: Sequence[tuple[int, bytes]]
    over: bool
    reader: str


class StoredStreams:
    """Stores the streams of one tenant's sessions."""

    def __init__(self, gateway: Gateway) -> None:
        self._database = gateway.engine.database
        self._signals = Signals.of(gateway)

    async def open(self, session: McpSession, requests: Sequence[RequestId], *, whole: bool) -> Stream | None:
        """Open a stream for the answer to one request (`whole`) or to a batch; None if the session has ended."""
        stream = Stream(session.key, uuid7().hex)
        ids = render(requests[0] if whole else list(requests)).decode()
        opened = await self._database.value(sql("open_stream"), session.key, stream.id, ids, LEASE, KEPT_FOR)
        return stream if opened else None

    async def store(self, stream: Stream, message: bytes) -> None:
        """Store a message before it is sent, unless the stream is full."""
        if stream.is_full:
            stream.number += 1
        else:
            await self.leave(stream, message)

    async def leave(self, stream: Stream, message: bytes) -> None:
        """Store a message that has to arrive, even if the stream is full."""
        stream.number += 1
        stream.stored_bytes += len(message)
        await self._database.run(sql("store_event"), stream.session, stream.id, stream.number, message.decode())

    async def take(self, session: McpSession) -> list[bytes]:
        """Take the next messages for the stream of an HTTP+SSE session; empty if there are no more."""
        rows = await self._database.all(sql("take_events"), session.key, BATCH)
        return [row["message"].encode() for row in rows]

    async def end(self, stream: Stream, message: bytes) -> None:
        """Store the last message before it is sent, and end the stream."""
        stream.number += 1
        await self._database.run(sql("end_stream"), stream.session, stream.id, stream.number, message.decode())

    async def renew(self, stream: Stream) -> None:
        """Renew the lease on the answer."""
        await self._database.run(sql("renew_stream"), stream.session, stream.id, LEASE)

    async def take_up(self, session: McpSession, stream: str, token: str) -> None:
        """Become the reader of a stream; the former reader is notified, and stops."""
        await self._database.run(sql("take_up_stream"), session.key, stream, token)
        await self._signals.notify(session.key, "calls", "events")

    async def after(self, session: McpSession, stream: str, number: int) -> StoredPart | None:
        """Return the messages after a number; None if there is no such stream. End one whose lease has expired."""
        row = await self._database.one(sql("stream"), session.key, stream)
        if row is None:
            return None
        if not row["ended"] and not row["alive"]:
            last = encode_given_up(loads(row["requests"])).decode()
            await self._database.run(sql("end_stream"), session.key, stream, LAST, last)
        rows = await self._database.all(sql("events"), session.key, stream, number, BATCH)
        # The end was read before the messages: if the stream had ended, all its messages are stored.
        over = row["ended"] and len(rows) < BATCH
        return StoredPart([(each["number"], each["message"].encode()) for each in rows], over, row["reader"] or "")


def position_of(id: str) -> tuple[str, int] | None:
    """Return the stream and the number in the id of a message; None if it is malformed."""
    found = _POSITION.fullmatch(id)
    return (found[1], int(found[2])) if found else None


def encode_given_up(requests: object) -> bytes:
    """Return the error for requests that nobody works on any more."""
    error: Mapping[str, Any] = {"code": INTERNAL_ERROR, "message": GIVEN_UP}
    if isinstance(requests, list):
        return b"[%b]" % b",".join(encode_error(id, error) for id in cast(list[RequestId], requests))
    return encode_error(cast(RequestId, requests), error)
