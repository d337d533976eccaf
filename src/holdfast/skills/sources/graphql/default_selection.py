"""Decides what a tool asks for if nobody says it: a selection that is bounded in depth, fields and characters.

- Fields without arguments to give: scalars and enums first, then objects, level by level, then lists, then connections.
- A connection is as deep as the object that has it: its items have its level. It gets `first`; one that takes no size
  of a page is left out.
- Of a union or an interface, `__typename` and the fields of each object that it can be, in equal shares.
- Deprecated fields, and fields with required arguments, are left out.
"""

import heapq
from dataclasses import dataclass, field

from holdfast.skills.sources.graphql.rules import SelectionRules
from holdfast.skills.sources.graphql.schema import TYPENAME, OutputField, OutputType, OutputTypes

NESTED_ITEMS = 5  # of a connection inside another object
MOST_MEMBERS = 25  # with more, only the common fields of an interface are asked for
LEAST_SHARE = 3  # fields of each member
# Names that say what an object is: they come first, as not all fields may fit.
TELLING = frozenset({
    "id", "identifier", "key", "login", "name", "nameWithOwner", "number", "slug", "state", "status", "title", "url",
})  # fmt: skip
TRIES = 10  # types that are looked at, for each field that may be asked for


@dataclass(frozen=True, slots=True)
class DefaultSelection:
    """The text of a selection, and whether fields were left out because it would be too large."""

    text: str
    is_cut: bool


@dataclass(slots=True)
class _Part:
    """A selection in progress. `names` are its response names, which fragments on the same object share."""

    type: OutputType
    level: int
    names: dict[str, str] = field(default_factory=dict[str, str])
    leaves: list[str] = field(default_factory=list[str])
    branches: list[tuple[str, "_Part"]] = field(default_factory=list[tuple[str, "_Part"]])
    suffix: str = ""  # of a name that a fragment cannot use as it is
    share: int | None = None
    is_edge: bool = False  # of a connection: its `node` is an item

    @property
    def is_empty(self) -> bool:
        return not any(leaf != TYPENAME for leaf in self.leaves) and all(node.is_empty for _, node in self.branches)

    def text(self) -> str:
        inner = [f"{head} {node.text()}" for head, node in self.branches if not node.is_empty]
        return f"{{ {' '.join([*self.leaves, *inner])} }}"


class DefaultSelections:
    """Builds the default selections of one schema."""

    def __init__(self, types: OutputTypes, rules: SelectionRules) -> None:
        self._types = types
        self._rules = rules
        self._found: dict[str, DefaultSelection | None] = {}

    def of(self, type: str) -> DefaultSelection | None:
        """Return the selection of a type; None: none of its fields can be asked for."""
        if type not in self._found:
            self._found[type] = _Builder(self._types, self._rules).build(self._types[type])
        return self._found[type]


class _Builder:
    """Builds one selection, within the limits."""

    def __init__(self, types: OutputTypes, rules: SelectionRules) -> None:
        self._types = types
        self._rules = rules
        self._fields = rules.fields
        self._characters = rules.characters - 4
        self._tries = TRIES * rules.fields
        self._number = 0
        self._is_cut = False
        # Branches that are still to be looked at: level, rank, number, the node that has it, its name there, its field.
        self._waiting: list[tuple[int, int, int, _Part, str, OutputField]] = []

    def build(self, type: OutputType) -> DefaultSelection | None:
        root = _Part(type, 1)
        self._expand(root)
        while self._waiting and self._tries > 0:
            _, _, _, node, name, branch = heapq.heappop(self._waiting)
            self._tries -= 1
            self._add_branch(node, name, branch)
        return None if root.is_empty else DefaultSelection(root.text(), self._is_cut)

    def _expand(self, node: _Part) -> None:
        """Add the leaves of a node, and put its branches into the queue."""
        if node.type.is_abstract:
            self._add_leaf(node, TYPENAME, "String!")
        items = node.type.items
        for name, each in sorted(node.type.fields.items(), key=lambda field: field[0] not in TELLING):
            if each.deprecated or (name == "edges" and items == "nodes"):
                continue
            type = self._types.get(each.named)
            if type is None:
                if not each.required:
                    self._add_leaf(node, name, each.type)
            elif not _unmet(each) and (type.items is None or each.takes_size):
                self._queue(node, name, each, type)
        self._add_fragments(node)

    def _queue(self, node: _Part, name: str, each: OutputField, type: OutputType) -> None:
        level = self._level(node, name, type)
        if level > self._rules.depth or len(self._waiting) > self._tries:
            return
        rank = 3 if type.items is not None else 2 if "[" in each.type else 1
        if level == node.level:
            rank = -1 if name == "pageInfo" else 0
        self._number += 1
        heapq.heappush(self._waiting, (level, rank, self._number, node, name, each))

    def _add_fragments(self, node: _Part) -> None:
        members = [name for name in node.type.members if name in self._types]
        if not members or not node.type.is_abstract or len(members) > MOST_MEMBERS:
            return
        share = max(LEAST_SHARE, self._fields // len(members))
        for name in members:
            type = self._types[name]
            others = {key: each for key, each in type.fields.items() if key not in node.type.fields}
            member = _Part(
                OutputType(others), node.level, node.names, suffix=f"_{name}", share=share, is_edge=node.is_edge
            )
            if not self._spend(len(name) + 12):
                return
            node.branches.append((f"... on {name}", member))
            self._expand(member)

    def _add_leaf(self, node: _Part, name: str, type: str) -> None:
        head = self._head(node, name, type)
        if head is None:
            return
        if node.share == 0 or not self._spend(len(head) + 1):
            self._is_cut = True
            return
        if node.share is not None:
            node.share -= 1
        node.leaves.append(head)

    def _add_branch(self, node: _Part, name: str, each: OutputField) -> None:
        head = self._head(node, name, "")
        if head is None:
            return
        if each.takes_size:
            head += f"(first: {min(NESTED_ITEMS, self._rules.items)})"
        fields, characters = self._fields, self._characters
        if node.share == 0 or self._fields < 2 or not self._spend(len(head) + 6):
            self._is_cut = True
            return
        type = self._types[each.named]
        level = self._level(node, name, type)
        share = None if level == node.level else max(LEAST_SHARE, self._fields // (len(self._waiting) + 1))
        if node.share is not None:
            share = min(node.share - 1, node.share - 1 if share is None else share)
        child = _Part(type, level, share=share, is_edge=name == "edges" and node.type.items == name)
        waiting = len(self._waiting)
        self._expand(child)
        if child.is_empty and len(self._waiting) == waiting:
            self._fields, self._characters = fields, characters
            return
        if node.share is not None:
            node.share = max(0, node.share - 1 - len(child.leaves))
        node.branches.append((head, child))

    def _level(self, node: _Part, name: str, type: OutputType) -> int:
        """Return the level of an object in a node: that of the node, for the parts of a connection."""
        is_part = node.type.items is not None and name in (node.type.items, "pageInfo")
        is_part = is_part or (node.is_edge and name == "node")
        return node.level if is_part and type.items is None else node.level + 1

    def _head(self, node: _Part, name: str, type: str) -> str | None:
        """Return a field with the alias that it needs, if another fragment has its name for something else."""
        known = node.names.get(name)
        if known is None:
            node.names[name] = type or node.suffix or "-"
            return name
        if type and known == type:
            return name
        alias = name + node.suffix
        if alias in node.names:
            return None
        node.names[alias] = type or "-"
        return f"{alias}: {name}"

    def _spend(self, characters: int) -> bool:
        if self._fields <= 0 or characters > self._characters:
            return False
        self._fields -= 1
        self._characters -= characters
        return True


def _unmet(field: OutputField) -> list[str]:
    """Return the required arguments that nobody gives."""
    return [name for name in field.required if name != "first" or not field.takes_size]
