"""A watch: an iterator over the events of a conversation, each once and in order, from a cursor on.

A watcher that reads slowly or reconnects reads the rows from its cursor on.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Self, cast
from uuid import UUID

import msgspec

from holdfast.agents.events import PER_CLAIM, PER_RUN, Cursor, Event, Kind, Pieces, delta_event, events_of
from holdfast.conversations.errors import unknown_conversation
from holdfast.conversations.nodes import Node, node_of
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

PAGE = 500  # changes read at once, and the rest of the last revision
DELTAS = 1000  # deltas read at once

PIECES = ("token", "thinking")

sql = statements(__name__)


class Watch:
    """A watcher of a conversation: an iterator over its events, from a cursor on."""

    def __init__(
        self,
        database: Database,
        conversation: UUID,
        since: Cursor | None,
        max_bytes: int,
        live: Callable[[], Pieces | None],
    ) -> None:
        self._database = database
        self._live = live  # streamed text of a run in this process
        self.conversation = conversation
        self._parked: list[Callable[[], None]] | None = [] if since is None else None  # deliveries before it begins
        since = since or Cursor()
        self._seen = since  # up to what the iterator has returned
        self._queue_cursor = since  # up to what is queued
        self._waiting: deque[tuple[Event, int]] = deque()  # queued events with their sizes
        self._bytes = 0
        self._max_bytes = max_bytes
        self._behind = self._parked is None  # there may be rows that are not queued
        self._reading = False
        self._woken = asyncio.Event()
        self._closed = False
        self._unfinished = 0  # runs, as far as is known
        self._undecided = 0  # approvals without a queued decision

    @property
    def cursor(self) -> Cursor:
        """The cursor of the last event that the iterator returned."""
        return self._seen

    @property
    def expects(self) -> bool:
        """Whether a run is in progress, as far as is known."""
        return self._unfinished > 0

    @property
    def is_behind(self) -> bool:
        """Whether the next events have to be read from the rows, or the watch has not begun."""
        return self._behind or self._parked is not None

    @property
    def queue_cursor(self) -> Cursor:
        """The cursor of the last queued event."""
        return self._queue_cursor

    @property
    def has_more(self) -> bool:
        """Whether an event is queued."""
        return bool(self._waiting)

    @property
    def has_begun(self) -> bool:
        """Whether the start of the watch is known."""
        return self._parked is None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while (event := await self.next_now()) is None:
            if self._closed:
                raise StopAsyncIteration
            await self._woken.wait()
            self._woken.clear()
        return event

    async def next_now(self) -> Event | None:
        """Return the next event, or None if there is none yet."""
        while not self._waiting and self._behind and not self._closed:
            await self._catch_up()
        if not self._waiting:
            return None
        event, size = self._waiting.popleft()
        self._bytes -= size
        self._seen = _cursor_of(event)
        return event

    def begin(self, since: Cursor) -> None:
        """Set the start of a watch that was made without a cursor.

        Events that arrived since then are not lost, and no row is read.
        """
        parked, self._parked = self._parked or [], None
        self._seen = self._queue_cursor = since
        self._unfinished = 1
        for deliver in parked:
            deliver()

    def close(self) -> None:
        """Stop after the queued events."""
        self._closed = True
        self._woken.set()

    def deliver_node(self, node: Node) -> None:
        """Deliver an appended node. If it does not follow the last change, changes are missing: read the rows."""
        if self._parked is not None:
            self._parked.append(lambda: self.deliver_node(node))
            return
        if node.revision <= self._queue_cursor.revision or not self._keeps_up():
            return
        is_next = node.revision == self._queue_cursor.revision + 1
        if not is_next or self._undecided:  # the rows have what is missing, such as the decision, in its place
            self._fall_behind()
            return
        events = events_of([node], self._queue_cursor.n)[self._queue_cursor.part :]
        self._queue_cursor = Cursor(node.revision, self._queue_cursor.n)
        self._add(events)

    def pass_by(self, revision: int) -> None:
        """Deliver a change that no node shows."""
        if self._parked is not None:
            self._parked.append(lambda: self.pass_by(revision))
            return
        if revision <= self._queue_cursor.revision or not self._keeps_up():
            return
        if revision == self._queue_cursor.revision + 1:
            self._queue_cursor = Cursor(revision, self._queue_cursor.n)
        else:
            self._fall_behind()

    def deliver_delta(self, event: Event, n: int, after: int) -> None:
        """Deliver a delta. `after` is the number of the previous delta."""
        if self._parked is not None:
            self._parked.append(lambda: self.deliver_delta(event, n, after))
            return
        if n <= self._queue_cursor.n or (self._reading and event.kind in PIECES):  # the read finds these
            return
        if not self._keeps_up():
            return
        if _cursor_of(event).revision > self._queue_cursor.revision or not _follows(self._queue_cursor.n, after):
            self._fall_behind()
            return
        self._queue_cursor = self._queue_cursor._replace(n=n)
        self._add([_with_cursor(event, self._queue_cursor)])

    def deliver_polled(self, row: Row) -> None:
        """Deliver a delta that was read from the rows, with the revision of its conversation at that time.

        Nodes come before the deltas that follow them. If a node was queued since the read, the text of the delta may
        have become that node: the next poll tells.
        """
        if self._queue_cursor.revision < row["revision"]:
            self.look()
        elif self._queue_cursor.revision == row["revision"]:
            event = new_delta_event(row, self._queue_cursor)
            if event is not None:
                self.deliver_delta(event, row["n"], self._queue_cursor.n)

    def look(self) -> None:
        """Make the watch read the rows."""
        if self._parked is not None:
            self._parked.append(self.look)
            return
        self._fall_behind()

    def _keeps_up(self) -> bool:
        """Return whether events can be queued now. Otherwise, the rows are read after the queued events."""
        if self._reading or self._bytes > self._max_bytes:
            self._behind = True
        return not self._behind

    def _add(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind == "message":
                self._unfinished += 1
            elif event.kind in ("done", "error"):
                self._unfinished = max(0, self._unfinished - 1)
                self._undecided = 0
            elif event.run_id is not None:
                self._unfinished = max(1, self._unfinished)
            if event.kind == "approval":
                self._undecided += 1
            elif event.kind == "decision":
                self._undecided = max(0, self._undecided - 1)
            size = event.size
            self._waiting.append((event, size))
            self._bytes += size
        self._woken.set()

    def _fall_behind(self) -> None:
        self._behind = True
        self._woken.set()

    # The rows

    async def _catch_up(self) -> None:
        """Read a page of the rows that are not queued yet."""
        start = self._queue_cursor
        self._reading = True  # events that arrive meanwhile are read from the rows, now or next time
        try:
            self._behind = False
            rows = await self._database.all(sql("changes"), self.conversation, start.revision, PAGE)
            if not rows:
                raise unknown_conversation(self.conversation)
            deltas = await self._database.all(sql("deltas"), [self.conversation], [start.n])
        except BaseException:
            self._behind = True
            raise
        finally:
            self._reading = False
        self._behind = not self._take(rows, deltas) or self._behind
        self._unfinished = rows[0]["unfinished"]

    def _take(self, rows: Sequence[Row], deltas: Sequence[Row]) -> bool:
        """Queue what was read, up to the size limit. Return whether that was everything."""
        nodes = [node_of(row) for row in rows if row["id"] is not None]
        pending = deque(deltas)
        ahead = {str(node.id) for node in nodes if node.version == 1}
        for revision, group in groupby(nodes, lambda node: node.revision):
            changed = list(group)
            while pending and _precedes(pending[0], changed[0], ahead):
                if not self._queue_delta(pending.popleft()):
                    return False
            if self._bytes > self._max_bytes:
                return False
            start = self._queue_cursor
            self._queue_cursor = Cursor(revision, start.n)
            self._add(events_of(changed, start.n)[start.part if revision == start.revision + 1 else 0 :])
            ahead.difference_update(str(node.id) for node in changed)
        if len(nodes) >= PAGE:
            return False
        self._queue_cursor = Cursor(max(rows[0]["current"], self._queue_cursor.revision), self._queue_cursor.n)
        if pending and pending[0]["revision"] > self._queue_cursor.revision:  # newer nodes come before these deltas
            return False
        # A node that arrived meanwhile comes before the text that is being streamed.
        pieces = () if self._behind or len(deltas) == DELTAS else self._pieces_after(pending)
        for row in (*pending, *(pieces or ())):
            if not self._queue_delta(row):
                return False
        return len(deltas) < DELTAS and (pieces is not None or not (nodes or deltas))

    def _queue_delta(self, row: Row | Mapping[str, Any]) -> bool:
        """Queue a delta. Return False if too much is queued already."""
        if self._bytes > self._max_bytes:
            return False
        event = new_delta_event(row, self._queue_cursor)
        if event is not None:
            self._queue_cursor = self._queue_cursor._replace(n=row["n"])
            self._add([event])
        return True

    def _pieces_after(self, rows: Iterable[Row]) -> Sequence[Mapping[str, Any]] | None:
        """Return the text that this process streams after these rows, or None if there are newer rows by now."""
        live = self._live()
        if live is None:
            return ()
        return live.unsaved if live.saved <= max([self._queue_cursor.n, *(row["n"] for row in rows)]) else None


def new_delta_event(row: Row | Mapping[str, Any], queued: Cursor) -> Event | None:
    """Build the event of a delta without text that was already queued. Return None if all of it was."""
    n, kind, data = row["n"], cast(Kind, row["kind"]), row["data"]
    if n <= queued.n:
        return None
    if kind in PIECES and not data.get("reset"):
        begins = n - len(data["text"])
        if begins < queued.n and n // PER_RUN == queued.n // PER_RUN:
            data = {**data, "text": data["text"][queued.n - begins :]}
    event = delta_event(queued.revision, n, row["run_id"], kind, data, row["at"])
    return _with_cursor(event, queued._replace(n=n))


def _precedes(row: Row, node: Node, ahead: set[str]) -> bool:
    """Return whether a delta comes before a node.

    Pieces of text never do: the rows have only pieces of the text that is being streamed now. The end of a run does not
    come before the answer of the run, even if the clock says so.
    """
    return row["kind"] not in PIECES and row["at"] < node.updated_at and row["data"].get("answer") not in ahead


def _follows(last: int, after: int) -> bool:
    """Return whether there is no delta between these numbers. The first claim of a run follows the previous run."""
    run = after - after % PER_RUN
    return last == after or (after == run + PER_CLAIM and (last in (run - 1, run) or (last, run) == (0, PER_RUN)))


def _with_cursor(event: Event, cursor: Cursor) -> Event:
    return msgspec.structs.replace(event, cursor=str(cursor))


def _cursor_of(event: Event) -> Cursor:
    return Cursor(*map(int, event.cursor.split(".")))
