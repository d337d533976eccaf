"""Where tools come from: a document is read, and what is chosen of it becomes tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.skills.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What of a document becomes tools: what it marks itself, and what is chosen here.

    `everything`: all operations. `operations` by their id or as `GET /customers/{id}`; `tags`; `paths` as a beginning
    (`/customers` has all below it) or a pattern (`/v1/*/items`). What the document forbids stays out, chosen or not.
    """

    everything: bool = False
    operations: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedTool:
    """A tool, and what it is in its document.

    `operation` is what it is known by there, whatever its name becomes; `raw` is what the document says of it; `notes`
    tell where the tool says less than the document.
    """

    tool: Tool
    operation: str
    display_name: str
    raw: Mapping[str, Any] = field(repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """What became no tool, where it stands in the document, and why. `chosen`: somebody wanted it."""

    operation: str
    path: str
    reason: str
    chosen: bool = True


@dataclass(frozen=True, slots=True)
class Imported:
    """What a document gave: each of its operations is a tool or was skipped, in the document's order."""

    title: str
    version: str
    tools: tuple[ImportedTool, ...]
    skipped: tuple[Skipped, ...]


class Source(Protocol):
    """Reads documents of one kind. The same bytes give the same tools; nothing is fetched."""

    def read(self, data: bytes, choice: Choice, *, location: str = "", base_url: str | None = None) -> Imported:
        """The tools of a document, or InvalidInput that says where it is wrong.

        `location` is the address it was read from. With a `base_url` its tools have paths below that as addresses.
        """
        ...
