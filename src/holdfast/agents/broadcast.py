"""Delivers the changes of conversations to all watchers and views in this process.

Changes by this process are delivered at once. Changes by other processes arrive through the log, with one reader per
agent's topic for all watchers and views. Text that other processes stream is polled from the rows. A watcher that reads
slowly or reconnects reads the rows from its cursor on: it misses nothing, gets nothing twice, and delays nobody.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from holdfast.agents.conversation_views import Change, ConversationViews, change_of
from holdfast.agents.events import Cursor, Event, Pieces
from holdfast.agents.watch import Watch
from holdfast.bus.log import Log
from holdfast.bus.records import Record
from holdfast.conversations.nodes import Node, node_of
from holdfast.core.background import Background
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

POLL = 0.15  # seconds between two polls for text that other processes stream
REST = 1.0  # seconds between two polls when nothing came for a while
BATCH = 500  # records read at once
SOON = 0.02  # seconds until the readers in other processes are woken: several changes of a turn cause one wake-up
LINGER = 60.0  # seconds that a topic is still read after its last watcher has left
RETRIED = "retry"  # the action of a record that announces a retry: no node shows it

log = logging.getLogger(__name__)
sql = statements(__name__)


class Watchers:
    """All watchers and views of one tenant's conversations in this process, and what supplies them."""

    def __init__(self) -> None:
        self.watches: defaultdict[UUID, set[Watch]] = defaultdict(set)
        self.topics: defaultdict[str, set[Watch]] = defaultdict(set)
        self.served: Counter[str] = Counter()  # topics of agents that this process serves
        self.readers: dict[str, asyncio.Task[None]] = {}
        self.views: list[ConversationViews] = []
        self.here: defaultdict[UUID, list[Callable[[], Pieces]]] = defaultdict(list)  # text that runs here stream


class Broadcast:
    """Delivers changes to watchers and views, whichever engine of the tenant they use.

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
        self._due: defaultdict[str, set[str]] = defaultdict(set)  # by topic: keys of records that are not announced

    @property
    def views(self) -> list[ConversationViews]:
        """The views that are kept up to date."""
        return self._audience.views

    @property
    def is_busy(self) -> bool:
        """Whether there are watchers or views."""
        return bool(self._audience.watches or self._audience.views)

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
                self._audience.views += own.views
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

    @asynccontextmanager
    async def reading(self, topic: str) -> AsyncGenerator[None]:
        """Read the topic of an agent that this process serves, watched or not, to keep its views up to date."""
        await self.join()
        self._audience.served[topic] += 1
        try:
            await self._read(topic)
            yield
        finally:
            self._audience.served[topic] -= 1
            self._audience.served += Counter()  # drops the zeros
            reader = self._end_reading(topic)
            if reader is not None:
                await asyncio.wait([reader])

    def deliver_node(self, node: Node) -> None:
        """Deliver a node that this process has appended."""
        for views in self._audience.views:
            views.add(node)
        for watch in self._watches(node.root):
            watch.deliver_node(node)

    def deliver_delta(self, conversation: UUID, event: Event, n: int, after: int) -> None:
        """Deliver a delta of a run in this process. `after` is the number of the previous delta."""
        for watch in self._watches(conversation):
            watch.deliver_delta(event, n, after)

    def look(self, conversation: UUID) -> None:
        """Make the watchers of a conversation read its rows."""
        for watch in self._watches(conversation):
            watch.look()

    def wake_readers(self, topic: str, conversation: UUID) -> None:
        """Wake the readers of a topic in other processes soon, for a change that this process has delivered here."""
        if not self._due:
            asyncio.get_running_loop().call_later(SOON, self._announce)
        self._due[topic].add(str(conversation))

    def _announce(self) -> None:
        task = asyncio.ensure_future(self._announce_all())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # errors of a hint do not matter

    async def _announce_all(self) -> None:
        due, self._due = self._due, defaultdict(set)
        for topic, keys in due.items():
            await self._log.announce(topic, keys=keys, known_locally=True)

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
            running.add_done_callback(_log_failure)
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait([waiting, running], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()

    def _end_reading(self, topic: str) -> "asyncio.Task[None] | None":
        """End the reader of a topic that nobody needs any more. Return it."""
        if self._audience.topics.get(topic) or topic in self._audience.served:
            return None
        self._audience.topics.pop(topic, None)
        reader = self._audience.readers.pop(topic, None)
        if reader is not None:
            reader.cancel()
        return reader

    async def _follow(self, topic: str, ready: asyncio.Event) -> None:
        while True:
            try:
                async with self._log.subscribe([topic], known_locally=True) as records:
                    ready.set()
                    for watch in tuple(self._audience.topics.get(topic, ())):  # for changes before the subscription
                        if watch.has_begun:  # a watch that has not begun has missed nothing
                            watch.look()
                    while True:
                        await self._deliver(await records.batch(BATCH))
            except InvalidInput:
                raise
            except Exception as error:  # noqa: BLE001 - one bad record must not stop the reader of all watchers
                log.warning("could not read the topic %s; retrying: %r", topic, error)
                await asyncio.sleep(REST)

    async def _deliver(self, records: Sequence[Record]) -> None:
        """Deliver the changes of these records to watchers and views. One statement reads all their nodes."""
        changes = [change for record in filter(self._concerns, records) if (change := change_of(record)) is not None]
        watched = [change for change in changes if self._is_news(change)]
        viewed = [(views, views.news(changes)) for views in self._audience.views]
        ids = {change.node for part in (watched, *(news for _, news in viewed)) for change in part}
        if not ids:
            return
        nodes = {row["id"]: node_of(row) for row in await self._database.all(sql("nodes"), list(ids))}
        for change in watched:
            for watch in self._watches(change.conversation):
                try:
                    _deliver_change(watch, nodes.get(change.node), change)
                except Exception:
                    log.exception("could not deliver a change of the conversation %s", watch.conversation)
                    watch.look()
        for views, news in viewed:
            await views.apply(news, nodes)

    def _concerns(self, record: Record) -> bool:
        """Return whether a record is of a conversation that has a watcher or a view."""
        try:
            conversation = UUID(record.key or "")
        except ValueError:
            return False
        return conversation in self._audience.watches or any(conversation in each for each in self._audience.views)

    def _is_news(self, change: Change) -> bool:
        """Return whether somebody watches the conversation and has not seen the change."""
        revision = change.revision
        if revision is None and change.action != RETRIED:
            return False
        return any(
            revision is None or watch.queue_cursor.revision < revision for watch in self._watches(change.conversation)
        )

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
        audience = self._audience
        while audience.watches or audience.readers.keys() - audience.served.keys():
            await asyncio.sleep(POLL if quiet < 50 else REST)
            last_deltas = self._last_deltas()
            if not last_deltas:
                continue
            try:
                rows = await self._database.all(sql("deltas"), list(last_deltas), list(last_deltas.values()))
            except HoldfastError as error:
                log.warning("could not read text that other processes stream; retrying: %s", error)
                await asyncio.sleep(REST)
                continue
            quiet = 0 if rows else quiet + 1
            for row in rows:
                for watch in self._watches(row["root"]):
                    watch.deliver_polled(row)

    def _last_deltas(self) -> dict[UUID, int]:
        """Return the conversations in which other processes may stream, with the last delta that all watchers have.

        Watchers that are behind are left out: they read the rows themselves, from their cursors on.
        """
        found: dict[UUID, int] = {}
        for conversation, watches in self._audience.watches.items():
            current = [watch for watch in watches if not watch.is_behind]
            if conversation not in self._audience.here and any(watch.expects for watch in current):
                found[conversation] = min(watch.queue_cursor.n for watch in current)
        return found


def _deliver_change(watch: Watch, node: Node | None, change: Change) -> None:
    """Deliver a change to a watcher.

    An appended node and a change of state are delivered at once. For any other change, the watcher reads the rows.
    """
    revision = change.revision
    if revision is None:
        watch.look()
    elif change.action == "state":
        watch.pass_by(revision)
    elif (
        node is not None
        and node.root == watch.conversation
        and (node.revision, node.version) == (revision, 1)
        and node.seq
    ):
        watch.deliver_node(node)
    elif revision > watch.queue_cursor.revision:
        watch.look()


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("a topic reader failed: %s", task.exception())
