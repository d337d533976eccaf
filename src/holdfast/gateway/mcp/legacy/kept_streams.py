"""Kept streams: answers in parts, each of which is kept, so that a client that lost one takes it up again.

It does so by the id of the last part that it has, in whatever process. Of a stream whose process is gone it is told
that nothing follows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

from holdfast.core.ids import uuid7
from holdfast.core.text import loads, render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.answers import RequestId, refused
from holdfast.gateway.mcp.legacy.sessions import Session
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.mcp.protocol import INTERNAL_ERROR
from holdfast.postgres.sql import statements

LEASE: Final = timedelta(seconds=20)  # after which, without a sign of it, nobody works on an answer
KEPT_FOR: Final = timedelta(minutes=5)  # after its end
MOST: Final = 1000  # messages of one stream that are kept, beside its last
MOST_BYTES: Final = 4_000_000  # of these; what is more is sent, and not kept
BATCH: Final = 20  # messages that are read at once: they may be as large as results
LAST: Final = 2**40  # the number of the last message of a stream that was given up

GIVEN_UP: Final = "whoever worked on this request has stopped: it may have taken effect, or not"

_POSITION = re.compile(r"([0-9a-f]{32})\.([0-9]{1,15})")

sql = statements(__name__)


@dataclass(slots=True)
class Stream:
    """A stream, as the one who sends on it knows it: the number of its last message, and how many bytes are kept."""

    session: str
    id: str
    number: int = 0
    kept: int = 0

    @property
    def position(self) -> str:
        """The id of the last message: where a client goes on."""
        return f"{self.id}.{self.number}"

    @property
    def is_full(self) -> bool:
        """Whether nothing is kept any more but the answer itself."""
        return self.number >= MOST or self.kept >= MOST_BYTES


@dataclass(frozen=True, slots=True)
class Part:
    """What follows on a stream: messages, each with its id, whether it is over, and who took it up last."""

    messages: Sequence[tuple[int, bytes]]
    over: bool
    reader: str


class KeptStreams:
    """Keeps the streams of one tenant's sessions."""

    def __init__(self, gateway: Gateway) -> None:
        self._database = gateway.engine.database
        self._signals = Signals.of(gateway)

    async def open(self, session: Session, requests: Sequence[RequestId], *, whole: bool) -> Stream | None:
        """A stream for the answer to some requests, a batch unless it is `whole`; None where the session has ended."""
        stream = Stream(session.key, uuid7().hex)
        ids = render(requests[0] if whole else list(requests)).decode()
        opened = await self._database.value(sql("open_stream"), session.key, stream.id, ids, LEASE, KEPT_FOR)
        return stream if opened else None

    async def store(self, stream: Stream, message: bytes) -> None:
        """Keep a message that is about to be sent."""
        if stream.is_full:
            stream.number += 1
        else:
            await self.leave(stream, message)

    async def leave(self, stream: Stream, message: bytes) -> None:
        """Keep a message that somebody has to get, however many there are."""
        stream.number += 1
        stream.kept += len(message)
        await self._database.run(sql("store_event"), stream.session, stream.id, stream.number, message.decode())

    async def take(self, session: Session) -> list[bytes]:
        """What was left first for the one who has the stream of a session of HTTP+SSE; nothing: that was all."""
        rows = await self._database.all(sql("take_events"), session.key, BATCH)
        return [row["message"].encode() for row in rows]

    async def end(self, stream: Stream, message: bytes) -> None:
        """Keep the last message that is about to be sent."""
        stream.number += 1
        await self._database.run(sql("end_stream"), stream.session, stream.id, stream.number, message.decode())

    async def renew(self, stream: Stream) -> None:
        """Say that somebody works on the answer."""
        await self._database.run(sql("renew_stream"), stream.session, stream.id, LEASE)

    async def take_up(self, session: Session, stream: str, token: str) -> None:
        """Read a stream from now on; whoever read it before learns that it is lost."""
        await self._database.run(sql("take_up_stream"), session.key, stream, token)
        await self._signals.say(session.key, "calls", "events")

    async def after(self, session: Session, stream: str, number: int) -> Part | None:
        """What follows after a message; None where there is no such stream."""
        row = await self._database.one(sql("stream"), session.key, stream)
        if row is None:
            return None
        if not row["ended"] and not row["alive"]:
            last = given_up(loads(row["requests"])).decode()
            await self._database.run(sql("end_stream"), session.key, stream, LAST, last)
        rows = await self._database.all(sql("events"), session.key, stream, number, BATCH)
        # The end was looked at first: what was written before it is among the rows.
        over = row["ended"] and len(rows) < BATCH
        return Part([(each["number"], each["message"].encode()) for each in rows], over, row["reader"] or "")


def position_of(id: str) -> tuple[str, int] | None:
    """The stream and the number that the id of a message is made of."""
    found = _POSITION.fullmatch(id)
    return (found[1], int(found[2])) if found else None


def given_up(requests: object) -> bytes:
    """What the client is told whose requests nobody works on any more."""
    error: Mapping[str, Any] = {"code": INTERNAL_ERROR, "message": GIVEN_UP}
    if isinstance(requests, list):
        return b"[%b]" % b",".join(refused(id, error) for id in cast(list[RequestId], requests))
    return refused(cast(RequestId, requests), error)
