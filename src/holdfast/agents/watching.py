"""Watching: what happens in conversations, for everyone in this process who wants to know.

What this process does itself is handed over at once. What others do comes by the log: one reader for each agent's
topic, however many watch, and, of what others stream, by the rows of it. Whoever reads slowly, or comes back, is
served from the rows, from where they were: nothing is lost, nothing told twice, and nobody waits for them.
"""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Self, cast
from uuid import UUID

import msgspec

from holdfast.agents.events import PER_CLAIM, PER_RUN, Cursor, Event, Kind, Pieces, delta_event, events_of
from holdfast.bus.background import Background
from holdfast.bus.log import Log
from holdfast.bus.messages import message_of, sequence_of
from holdfast.bus.records import Record
from holdfast.conversations.nodes import Node, node_of
from holdfast.conversations.refusals import unknown
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

PAGE = 500  # changes read at once
DELTAS = 1000  # and rows beside them
POLL = 0.15  # seconds between two looks at what others stream
REST = 1.0  # and when nothing came for a while
BATCH = 500  # records taken at once
LINGER = 60.0  # seconds that a topic is read on after the last one has stopped watching

PIECES = ("token", "thinking")

log = logging.getLogger(__name__)
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
        self._waiting: deque[Event] = deque()
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
    def told(self) -> Cursor:
        """What was seen, and what waits to be."""
        return self._told

    @property
    def has_more(self) -> bool:
        """Whether an event is there already."""
        return bool(self._waiting)

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
        event = self._waiting.popleft()
        self._bytes -= event.size
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
        """Take a change of a node; one that does not follow the last shows that there are others."""
        if self._parked is not None:
            self._parked.append(lambda: self.node(node))
            return
        if node.revision <= self._told.revision or not self._keeps_up():
            return
        if node.revision != self._told.revision + 1:
            self._fall_behind()
            return
        told = events_of(node, self._told.n)[self._told.part :]
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
        self._told = Cursor(self._told.revision, n, self._told.part)
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
            self._waiting.append(event)
            self._bytes += event.size
        self._woken.set()

    def _fall_behind(self) -> None:
        self._behind = True
        self._woken.set()

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
        for node in nodes:
            if self._bytes > self._max_bytes:
                return False
            told = self._told
            events = events_of(node, told.n)
            self._told = Cursor(node.revision, told.n)
            self._add(events[told.part if node.revision == told.revision + 1 else 0 :])
        if len(nodes) == PAGE:
            return False
        self._told = Cursor(max(rows[0]["current"], self._told.revision), self._told.n)
        if deltas and deltas[0]["revision"] > self._told.revision:  # there are newer nodes, which come before them
            return False
        # Where a node came meanwhile, it comes before what is said now.
        pieces = () if self._behind or len(deltas) == DELTAS else self._pieces_after(deltas)
        for event, n in _deltas([*deltas, *(pieces or ())], self._told):
            if self._bytes > self._max_bytes:
                return False
            self._told = Cursor(self._told.revision, n)
            self._add([event])
        return len(deltas) < DELTAS and (pieces is not None or not (nodes or deltas))

    def _pieces_after(self, deltas: Sequence[Row]) -> Sequence[Mapping[str, Any]] | None:
        """What is said in this process after these rows; None where there are more of them by now."""
        live = self._live()
        if live is None:
            return ()
        return live.unsaved if live.saved <= max([self._told.n, *(row["n"] for row in deltas)]) else None


class Watching:
    """Everyone in this process who watches conversations of one tenant."""

    def __init__(self, database: Database, log: Log, background: Background, *, max_bytes: int) -> None:
        self._database = database
        self._log = log
        self._background = background
        self._max_bytes = max_bytes
        self._watches: defaultdict[UUID, set[Watch]] = defaultdict(set)
        self._topics: defaultdict[str, int] = defaultdict(int)  # how many watch each
        self._readers: dict[str, asyncio.Task[None]] = {}
        self.listeners: list[Callable[[Node], None]] = []  # who else wants to know what this process writes
        self._here: defaultdict[UUID, list[Callable[[], Pieces]]] = defaultdict(list)  # what runs here are saying

    @asynccontextmanager
    async def watch(self, conversation: UUID, *, topic: str | None, since: Cursor | None) -> AsyncGenerator[Watch]:
        """The events of a conversation, from a cursor on, or from where `begin` says."""
        watch = Watch(self._database, conversation, since, self._max_bytes, lambda: self._pieces(conversation))
        self._watches[conversation].add(watch)
        if topic is not None:
            self._topics[topic] += 1
        try:
            if topic is not None:
                await self._read(topic)
            self._background.start(("watching", id(self)), self._keep_on)
            yield watch
        finally:
            watch.close()
            self._watches[conversation].discard(watch)
            if not self._watches[conversation]:
                del self._watches[conversation]
            if topic is not None:
                self._topics[topic] -= 1
                if not self._topics[topic]:
                    asyncio.get_running_loop().call_later(LINGER, self._end_reading, topic)

    @property
    def count(self) -> int:
        """How many watch."""
        return sum(map(len, self._watches.values()))

    def node(self, node: Node) -> None:
        """Tell of a node that this process has written."""
        for listener in self.listeners:
            listener(node)
        for watch in self._watches.get(node.root, ()):
            watch.node(node)

    def beside(self, conversation: UUID, event: Event, n: int, after: int) -> None:
        """Tell what a run in this process streams, after what has the number `after`."""
        for watch in self._watches.get(conversation, ()):
            watch.beside(event, n, after)

    def look(self, conversation: UUID) -> None:
        """Have those who watch a conversation read its rows."""
        for watch in self._watches.get(conversation, ()):
            watch.look()

    @asynccontextmanager
    async def running_here(self, conversation: UUID, pieces: Callable[[], Pieces]) -> AsyncGenerator[None]:
        """Nobody has to look for what a run streams: this process tells it."""
        self._here[conversation].append(pieces)
        try:
            yield
        finally:
            self._here[conversation].remove(pieces)
            if not self._here[conversation]:
                del self._here[conversation]

    def _pieces(self, conversation: UUID) -> Pieces | None:
        running = self._here.get(conversation)
        return running[-1]() if running else None

    def _end_reading(self, topic: str) -> None:
        if not self._topics.get(topic):
            self._topics.pop(topic, None)
            reader = self._readers.pop(topic, None)
            if reader is not None:
                reader.cancel()

    async def close(self) -> None:
        """End all watching."""
        for watches in self._watches.values():
            for watch in watches:
                watch.close()
        readers = list(self._readers.values())
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    # The log

    async def _read(self, topic: str) -> None:
        """Have one reader of a topic, and wait until it reads."""
        running = self._readers.get(topic)
        if running is None or running.done():
            ready = asyncio.Event()
            running = self._readers[topic] = asyncio.create_task(self._follow(topic, ready), name=f"watching {topic}")
            running.add_done_callback(_retrieved)
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait([waiting, running], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()

    async def _follow(self, topic: str, ready: asyncio.Event) -> None:
        while True:
            try:
                async with self._log.subscribe([topic]) as records:
                    ready.set()
                    for watches in list(self._watches.values()):  # what came before the subscription
                        for watch in watches:
                            watch.look()
                    while True:
                        await self._tell(await records.batch(BATCH))
            except InvalidInput:
                raise
            except HoldfastError as error:
                log.warning("the topic %s cannot be read, trying again: %s", topic, error)
                await asyncio.sleep(REST)

    async def _tell(self, records: Sequence[Record]) -> None:
        wanted: list[tuple[UUID, UUID, int, str]] = []
        for record in records:
            if record.key is None or not self._wants(record):
                continue
            with suppress(InvalidInput):  # anybody may publish there
                message = message_of(record)
                wanted.append((message.conversation_id, message.node_id, sequence_of(record) or 0, message.action))
        if not wanted:
            return
        rows = await self._database.all(sql("nodes"), list({node for _, node, _, _ in wanted}))
        nodes = {row["id"]: node_of(row) for row in rows}
        for conversation, id, revision, action in wanted:
            node = nodes.get(id)
            for watch in self._watches.get(conversation, ()):
                if action == "state":
                    watch.pass_by(revision)
                elif node is not None and node.root == conversation and node.revision == revision and node.seq:
                    watch.node(node)
                elif revision > watch.told.revision:
                    watch.look()

    def _wants(self, record: Record) -> bool:
        """Whether somebody watches the conversation and has not seen the change."""
        try:
            watches = self._watches.get(UUID(cast(str, record.key)), ())
        except ValueError:
            return False
        revision = sequence_of(record)
        return revision is not None and any(watch.told.revision < revision for watch in watches)

    async def _keep_on(self) -> None:
        """Look and read until the engine closes."""
        try:
            await self._poll()
        finally:
            await self.close()

    async def _poll(self) -> None:
        """Look at what runs of other processes stream, where somebody watches."""
        quiet = 0
        while True:
            await asyncio.sleep(POLL if quiet < 50 else REST)
            expecting = {
                id: min(watch.told.n for watch in watches)
                for id, watches in self._watches.items()
                if id not in self._here and any(watch.expects for watch in watches)
            }
            if not expecting:
                continue
            try:
                rows = await self._database.all(sql("deltas"), list(expecting), list(expecting.values()))
            except HoldfastError as error:
                log.warning("what others stream cannot be read, trying again: %s", error)
                await asyncio.sleep(REST)
                continue
            quiet = 0 if rows else quiet + 1
            for row in rows:
                for watch in self._watches.get(row["root"], ()):
                    if watch.told.revision < row["revision"]:  # nodes come before what is told after them
                        watch.look()
                    for event, n in _deltas([row], watch.told):
                        watch.beside(event, n, watch.told.n)


def _follows(told: int, after: int) -> bool:
    """Whether nothing was told between these numbers: the first claim of a run follows the run before."""
    run = after - after % PER_RUN
    return told == after or (after == run + PER_CLAIM and (told in (run - 1, run) or (told, run) == (0, PER_RUN)))


def _deltas(rows: Iterable[Row | Mapping[str, Any]], told: Cursor) -> Iterable[tuple[Event, int]]:
    """Events of rows beside nodes, without the text that was told already."""
    last = told.n
    for row in rows:
        n, kind, data = row["n"], cast(Kind, row["kind"]), row["data"]
        if n <= last:
            continue
        if kind in PIECES and not data.get("reset"):
            begins = n - len(data["text"])
            if begins < last and n // PER_RUN == last // PER_RUN:
                data = {**data, "text": data["text"][last - begins :]}
        last = n
        yield delta_event(told.revision, n, row["run_id"], kind, data, row["at"]), n


def _at(event: Event, cursor: Cursor) -> Event:
    return msgspec.structs.replace(event, cursor=str(cursor))


def _parsed(event: Event) -> Cursor:
    return Cursor(*map(int, event.cursor.split(".")))


def _retrieved(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("watching ended: %s", task.exception())
