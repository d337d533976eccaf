"""What is imported from a document: the chosen operations become tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.core.errors import NotFound, TooLarge
from holdfast.skills.definition_scan import ToolWarning
from holdfast.skills.tool import Tool

SourceKind = Literal["openapi", "graphql", "jsonrpc", "mcp"]
PinPolicy = Literal["hold", "follow"]  # a changed definition is held until somebody approves it, or it is used at once

MAX_OPERATIONS = 50_000  # of a document; Microsoft Graph has 17,000


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which operations of a document become tools, in addition to those that the document marks.

    `everything`: all operations. `operations`: by id or as `GET /customers/{id}`. `tags`: by tag. `paths`: by prefix
    (`/customers` includes all below it) or pattern (`/v1/*/items`). Operations that the document forbids are left out,
    even if chosen.
    """

    everything: bool = False
    operations: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedTool:
    """A tool, and its operation in the document.

    `operation` identifies it in the document, independent of its name. `raw` is its part of the document. `notes` say
    what the tool leaves out of the document, `warnings` what is suspicious in its texts.
    """

    tool: Tool
    operation: str
    display_name: str
    raw: Mapping[str, Any] = field(repr=False)
    notes: tuple[str, ...] = ()
    warnings: tuple[ToolWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """An operation that became no tool, its path in the document, and why. `chosen` is false if nobody chose it."""

    operation: str
    path: str
    reason: str
    chosen: bool = True


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """The result of an import: each operation is a tool or was skipped. Tools are in the document's order.

    `offers` are the prompts, resources and resource templates of an MCP server, as it lists them. `announces` are the
    lists of which it says when they change. `types` are the types of a GraphQL schema that callers can choose fields
    of.
    """

    title: str
    version: str
    tools: tuple[ImportedTool, ...]
    skipped: tuple[Skipped, ...]
    offers: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict[str, Sequence[Mapping[str, Any]]])
    announces: tuple[str, ...] = ()
    types: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Validators:
    """By what the server of a document recognises a version of it. Empty: it said nothing."""

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A document, and the validators of its version. None: it is still the version that the caller knows."""

    document: bytes | None = field(repr=False)
    validators: Validators = Validators()


def check_operations(count: int) -> None:
    """Refuse a document with too many operations, before they are converted."""
    if count > MAX_OPERATIONS:
        raise TooLarge(
            "the document is too large",
            why=f"it has {count} operations; the limit is {MAX_OPERATIONS}",
            next="Make a smaller document with only the operations that you need.",
        )


def unknown_source(name: str) -> NotFound:
    """Return the error for an unknown source."""
    return NotFound(f"there is no source {name!r:.200}", next="`holdfast sources ls` and `GET /api/sources` list them.")
