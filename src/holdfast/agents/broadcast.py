"""Delivers the events of conversations to all watchers in this process.

Events of this process are delivered at once. Changes by other processes arrive through the log, with one reader per
agent's topic for all watchers. Text that other processes stream is polled from the rows. A watcher that reads slowly or
reconnects reads the rows from its cursor on: it misses nothing, gets nothing twice, and delays nobody.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from holdfast.agents.events import Cursor, Event, Pieces
from holdfast.agents.watch import Watch
from holdfast.bus.background import Background
from holdfast.bus.log import Log
from holdfast.bus.messages import message_of, sequence_of
from holdfast.bus.records import Record
from holdfast.conversations.nodes import Node, node_of
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

POLL = 0.15  # seconds between two polls for text that other processes stream
REST = 1.0  # seconds between two polls when nothing came for a while
BATCH = 500  # records read at once
LINGER = 60.0  # seconds that a topic is still read after its last watcher has left
RETRIED = "retry"  # the action of a record that announces a retry: no node shows it

log = logging.getLogger(__name__)
sql = statements(__name__)

Told = tuple[UUID, UUID, int | None, str]  # the change of a record: conversation, node, revision, action


class Watchers:
    """All watchers of one tenant's conversations in this process, and the readers and runs that supply them."""

    def __init__(self) -> None:
        self.watches: defaultdict[UUID, set[Watch]] = defaultdict(set)
        self.topics: defaultdict[str, set[Watch]] = defaultdict(set)
        self.readers: dict[str, asyncio.Task[None]] = {}
        self.listeners: list[Callable[[Node], None]] = []
        self.here: defaultdict[UUID, list[Callable[[], Pieces]]] = defaultdict(list)  # text that runs here stream


class Broadcast:
    """Delivers events to watchers, whichever engine of the tenant they use.

    `audiences` has the watchers of every tenant.
    """

    def __init__(
        self,
        database: Database,
        log: Log,
        background: Background,
        audiences: MutableMapping[TenantId, Watchers],
        *,
        max_bytes: int,
    ) -> None:
        self._database = database
        self._log = log
        self._background = background
        self._audiences = audiences
        self._max_bytes = max_bytes
        self._audience = Watchers()  # until the tenant's audience is known
        self._joined = False

    @property
    def listeners(self) -> list[Callable[[Node], None]]:
        """Callbacks for each node that this process appends."""
        return self._audience.listeners

    @property
    def is_busy(self) -> bool:
        """Whether there are watchers or listeners."""
        return bool(self._audience.watches or self._audience.listeners)

    @property
    def count(self) -> int:
        """The number of watchers."""
        return sum(map(len, self._audience.watches.values()))

    async def join(self) -> None:
        """Share the audience with other engines of the same tenant."""
        if self._joined:
            return
        tenant = await self._database.tenant()
        if not self._joined:
            own, self._audience = self._audience, self._audiences.setdefault(tenant, self._audience)
            if own is not self._audience:
                self._audience.listeners += own.listeners
            self._joined = True

    @asynccontextmanager
    async def watch(self, conversation: UUID, *, topic: str | None, since: Cursor | None) -> AsyncGenerator[Watch]:
        """Watch the events of a conversation from a cursor on, or from where `Watch.begin` says."""
        await self.join()
        watches, topics = self._audience.watches, self._audience.topics
        watch = Watch(self._database, conversation, since, self._max_bytes, lambda: self._pieces(conversation))
        watches[conversation].add(watch)
        if topic is not None:
            topics[topic].add(watch)
        try:
            if topic is not None:
                await self._read(topic)
            self._background.start(("watching", id(self._audience)), self._keep_on)
            yield watch
        finally:
            watch.close()
            watches[conversation].discard(watch)
            if not watches[conversation]:
                del watches[conversation]
            if topic is not None:
                topics[topic].discard(watch)
                if not topics[topic]:
                    asyncio.get_running_loop().call_later(LINGER, self._end_reading, topic)

    def node(self, node: Node) -> None:
        """Deliver a node that this process has appended."""
        for listener in self._audience.listeners:
            listener(node)
        for watch in self._watches(node.root):
            watch.node(node)

    def beside(self, conversation: UUID, event: Event, n: int, after: int) -> None:
        """Deliver a delta of a run in this process. `after` is the number of the previous delta."""
        for watch in self._watches(conversation):
            watch.beside(event, n, after)

    def look(self, conversation: UUID) -> None:
        """Make the watchers of a conversation read its rows."""
        for watch in self._watches(conversation):
            watch.look()

    @asynccontextmanager
    async def running_here(self, conversation: UUID, pieces: Callable[[], Pieces]) -> AsyncGenerator[None]:
        """Register a run of this process. Its streamed text is delivered directly and need not be polled."""
        await self.join()
        here = self._audience.here
        here[conversation].append(pieces)
        try:
            yield
        finally:
            here[conversation].remove(pieces)
            if not here[conversation]:
                del here[conversation]

    async def close(self) -> None:
        """End all watches and readers."""
        for watches in self._audience.watches.values():
            for watch in watches:
                watch.close()
        readers = list(self._audience.readers.values())
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    def _watches(self, conversation: UUID) -> Sequence[Watch]:
        return tuple(self._audience.watches.get(conversation, ()))

    def _pieces(self, conversation: UUID) -> Pieces | None:
        running = self._audience.here.get(conversation)
        return running[-1]() if running else None

    # The log

    async def _read(self, topic: str) -> None:
        """Start a reader of a topic if there is none, and wait until it reads."""
        readers = self._audience.readers
        running = readers.get(topic)
        if running is None or running.done():
            ready = asyncio.Event()
            running = readers[topic] = asyncio.create_task(self._follow(topic, ready), name=f"watching {topic}")
            running.add_done_callback(_retrieved)
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait([waiting, running], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()

    def _end_reading(self, topic: str) -> None:
        if not self._audience.topics.get(topic):
            self._audience.topics.pop(topic, None)
            reader = self._audience.readers.pop(topic, None)
            if reader is not None:
                reader.cancel()

    async def _follow(self, topic: str, ready: asyncio.Event) -> None:
        while True:
            try:
                async with self._log.subscribe([topic], told=True) as records:
                    ready.set()
                    for watch in tuple(self._audience.topics.get(topic, ())):  # for changes before the subscription
                        if watch.has_begun:  # a watch that has not begun has missed nothing
                            watch.look()
                    while True:
                        await self._tell(await records.batch(BATCH))
            except InvalidInput:
                raise
            except Exception as error:  # noqa: BLE001 - one bad record must not stop the reader of all watchers
                log.warning("the topic %s cannot be read, trying again: %r", topic, error)
                await asyncio.sleep(REST)

    async def _tell(self, records: Sequence[Record]) -> None:
        """Deliver the changes of these records to watchers. One statement reads all their nodes."""
        wanted = [told for record in records if (told := self._wanted(record)) is not None]
        if not wanted:
            return
        rows = await self._database.all(sql("nodes"), list({node for _, node, _, _ in wanted}))
        nodes = {row["id"]: node_of(row) for row in rows}
        for told in wanted:
            for watch in self._watches(told[0]):
                try:
                    _hand(watch, nodes.get(told[1]), told)
                except Exception:
                    log.exception("a change of the conversation %s could not be told", watch.conversation)
                    watch.look()

    def _wanted(self, record: Record) -> Told | None:
        """Return the change of a record, if somebody watches the conversation and has not seen it."""
        watches, revision = (), sequence_of(record)
        with suppress(ValueError):
            watches = self._watches(UUID(record.key)) if record.key else ()
        if not any(revision is None or watch.told.revision < revision for watch in watches):
            return None
        try:
            message = message_of(record)
        except InvalidInput:  # anybody can publish to the topic
            return None
        if revision is None and message.action != RETRIED:
            return None
        return message.conversation_id, message.node_id, revision, message.action

    # The rows

    async def _keep_on(self) -> None:
        """Poll while there are watchers or readers. When the engine closes, end all watches."""
        try:
            await self._poll()
        except asyncio.CancelledError:
            await self.close()
            raise

    async def _poll(self) -> None:
        """Poll the deltas of runs in other processes, where somebody watches."""
        quiet = 0
        while self._audience.watches or self._audience.readers:
            await asyncio.sleep(POLL if quiet < 50 else REST)
            expecting = self._expecting()
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
                for watch in self._watches(row["root"]):
                    watch.polled(row)

    def _expecting(self) -> dict[UUID, int]:
        """Return the conversations in which other processes may stream, with the last delta that all watchers have.

        Watchers that are behind are left out: they read the rows themselves, from their cursors on.
        """
        found: dict[UUID, int] = {}
        for conversation, watches in self._audience.watches.items():
            current = [watch for watch in watches if not watch.is_behind]
            if conversation not in self._audience.here and any(watch.expects for watch in current):
                found[conversation] = min(watch.told.n for watch in current)
        return found


def _hand(watch: Watch, node: Node | None, told: Told) -> None:
    """Deliver a change to a watcher.

    An appended node and a change of state are delivered at once. For any other change, the watcher reads the rows.
    """
    conversation, _, revision, action = told
    if revision is None:
        watch.look()
    elif action == "state":
        watch.pass_by(revision)
    elif node is not None and node.root == conversation and (node.revision, node.version) == (revision, 1) and node.seq:
        watch.node(node)
    elif revision > watch.told.revision:
        watch.look()


def _retrieved(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("watching ended: %s", task.exception())
