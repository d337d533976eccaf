"""What is told of sources: what they are, what they gave, and what became of that."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from holdfast.skills.request import Backend
from holdfast.skills.sources.source import Choice, Skipped
from holdfast.skills.tool import Access

SourceKind = Literal["openapi"]


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A source: `location` is where its document is read from, empty where it was given by hand; `label` its version.

    `tools` and `skipped` are numbers. `missing_secrets` are named and not there: calls that need one are refused.
    """

    id: UUID
    name: str
    kind: SourceKind
    location: str
    title: str
    label: str
    choice: Choice
    backend: Backend
    tools: int
    skipped: int
    missing_secrets: tuple[str, ...]
    active: bool
    version: int
    imported_at: datetime | None
    created_at: datetime
    updated_at: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class SourceTool:
    """A tool of a source. `gone`: the document has it no longer; `notes`: where it says less than the document."""

    name: str
    operation: str
    access: Access
    active: bool
    gone: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceDetails:
    """A source with all that it gave. `missing_auth`: schemes that its tools ask for, and no secret is named for."""

    source: SourceEntry
    tools: tuple[SourceTool, ...]
    skipped: tuple[Skipped, ...]
    missing_auth: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangedTool:
    """A tool that is not what it was, and what is different of it."""

    name: str
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What an import did, or would do; tools by their names.

    `deactivated`: the document has them no longer, and as skills work with them they were not removed. `written`:
    whether anything was.
    """

    source: SourceEntry
    added: tuple[str, ...]
    changed: tuple[ChangedTool, ...]
    removed: tuple[str, ...]
    deactivated: tuple[str, ...]
    unchanged: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    missing_auth: tuple[str, ...]
    written: bool
    dry_run: bool

    @property
    def missing_secrets(self) -> tuple[str, ...]:
        """Secrets that the source names, and that are not there."""
        return self.source.missing_secrets
