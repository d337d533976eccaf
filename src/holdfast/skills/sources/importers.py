"""Imports documents of every kind: finds out which kind a document is, and makes tools of it. Pure."""

from collections.abc import Mapping
from typing import Any

from holdfast.skills.request import Backend
from holdfast.skills.sources import mcp
from holdfast.skills.sources.openapi import document_of, import_document, parse_document
from holdfast.skills.sources.openrpc import import_openrpc
from holdfast.skills.sources.source import Choice, ImportedDocument, SourceKind


def import_tools(
    document: bytes, kind: SourceKind | None, choice: Choice, backend: Backend, *, location: str = ""
) -> tuple[SourceKind, ImportedDocument]:
    """Return the chosen tools of a document, and its kind. `kind`: what it has to be; None: as the document says."""
    root = parse_document(document)
    found = kind or kind_of(root)
    if found == "mcp":
        return found, mcp.import_server(root, choice, backend)
    if found == "jsonrpc":
        return found, import_openrpc(root, choice, location=location, base_url=backend.base_url)
    return found, import_document(document_of(root, location=location), choice, base_url=backend.base_url)


def kind_of(root: Mapping[str, Any]) -> SourceKind:
    """Return the kind of a document."""
    if mcp.MARK in root:
        return "mcp"
    return "jsonrpc" if "openrpc" in root else "openapi"
