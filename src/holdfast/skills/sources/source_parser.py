"""Parses the document of a source: its tools, those that cannot be imported, and what is suspicious in each."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core.errors import InvalidInput
from holdfast.skills.definition_scan import scan
from holdfast.skills.registry_columns import check_tool
from holdfast.skills.sources.importers import import_tools
from holdfast.skills.sources.settings import SourceSettings
from holdfast.skills.sources.source import ImportedDocument, ImportedTool, Skipped, SourceKind, check_operations

MAX_TITLE = 500  # characters


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """A parsed document, and what is stored of it besides its tools."""

    kind: SourceKind
    imported: ImportedDocument
    location: str
    hash: bytes

    def columns(self) -> dict[str, Any]:
        """Return the columns of the source's row that it changes."""
        imported = self.imported
        skipped = [[each.operation, each.path, each.reason, each.chosen] for each in imported.skipped]
        notes = {each.operation: list(each.notes) for each in imported.tools if each.notes}
        return {
            "kind": self.kind,
            "location": self.location,
            "title": imported.title[:MAX_TITLE],
            "document_hash": f"\\x{self.hash.hex()}",
            "report": {
                "label": imported.version[:MAX_TITLE],
                "skipped": skipped,
                "notes": notes,
                "announces": imported.announces,
            },
            "offers": imported.offers,
        }


def parse_document(document: bytes, kind: SourceKind | None, settings: SourceSettings, location: str) -> ParsedSource:
    """Parse a document. Tools that cannot be stored are skipped, with the reason."""
    backend = settings.backend
    kind, imported = import_tools(
        document, kind, settings.choice, backend, location=location, selection=settings.selection
    )
    check_operations(len(imported.tools) + len(imported.skipped))
    has_address = backend.base_url is not None or backend.mcp is not None
    if imported.tools and not has_address and not any(map(_is_absolute, imported.tools)):
        raise InvalidInput(
            "the document does not have the address of its service",
            why="none of its servers has an HTTP URL",
            next="Pass the address of the service as the base URL: --base-url https://…",
            path="servers",
        )
    tools: list[ImportedTool] = []
    skipped = list(imported.skipped)
    for each in imported.tools:
        tool = replace(each.tool, backend=backend if has_address else None)
        if not has_address and not _is_absolute(each):
            skipped.append(Skipped(each.operation, "servers", "the document does not have the address of its service"))
            continue
        try:
            check_tool(tool)
        except InvalidInput as error:
            skipped.append(Skipped(each.operation, "", error.why))
            continue
        tools.append(replace(each, tool=tool, warnings=scan(_scanned(each))))
    imported = replace(imported, tools=tuple(tools), skipped=tuple(skipped))
    return ParsedSource(kind, imported, location, hashlib.sha256(document).digest())


def _scanned(each: ImportedTool) -> dict[str, Any]:
    """Return the texts of a tool that a model or a client may show."""
    mcp = each.tool.request.mcp if each.tool.request else None
    more = {} if mcp is None else {key: value for key, value in mcp.definition.items() if key != "icons"}
    return {
        "name": each.operation,
        "title": each.display_name,
        "description": each.tool.description,
        "parameters": each.tool.parameters,
        **{key: value for key, value in more.items() if key != "title"},
    }


def parse_in_pieces(*arguments: Any) -> Iterable[ParsedSource | ImportedTool]:
    """Parse a document. Return the result without its tools, then each tool."""
    reading = parse_document(*arguments)
    yield replace(reading, imported=replace(reading.imported, tools=()))
    yield from reading.imported.tools


def _is_absolute(each: ImportedTool) -> bool:
    return each.tool.request is not None and each.tool.request.url.startswith(("http://", "https://"))
