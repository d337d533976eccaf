"""Reports about sources: their settings, their tools, and the result of an import."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from holdfast.skills.definition_scan import ToolWarning
from holdfast.skills.request import Backend
from holdfast.skills.sources.graphql.rules import SelectionRules
from holdfast.skills.sources.source import Choice, PinPolicy, Skipped, SourceKind
from holdfast.skills.tool import Access, HeldFor

ProposalState = Literal["open", "rejected", "approved", "withdrawn"]


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A source. `location` is where its document was read, empty if it was passed in; `label` is its version.

    `tools` and `skipped` are counts. `missing_secrets` are named but do not exist; calls that need one are refused.
    `reload_seconds`: between two checks of the document; None: as the settings say; 0: it is never checked. `error`:
    why the last check failed. The source is then as before. `pin`: whether changed definitions of tools are held;
    `held` counts those.
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
    pin: PinPolicy
    tools: int
    held: int
    skipped: int
    missing_secrets: tuple[str, ...]
    active: bool
    version: int
    reload_seconds: float | None
    checked_at: datetime | None
    error: str
    imported_at: datetime | None
    created_at: datetime
    updated_at: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class SourceTool:
    """A tool of a source. `gone`: the document no longer has it. `notes`: what it leaves out of the document.

    `held`: nobody has approved its definition. `hash`: of the pinned one. `warnings`: what is suspicious in that.
    """

    name: str
    operation: str
    access: Access
    active: bool
    gone: bool
    notes: tuple[str, ...]
    held: HeldFor | None = None
    hash: str | None = None
    warnings: tuple[ToolWarning, ...] = ()


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
class SourceImport:
    """An import that changed tools of a source, with the numbers of these. `revision` is the registry's after it."""

    revision: int
    label: str
    added: int
    changed: int
    removed: int
    deactivated: int
    held: int
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ToolDifference:
    """What an import changed in a tool: its definition before and after it. `what` lists what differs."""

    name: str
    change: Literal["added", "changed", "removed", "deactivated", "held"]
    what: tuple[str, ...]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ImportDetails:
    """An import, with the former and the new definition of each tool that it changed."""

    imported: SourceImport
    tools: tuple[ToolDifference, ...]


@dataclass(frozen=True, slots=True)
class HeldTool:
    """A tool whose definition is held until somebody approves it: a new tool, or one that has changed."""

    name: str
    change: Literal["new", "changed"]
    what: tuple[str, ...]
    hash: str
    warnings: tuple[ToolWarning, ...]


@dataclass(frozen=True, slots=True)
class FlaggedTool:
    """A tool with what is suspicious in its definition."""

    name: str
    warnings: tuple[ToolWarning, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A definition of a tool that its source has, and that is held until somebody approves it.

    `hash` is its hash, `pinned` that of the pinned definition; null for a new tool. `what` names the parts that differ,
    `diff` shows how, with hidden characters spelled out. It is `withdrawn` if the source no longer has it.
    """

    tool: str
    source: str
    change: Literal["new", "changed"]
    state: ProposalState
    hash: str
    pinned: str | None
    what: tuple[str, ...]
    diff: str
    warnings: tuple[ToolWarning, ...]
    found_at: datetime
    found_by: str
    decided_at: datetime | None
    decided_by: str | None


@dataclass(frozen=True, slots=True)
class DecidedProposals:
    """The tools whose held definitions were approved or rejected. `stored`: the names of those that are used now."""

    state: ProposalState
    tools: tuple[str, ...]
    stored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What an import changed, or would change; tools by name.

    `deactivated`: the document no longer has them. They were not removed, because a skill or an agent uses them, or an
    administrator has changed them. `held`: nobody has approved their definitions yet. `flagged`: tools with warnings.
    `written`: whether anything was stored.
    """

    source: SourceEntry
    added: tuple[str, ...]
    changed: tuple[ChangedTool, ...]
    removed: tuple[str, ...]
    deactivated: tuple[str, ...]
    unchanged: tuple[str, ...]
    held: tuple[HeldTool, ...]
    flagged: tuple[FlaggedTool, ...]
    skipped: tuple[Skipped, ...]
    missing_auth: tuple[str, ...]
    written: bool
    dry_run: bool

    @property
    def missing_secrets(self) -> tuple[str, ...]:
        """Secrets that the source names but that do not exist."""
        return self.source.missing_secrets
