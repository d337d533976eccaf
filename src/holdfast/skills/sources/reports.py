"""Reports about sources: their settings, their tools, and the result of an import."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from holdfast.skills.request import Backend
from holdfast.skills.sources.graphql.rules import SelectionRules
from holdfast.skills.sources.source import Choice, Skipped, SourceKind
from holdfast.skills.tool import Access


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A source. `location` is where its document was read, empty if it was passed in; `label` is its version.

    `tools` and `skipped` are counts. `missing_secrets` are named but do not exist; calls that need one are refused.
    """

    id: UUID
    name: str
    kind: SourceKind
    location: str
    title: str
    label: str
    choice: Choice
    backend: Backend
    selection: SelectionRules
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
    """A tool of a source. `gone`: the document no longer has it. `notes`: what it leaves out of the document."""

    name: str
    operation: str
    access: Access
    active: bool
    gone: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceDetails:
    """A source with its tools and skipped operations. `missing_auth`: security schemes without a secret."""

    source: SourceEntry
    tools: tuple[SourceTool, ...]
    skipped: tuple[Skipped, ...]
    missing_auth: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangedTool:
    """A changed tool, and what has changed."""

    name: str
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What an import changed, or would change; tools by name.

    `deactivated`: the document no longer has them. They were not removed, because a skill or an agent uses them, or an
    administrator has changed them. `written`: whether anything was stored.
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
        """Secrets that the source names but that do not exist."""
        return self.source.missing_secrets
