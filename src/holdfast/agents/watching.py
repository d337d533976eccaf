"""Watching: what happens in conversations, for everyone in this process who wants to know.

What this process does itself is handed over at once. What others do comes by the log: one reader for each agent's
topic, however many watch, and, of what others stream, by the rows of it. Whoever reads slowly, or comes back, is
served from the rows, from where they were: nothing is lost, nothing told twice, and nobody waits for them.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from holdfast.agents.events import Cursor, Event, Pieces
from holdfast.agents.watch import Watch, beside_of
from holdfast.bus.background import Background
from holdfast.bus.log import Log
from holdfast.bus.messages import message_of, sequence_of
from holdfast.bus.records import Record
from holdfast.conversations.nodes import Node, node_of
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

POLL = 0.15  # seconds between two looks at what others stream
REST = 1.0  # and when nothing came for a while
BATCH = 500  # records taken at once
LINGER = 60.0  # seconds that a topic is read on after the last one has stopped watching
RETRIED = "retry"  # what the topic is told of a run that is tried again: no node shows it

log = logging.getLogger(__name__)
sql = statements(__name__)

Told = tuple[UUID, UUID, int | None, str]  # what a record tells: the conversation, the node, the revision, the action


class Audience:
    """Everyone in this process who watches conversations of one tenant, and what tells them."""

    def __init__(self) -> None:
        self.watches: defaultdict[UUID, set[Watch]] = defaultdict(set)
        self.topics: defaultdict[str, set[Watch]] = defaultdict(set)
        self.readers: dict[str, asyncio.Task[None]] = {}
        self.listeners: list[Callable[[Node], None]] = []
        self.here: defaultdict[UUID, list[Callable[[], Pieces]]] = defaultdict(list)  # what runs here are saying


class Watching:
    """Has everyone told who watches, whichever engine of the tenant they came by; `audiences` are those of tenants."""

    def __init__(
        self,
        database: Database,
        log: Log,
        background: Background,
        audiences: MutableMapping[TenantId, Audience],
        *,
        max_bytes: int,
    ) -> None:
        self._database = database
        self._log = log
        self._background = background
        self._audiences = audiences
        self._max_bytes = max_bytes
        self._audience = Audience()  # until the tenant's is known
        self._joined = False

    @property
    def listeners(self) -> list[Callable[[Node], None]]:
        """Who else wants to know what this process writes."""
        return self._audience.listeners

    @property
    def is_busy(self) -> bool:
        """Whether somebody watches, or wants to know what this process writes."""
        return bool(self._audience.watches or self._audience.listeners)

    @property
    def count(self) -> int:
        """How many watch."""
        return sum(map(len, self._audience.watches.values()))

    async def join(self) -> None:
        """Tell, and hear of, those who came by another engine of the same tenant."""
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
        """The events of a conversation, from a cursor on, or from where `begin` says."""
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
        """Tell of a node that this process has appended."""
        for listener in self._audience.listeners:
            listener(node)
        for watch in self._watches(node.root):
            watch.node(node)

    def beside(self, conversation: UUID, event: Event, n: int, after: int) -> None:
        """Tell what a run in this process streams, after what has the number `after`."""
        for watch in self._watches(conversation):
            watch.beside(event, n, after)

    def look(self, conversation: UUID) -> None:
        """Have those who watch a conversation read its rows."""
        for watch in self._watches(conversation):
            watch.look()

    @asynccontextmanager
    async def running_here(self, conversation: UUID, pieces: Callable[[], Pieces]) -> AsyncGenerator[None]:
        """Nobody has to look for what a run streams: this process tells it."""
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
        """End all watching."""
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
        """Have one reader of a topic, and wait until it reads."""
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
                    for watch in tuple(self._audience.topics.get(topic, ())):  # what came before the subscription
                        if watch.has_begun:  # nothing came before for one that has not
                            watch.look()
                    while True:
                        await self._tell(await records.batch(BATCH))
            except InvalidInput:
                raise
            except Exception as error:  # noqa: BLE001 - many depend on it, whatever one record does to it
                log.warning("the topic %s cannot be read, trying again: %r", topic, error)
                await asyncio.sleep(REST)

    async def _tell(self, records: Sequence[Record]) -> None:
        """Tell those who watch what records tell, whose nodes are read in one statement."""
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
        """What a record tells, where somebody watches the conversation and has not seen the change."""
        watches, revision = (), sequence_of(record)
        with suppress(ValueError):
            watches = self._watches(UUID(record.key)) if record.key else ()
        if not any(revision is None or watch.told.revision < revision for watch in watches):
            return None
        try:
            message = message_of(record)
        except InvalidInput:  # anybody may publish there
            return None
        if revision is None and message.action != RETRIED:
            return None
        return message.conversation_id, message.node_id, revision, message.action

    # The rows

    async def _keep_on(self) -> None:
        """Look while somebody watches, or a topic is still read; when the engine closes, all watching ends."""
        try:
            await self._poll()
        except asyncio.CancelledError:
            await self.close()
            raise

    async def _poll(self) -> None:
        """Look at what runs of other processes stream, where somebody watches."""
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
                    if watch.told.revision < row["revision"]:  # nodes come before what is told after them
                        watch.look()
                    event = beside_of(row, watch.told)
                    if event is not None:
                        watch.beside(event, row["n"], watch.told.n)

    def _expecting(self) -> dict[UUID, int]:
        """The conversations in which others may be streaming, each with the number up to which all have heard it.

        Those who are behind are left out: they read by themselves, from where they are.
        """
        found: dict[UUID, int] = {}
        for conversation, watches in self._audience.watches.items():
            current = [watch for watch in watches if not watch.is_behind]
            if conversation not in self._audience.here and any(watch.expects for watch in current):
                found[conversation] = min(watch.told.n for watch in current)
        return found


def _hand(watch: Watch, node: Node | None, told: Told) -> None:
    """Tell one who watches of a change: at once where it is one node that was appended, else the rows say it all."""
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
