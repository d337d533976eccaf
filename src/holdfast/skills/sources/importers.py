"""Imports documents of every kind: finds out which kind a document is, and makes tools of it. Pure."""

from collections.abc import Mapping
from typing import Any

from holdfast.skills.request import Backend
from holdfast.skills.sources import mcp
from holdfast.skills.sources.graphql import import_graphql, is_introspection, is_sdl
from holdfast.skills.sources.graphql.rules import SelectionRules
from holdfast.skills.sources.openapi import as_utf8, document_of, import_document, parse_document
from holdfast.skills.sources.openrpc import import_openrpc
from holdfast.skills.sources.source import Choice, ImportedDocument, SourceKind


def import_tools(
    document: bytes,
    kind: SourceKind | None,
    choice: Choice,
    backend: Backend,
    *,
    location: str = "",
    selection: SelectionRules | None = None,
) -> tuple[SourceKind, ImportedDocument]:
    """Return the chosen tools of a document, and its kind. `kind`: what it has to be; None: as the document says."""
    endpoint = backend.base_url or location
    if kind in (None, "graphql"):
        text = as_utf8(document).decode(errors="replace")
        if is_sdl(text) or (kind == "graphql" and not text.lstrip().startswith("{")):
            return "graphql", import_graphql(text, choice, endpoint, selection)
    root = parse_document(document)
    found = kind or kind_of(root)
    if found == "mcp":
        return found, mcp.import_server(root, choice, backend)
    if found == "graphql":
        return found, import_graphql(root, choice, endpoint, selection)
    if found == "jsonrpc":
        return found, import_openrpc(root, choice, location=location, base_url=backend.base_url)
    return found, import_document(document_of(root, location=location), choice, base_url=backend.base_url)


def kind_of(root: Mapping[str, Any]) -> SourceKind:
    """Return the kind of a document."""
    if mcp.MARK in root:
        return "mcp"
    if is_introspection(root):
        return "graphql"
    return "jsonrpc" if "openrpc" in root else "openapi"
