"""Imports documents of every kind: finds out which kind a document is, and makes tools of it. Pure."""

from collections.abc import Mapping
from typing import Any

from holdfast.skills.sources.openapi import document_of, import_document, parse_document
from holdfast.skills.sources.openrpc import import_openrpc
from holdfast.skills.sources.source import Choice, ImportedDocument, SourceKind


def import_tools(
    document: bytes, kind: SourceKind | None, choice: Choice, *, location: str = "", base_url: str | None = None
) -> tuple[SourceKind, ImportedDocument]:
    """Return the chosen tools of a document, and its kind. `kind`: what it has to be; None: as the document says."""
    root = parse_document(document)
    found = kind or kind_of(root)
    if found == "jsonrpc":
        return found, import_openrpc(root, choice, location=location, base_url=base_url)
    return found, import_document(document_of(root, location=location), choice, base_url=base_url)


def kind_of(root: Mapping[str, Any]) -> SourceKind:
    """Return the kind of a document."""
    return "jsonrpc" if "openrpc" in root else "openapi"
