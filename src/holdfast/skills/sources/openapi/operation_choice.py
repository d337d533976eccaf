"""Chooses the operations of a document that become tools: those marked `x-ai-enabled`, and those chosen.

The nearest mark counts: that of the operation, its path, one of its tags, or the document. `false` at an operation is
final; elsewhere a choice overrides it. A mark that is neither true nor false counts as `false`, and is reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, cast

from holdfast.skills.sources.source import Choice, Skipped

MARK = "x-ai-enabled"
NOT_CHOSEN = f"not marked `{MARK}: true` and not selected"
FORBIDDEN = f"the document forbids it: `{MARK}: false`"
UNREADABLE = f"omitted, its mark `{MARK}` is not a boolean"


@dataclass(frozen=True, slots=True)
class OperationKey:
    """The properties by which an operation is chosen."""

    method: str
    path: str
    id: str
    tags: tuple[str, ...]
    own_mark: object
    path_mark: object

    @property
    def key(self) -> str:
        """The key that identifies it in its document."""
        return f"{self.method} {self.path}".lstrip()


@dataclass(slots=True)
class Chooser:
    """Applies a choice to the operations of one document, and records what of the choice matched none."""

    choice: Choice
    root_mark: object
    tag_marks: Mapping[str, object]
    _met: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def refusal(self, operation: OperationKey) -> str | None:
        """Return why an operation is left out, or None if it becomes a tool."""
        chosen = self._is_chosen(operation)
        if operation.own_mark is not None and operation.own_mark is not True:
            return FORBIDDEN if operation.own_mark is False else UNREADABLE
        marks = self._marks(operation)
        if chosen or any(mark is True for mark in marks):
            return None
        return NOT_CHOSEN if all(mark is False for mark in marks) else UNREADABLE

    def unmet(self) -> list[Skipped]:
        """Return what was chosen but is not in the document."""
        chosen = self.choice
        wanted = [("operation", name) for name in chosen.operations]
        wanted += [("tag", name) for name in chosen.tags]
        wanted += [("path", name) for name in chosen.paths]
        return [
            Skipped(name, "", f"selected by {kind}, but the document has no such operation")
            for kind, name in wanted
            if (kind, name) not in self._met
        ]

    def _is_chosen(self, operation: OperationKey) -> bool:
        met = {("operation", name) for name in self.choice.operations if _is_named(operation, name)}
        met |= {("tag", tag) for tag in self.choice.tags if tag in operation.tags}
        met |= {("path", pattern) for pattern in self.choice.paths if is_below(operation.path, pattern)}
        self._met |= met
        return self.choice.everything or bool(met)

    def _marks(self, operation: OperationKey) -> list[object]:
        """Return the nearest mark, or those of several tags."""
        tags = [self.tag_marks.get(tag) for tag in operation.tags]
        for marks in ([operation.own_mark], [operation.path_mark], tags, [self.root_mark]):
            if present := [mark for mark in marks if mark is not None]:
                return present
        return []


def chooser(choice: Choice, root: Mapping[str, Any]) -> Chooser:
    """Return the chooser of a document."""
    values = root.get("tags")
    tags = [
        cast(dict[str, Any], tag)
        for tag in cast(list[Any], values if isinstance(values, list) else [])
        if isinstance(tag, dict)
    ]
    return Chooser(choice, root.get(MARK), {str(tag.get("name")): tag.get(MARK) for tag in tags})


def is_below(path: str, pattern: str) -> bool:
    """Whether a path matches a prefix or a pattern."""
    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(path, pattern)
    beginning = pattern.rstrip("/")
    return path in (pattern, beginning) or path.startswith(f"{beginning}/")


def _is_named(operation: OperationKey, name: str) -> bool:
    if name in (operation.id, operation.key):
        return True
    method, _, path = name.partition(" ")
    return path.strip() == operation.path and method.upper() == operation.method
