"""Conversations in plain Python: what the engine's must be like, whatever is done to them."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any
from uuid import UUID

from holdfast.conversations import DELETED

Changes = dict[str, Any]


@dataclass
class ModelNode:
    """A node as it should be; `former` are its versions so far."""

    id: UUID
    parent: UUID | None
    seq: int
    place: Fraction
    content: str
    revision: int
    payload: dict[str, Any] | None = None
    key: str | None = None
    state: Changes | None = None
    version: int = 1
    deleted: bool = False
    former: list[tuple[int, str, UUID | None, bool]] = field(default_factory=list[tuple[int, str, UUID | None, bool]])

    def keep(self) -> None:
        """Remember what it was, and become the next version."""
        self.former.append((self.version, self.content, self.parent, self.deleted))
        self.version += 1

    def versions(self) -> list[tuple[int, str, UUID | None, bool]]:
        """All it was and is."""
        return [*self.former, (self.version, self.content, self.parent, self.deleted)]


@dataclass
class Values:
    """State of one scope: values with versions, which outlive a deletion."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    versions: dict[str, int] = field(default_factory=dict[str, int])

    def apply(self, changes: Changes) -> None:
        """Change keys."""
        for key, value in changes.items():
            self.versions[key] = self.versions.get(key, 0) + 1
            self.values.pop(key, None)
            if value is not DELETED:
                self.values[key] = value

    def version(self, key: str) -> int:
        """The version that a writer may expect."""
        return self.versions[key] if key in self.values else 0


@dataclass
class ModelTalk:
    """A conversation as it should be; `changes` are those of its own state, each after the node of a number."""

    id: UUID
    users: Values  # shared with other conversations of the user
    nodes: list[ModelNode]
    revision: int = 0
    own: Values = field(default_factory=Values)
    changes: list[tuple[int, Changes]] = field(default_factory=list[tuple[int, Changes]])

    @classmethod
    def begun(cls, id: UUID, users: Values) -> "ModelTalk":
        """A conversation in which nothing was said."""
        return cls(id, users, [ModelNode(id, None, 0, Fraction(0), "", 0)])

    def node(self, id: UUID | None) -> ModelNode | None:
        """A node of this conversation."""
        return next((node for node in self.nodes if node.id == id), None)

    def with_key(self, key: str | None) -> ModelNode | None:
        """What an append with this key made before."""
        return next((node for node in self.nodes if key is not None and node.key == key), None)

    def append(
        self,
        id: UUID,
        content: str,
        *,
        parent: UUID | None,
        payload: Any = None,
        key: str | None,
        state: Changes | None,
    ) -> None:
        """Add a node at the end."""
        self.revision += 1
        node = ModelNode(
            id, parent or self.id, len(self.nodes), Fraction(self.revision), content, self.revision, payload, key, state
        )
        self.nodes.append(node)
        if state:
            self._change(state)

    def set_state(self, changes: Changes) -> None:
        """Change state without a node."""
        self.revision += 1
        self._change(changes)

    def _change(self, changes: Changes) -> None:
        users = {key: value for key, value in changes.items() if key.startswith("user:")}
        own = {key: value for key, value in changes.items() if key not in users}
        self.users.apply(users)
        self.own.apply(own)
        self.changes.append((self.nodes[-1].seq, own))

    def edit(self, node: ModelNode, content: str) -> None:
        """Give a node another content."""
        self.revision += 1
        node.keep()
        node.content, node.revision = content, self.revision

    def delete(self, node: ModelNode) -> None:
        """Empty a node and all below it."""
        self.revision += 1
        for each in self.below(node):
            each.keep()
            each.content, each.payload, each.deleted, each.revision = "", None, True, self.revision

    def move(self, node: ModelNode, parent: ModelNode, before: ModelNode | None) -> None:
        """Move a node before a sibling, or to the end."""
        self.revision += 1
        node.keep()
        node.parent, node.revision, node.place = parent.id, self.revision, Fraction(self.revision)
        if before is not None:
            lower = [n.place for n in self.nodes if n.parent == parent.id and n.place < before.place and n is not node]
            node.place = (max(lower, default=Fraction(0)) + before.place) / 2

    def children(self, node: ModelNode) -> list[ModelNode]:
        """What lies right below a node, in its order, without what was deleted."""
        return sorted(
            (each for each in self.nodes if each.parent == node.id and not each.deleted),
            key=lambda each: (each.place, each.seq),
        )

    def below(self, node: ModelNode) -> list[ModelNode]:
        """A node and all below it, in reading order."""
        return [node, *(each for child in self.children(node) for each in self.below(child))]

    def fork(self, id: UUID, at: int, ids: list[UUID]) -> "ModelTalk":
        """A copy up to a node; `ids` are those of the copies."""
        copies = {node.id: copy for node, copy in zip(self.nodes, ids, strict=False)}

        def parent_of(parent: UUID | None) -> UUID | None:
            return None if parent is None else copies.get(parent, id)

        nodes = [
            replace(
                node,
                id=copies[node.id],
                parent=parent_of(node.parent),
                former=[(version, content, parent_of(old), gone) for version, content, old, gone in node.former],
            )
            for node in self.nodes[: at + 1]
        ]
        fork = ModelTalk(id, self.users, nodes, self.revision)
        fork.changes = [(seq, changes) for seq, changes in self.changes if seq <= at]
        for _, changes in fork.changes:
            fork.own.apply(changes)
        fork.own.versions = dict.fromkeys(fork.own.versions, 1)
        return fork
