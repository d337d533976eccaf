"""A watch: one who watches a conversation, and is told everything of it once, in order, from a cursor on.

Whoever reads slowly, or comes back, is served from the rows, from where they were.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Self, cast
from uuid import UUID

import msgspec

from holdfast.agents.events import PER_CLAIM, PER_RUN, Cursor, Event, Kind, Pieces, delta_event, events_of
from holdfast.conversations.nodes import Node, node_of
from holdfast.conversations.refusals import unknown
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

PAGE = 500  # changes read at once, and those of the last one's revision
DELTAS = 1000  # and rows beside them

PIECES = ("token", "thinking")

sql = statements(__name__)


class Watch:
    """One who watches a conversation: an iterator over its events, from a cursor on."""

    def __init__(
        self,
        database: Database,
        conversation: UUID,
        since: Cursor | None,
        max_bytes: int,
        live: Callable[[], Pieces | None],
    ) -> None:
        self._database = database
        self._live = live  # what a run in this process is saying
        self.conversation = conversation
        self._parked: list[Callable[[], None]] | None = [] if since is None else None  # what is told before it begins
        since = since or Cursor()
        self._seen = since  # by whoever iterates
        self._told = since  # with what waits for them
        self._waiting: deque[tuple[Event, int]] = deque()  # with their sizes
        self._bytes = 0
        self._max_bytes = max_bytes
        self._behind = self._parked is None  # there may be rows that were not told
        self._reading = False
        self._woken = asyncio.Event()
        self._closed = False
        self._unfinished = 0  # runs, as far as is known

    @property
    def cursor(self) -> Cursor:
        """What was seen so far."""
        return self._seen

    @property
    def expects(self) -> bool:
        """Whether a run is under way, as far as is known."""
        return self._unfinished > 0

    @property
    def is_behind(self) -> bool:
        """Whether it reads the rows by itself when it comes to it, or has not begun."""
        return self._behind or self._parked is not None

    @property
    def told(self) -> Cursor:
        """What was seen, and what waits to be."""
        return self._told

    @property
    def has_more(self) -> bool:
        """Whether an event is there already."""
        return bool(self._waiting)

    @property
    def has_begun(self) -> bool:
        """Whether it is known from where on it watches."""
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
        """The next event, if there is one already."""
        while not self._waiting and self._behind and not self._closed:
            await self._catch_up()
        if not self._waiting:
            return None
        event, size = self._waiting.popleft()
        self._bytes -= size
        self._seen = _parsed(event)
        return event

    def begin(self, since: Cursor) -> None:
        """Say where one begins that was made without a cursor: what was told since is not lost, and no row is read."""
        parked, self._parked = self._parked or [], None
        self._seen = self._told = since
        self._unfinished = 1
        for tell in parked:
            tell()

    def close(self) -> None:
        """Have the iterator end when it has given what waits."""
        self._closed = True
        self._woken.set()

    def node(self, node: Node) -> None:
        """Take a node that was appended; one that does not follow the last change shows that there are others."""
        if self._parked is not None:
            self._parked.append(lambda: self.node(node))
            return
        if node.revision <= self._told.revision or not self._keeps_up():
            return
        if node.revision != self._told.revision + 1:
            self._fall_behind()
            return
        told = events_of([node], self._told.n)[self._told.part :]
        self._told = Cursor(node.revision, self._told.n)
        self._add(told)

    def pass_by(self, revision: int) -> None:
        """Take a change that no node shows."""
        if self._parked is not None:
            self._parked.append(lambda: self.pass_by(revision))
            return
        if revision <= self._told.revision or not self._keeps_up():
            return
        if revision == self._told.revision + 1:
            self._told = Cursor(revision, self._told.n)
        else:
            self._fall_behind()

    def beside(self, event: Event, n: int, after: int) -> None:
        """Take what is told beside nodes, after what has the number `after`."""
        if self._parked is not None:
            self._parked.append(lambda: self.beside(event, n, after))
            return
        if n <= self._told.n or (self._reading and event.kind in PIECES):  # whoever reads finds those where they are
            return
        if not self._keeps_up():
            return
        if _parsed(event).revision > self._told.revision or not _follows(self._told.n, after):
            self._fall_behind()
            return
        self._told = self._told._replace(n=n)
        self._add([_at(event, self._told)])

    def look(self) -> None:
        """Have the rows read."""
        if self._parked is not None:
            self._parked.append(self.look)
            return
        self._fall_behind()

    def _keeps_up(self) -> bool:
        """Whether what comes now is told now; else it is read from the rows when what waits was seen."""
        if self._reading or self._bytes > self._max_bytes:
            self._behind = True
        return not self._behind

    def _add(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind == "message":
                self._unfinished += 1
            elif event.kind in ("done", "error"):
                self._unfinished = max(0, self._unfinished - 1)
            elif event.run_id is not None:
                self._unfinished = max(1, self._unfinished)
            size = event.size
            self._waiting.append((event, size))
            self._bytes += size
        self._woken.set()

    def _fall_behind(self) -> None:
        self._behind = True
        self._woken.set()

    # The rows

    async def _catch_up(self) -> None:
        """Read what was not told, a page of it."""
        told = self._told
        self._reading = True  # what comes meanwhile is read, now or the next time
        try:
            self._behind = False
            rows = await self._database.all(sql("changes"), self.conversation, told.revision, PAGE)
            if not rows:
                raise unknown(self.conversation)
            deltas = await self._database.all(sql("deltas"), [self.conversation], [told.n])
        except BaseException:
            self._behind = True
            raise
        finally:
            self._reading = False
        self._behind = not self._take(rows, deltas) or self._behind
        self._unfinished = rows[0]["unfinished"]

    def _take(self, rows: Sequence[Row], deltas: Sequence[Row]) -> bool:
        """Tell what was read, as much as may wait; whether that was all there is."""
        nodes = [node_of(row) for row in rows if row["id"] is not None]
        beside = deque(deltas)
        ahead = {str(node.id) for node in nodes if node.version == 1}
        for revision, group in groupby(nodes, lambda node: node.revision):
            changed = list(group)
            while beside and _precedes(beside[0], changed[0], ahead):
                if not self._tell(beside.popleft()):
                    return False
            if self._bytes > self._max_bytes:
                return False
            told = self._told
            self._told = Cursor(revision, told.n)
            self._add(events_of(changed, told.n)[told.part if revision == told.revision + 1 else 0 :])
            ahead.difference_update(str(node.id) for node in changed)
        if len(nodes) >= PAGE:
            return False
        self._told = Cursor(max(rows[0]["current"], self._told.revision), self._told.n)
        if beside and beside[0]["revision"] > self._told.revision:  # there are newer nodes, which come before them
            return False
        # Where a node came meanwhile, it comes before what is said now.
        pieces = () if self._behind or len(deltas) == DELTAS else self._pieces_after(beside)
        for row in (*beside, *(pieces or ())):
            if not self._tell(row):
                return False
        return len(deltas) < DELTAS and (pieces is not None or not (nodes or deltas))

    def _tell(self, row: Row | Mapping[str, Any]) -> bool:
        """Tell what lies beside nodes, unless too much waits already."""
        if self._bytes > self._max_bytes:
            return False
        event = beside_of(row, self._told)
        if event is not None:
            self._told = self._told._replace(n=row["n"])
            self._add([event])
        return True

    def _pieces_after(self, beside: Iterable[Row]) -> Sequence[Mapping[str, Any]] | None:
        """What is said in this process after these rows; None where there are more of them by now."""
        live = self._live()
        if live is None:
            return ()
        return live.unsaved if live.saved <= max([self._told.n, *(row["n"] for row in beside)]) else None


def beside_of(row: Row | Mapping[str, Any], told: Cursor) -> Event | None:
    """The event of a row beside nodes, without the text that was told already; None where all was."""
    n, kind, data = row["n"], cast(Kind, row["kind"]), row["data"]
    if n <= told.n:
        return None
    if kind in PIECES and not data.get("reset"):
        begins = n - len(data["text"])
        if begins < told.n and n // PER_RUN == told.n // PER_RUN:
            data = {**data, "text": data["text"][told.n - begins :]}
    event = delta_event(told.revision, n, row["run_id"], kind, data, row["at"])
    return _at(event, told._replace(n=n))


def _precedes(row: Row, node: Node, ahead: set[str]) -> bool:
    """Whether a row beside nodes comes before a node.

    Pieces of text never do: the rows have those of what is said now. Nor does the end of a run whose answer is ahead,
    whatever the clock says.
    """
    return row["kind"] not in PIECES and row["at"] < node.updated_at and row["data"].get("answer") not in ahead


def _follows(told: int, after: int) -> bool:
    """Whether nothing was told between these numbers: the first claim of a run follows the run before."""
    run = after - after % PER_RUN
    return told == after or (after == run + PER_CLAIM and (told in (run - 1, run) or (told, run) == (0, PER_RUN)))


def _at(event: Event, cursor: Cursor) -> Event:
    return msgspec.structs.replace(event, cursor=str(cursor))


def _parsed(event: Event) -> Cursor:
    return Cursor(*map(int, event.cursor.split(".")))
