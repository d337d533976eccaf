"""Views: cached conversations of an agent, updated from the log record by record.

A view holds the newest nodes of a conversation, bounded in number and size. Each record of the topic has the revision
of its conversation. A record that is not newer than the view is a duplicate. One that is not the next shows a gap, and
the view is read again. Two views of the same revision are equal, however they were built.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from holdfast.bus.messages import message_of, sequence_of
from holdfast.bus.records import Record
from holdfast.conversations.nodes import Node, node_of
from holdfast.core.errors import InvalidInput, NotFound
from holdfast.core.text import restore
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

NODES = 400  # nodes of a view, at most
BYTES = 4_000_000  # of their contents and payloads, approximately
VIEWS = 1000
ALL_BYTES = 100_000_000  # of all views

ADDING = frozenset({"create", "append", "tool_invoke", "tool_result", "system_message"})

sql = statements(__name__)


class Change(NamedTuple):
    """A change of a conversation. `revision`: the revision that it made, or None if it changed no row."""

    conversation: UUID
    node: UUID
    revision: int | None
    action: str


class ConversationView:
    """The newest nodes of one conversation, oldest first, without deleted ones."""

    def __init__(
        self,
        id: UUID,
        revision: int,
        seq: int,
        nodes: Iterable[Node],
        *,
        session_id: str | None,
        user: str | None,
        whole: bool,
    ) -> None:
        self.id = id
        self.revision: int = revision
        self.seq: int = seq  # of the last node that it has seen
        self.session_id = session_id
        self.user = user
        self._nodes = deque(nodes)
        self.bytes: int = sum(map(_size, self._nodes))
        self._whole = whole  # there is no node before the first one
        self._trim()

    @property
    def is_whole(self) -> bool:
        """Whether there is no node before the first one of the view."""
        return self._whole

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes, oldest first."""
        return tuple(self._nodes)

    def add(self, node: Node) -> bool:
        """Append a node if it is the next change. Return whether the view is up to date with it."""
        if node.revision <= self.revision:
            return True
        if node.revision != self.revision + 1:
            return False
        self.revision = node.revision
        self.seq = max(self.seq, node.seq)
        if not node.deleted:
            self._nodes.append(node)
            self.bytes += _size(node)
            self._trim()
        return True

    def pass_by(self, revision: int) -> bool:
        """Apply a change that no node shows, if it is the next. Return whether the view is up to date with it."""
        if revision == self.revision + 1:
            self.revision = revision
        return revision <= self.revision

    def replace(self, node: Node, revision: int) -> bool:
        """Replace the content of a node if that is the next change. Return False if the view has to be read again."""
        if revision <= self.revision:
            return True
        if revision != self.revision + 1 or not self._whole or node.deleted:
            return False  # a node of another size may make room for older ones
        for place, known in enumerate(self._nodes):
            if known.id == node.id:
                if known.form is not None:
                    return False  # the framework's data of the node changed too
                self._nodes[place] = node
                self.bytes += _size(node) - _size(known)
        self.revision = revision
        self._trim()
        return True

    def _trim(self) -> None:
        while len(self._nodes) > NODES or (self.bytes > BYTES and len(self._nodes) > 1):
            self.bytes -= _size(self._nodes.popleft())
            self._whole = False


@dataclass(slots=True, eq=False)
class ViewReading:
    """A view that is being read, and the nodes that this process appended meanwhile."""

    conversation: UUID
    news: list[Node] = field(default_factory=list[Node])
    is_stale: bool = False


class ConversationViews:
    """The views that were used last."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._views: OrderedDict[UUID, ConversationView] = OrderedDict()
        self._readings: set[ViewReading] = set()

    def __contains__(self, conversation: UUID) -> bool:
        return conversation in self._views

    async def current(self, conversation: UUID, *, seq: int = 0, revision: int = 0) -> ConversationView:
        """Return a view of this revision or a later one, with the node of this seq and all nodes appended here."""
        view = self._views.get(conversation)
        if view is None or view.seq < seq or view.revision < revision:
            view = await self._read(conversation)
        self._views.move_to_end(conversation)
        return view

    async def follow(self, records: Sequence[Record]) -> None:
        """Update the views with these records. One statement reads all nodes that they need."""
        news = self.news([change for record in records if (change := change_of(record)) is not None])
        if news:
            ids = list({change.node for change in news})
            await self.apply(news, {row["id"]: node_of(row) for row in await self._database.all(sql("nodes"), ids)})

    def news(self, changes: Iterable[Change]) -> list[Change]:
        """Return the changes of conversations that have a view which does not show them."""
        return [
            change
            for change in changes
            if change.revision is not None
            and (view := self._views.get(change.conversation)) is not None
            and change.revision > view.revision
        ]

    async def apply(self, changes: Iterable[Change], nodes: Mapping[UUID, Node]) -> None:
        """Update the views with these changes, given the current nodes of the changes."""
        read: set[UUID] = set()  # views that were just read: they include these changes
        for change in changes:
            view = self._views.get(change.conversation)
            if view is None or change.conversation in read:
                continue
            if not _apply(view, change, nodes.get(change.node)):
                read.add(change.conversation)
                await self._reread(change.conversation)
        self._make_room()

    def add(self, node: Node) -> None:
        """Add a node that this process appended, before its record arrives."""
        for reading in self._readings:
            if reading.conversation == node.root:
                reading.news.append(node)
        view = self._views.get(node.root)
        if view is not None and not view.add(node):
            del self._views[node.root]  # a change is missing: the view is read when it is needed
        self._make_room()

    def forget(self, conversation: UUID) -> None:
        """Drop a view. The next caller reads it again."""
        self._views.pop(conversation, None)
        for reading in self._readings:
            reading.is_stale = reading.is_stale or reading.conversation == conversation

    async def _reread(self, conversation: UUID) -> None:
        with suppress(NotFound):
            await self._read(conversation)

    async def _read(self, conversation: UUID) -> ConversationView:
        view = None
        while view is None:
            view = await self._read_once(conversation)
        known = self._views.get(conversation)
        if known is not None and known.revision > view.revision and known.seq >= view.seq:
            view = known  # another task read a newer one meanwhile
        self._views[conversation] = view
        self._views.move_to_end(conversation)
        self._make_room()
        return view

    async def _read_once(self, conversation: UUID) -> ConversationView | None:
        """Read a view, with the nodes appended here meanwhile. Return None if there were other changes."""
        reading = ViewReading(conversation)
        self._readings.add(reading)
        try:
            rows = await self._database.all(sql("view"), conversation, NODES + 1)
        finally:
            self._readings.discard(reading)
        if not rows:
            self._views.pop(conversation, None)
            raise NotFound(f"there is no conversation {conversation}")
        nodes = [node_of(row) for row in rows if row["id"] is not None]
        view = ConversationView(
            conversation,
            rows[0]["current"],
            rows[0]["last_seq"],
            nodes,
            session_id=_name(rows[0]["session_id"]),
            user=_name(rows[0]["user_name"]),
            whole=len(nodes) <= NODES,
        )
        return view if not reading.is_stale and all(map(view.add, reading.news)) else None

    def _make_room(self) -> None:
        """Drop the least recently used views until the others are within the limits."""
        size = sum(view.bytes for view in self._views.values())
        while len(self._views) > VIEWS or (size > ALL_BYTES and len(self._views) > 1):
            _, dropped = self._views.popitem(last=False)
            size -= dropped.bytes


def change_of(record: Record) -> Change | None:
    """Return the change that a record announces. None: it cannot be read, because anybody can publish to the topic."""
    try:
        message = message_of(record)
    except InvalidInput:
        return None
    return Change(message.conversation_id, message.node_id, sequence_of(record), message.action)


def _apply(view: ConversationView, change: Change, node: Node | None) -> bool:
    revision, action = change.revision, change.action
    if revision is None or revision <= view.revision:
        return True
    if node is not None and node.root != view.id:  # anybody can publish to the topic
        return False
    if action in ADDING:
        # A node that has changed since has a newer revision. The record of that change comes later.
        if node is None or node.revision != revision:
            return False
        return view.add(node)
    if action == "edit":
        return node is not None and node.revision == revision and view.replace(node, revision)
    if action == "state":
        return view.pass_by(revision)
    return False


def _name(stored: str | None) -> str | None:
    return None if stored is None else restore(stored)


def _size(node: Node) -> int:
    return len(node.content) + (len(str(node.payload)) if node.payload else 0) + 200
