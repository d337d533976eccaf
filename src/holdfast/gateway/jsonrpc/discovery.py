"""Discovery: describes what a caller can call as an OpenRPC document. Pure."""

from collections.abc import Mapping
from typing import Any, cast

from holdfast.core.text import render
from holdfast.gateway.views import CallerView, Listed
from holdfast.mcp.about import SERVER

OPENRPC = "1.3.2"


class OpenRpcDocument(bytes):
    """The document of a view, as JSON."""


def render_document(view: CallerView) -> bytes:
    """Return the document of a view. It is rendered once."""
    return view.cache.get(OpenRpcDocument, lambda: OpenRpcDocument(render(_document(view))))


def _document(view: CallerView) -> dict[str, Any]:
    others = [each for each in view.tools if each.tool.service is None]
    methods = [_method(each.tool.service or "", each) for each in view.services]
    return {
        "openrpc": OPENRPC,
        "info": {"title": SERVER["title"], "version": SERVER["version"]},
        "methods": methods + [_method(each.name, each) for each in others],
    }


def _method(name: str, listed: Listed) -> dict[str, Any]:
    tool = listed.offer.shown
    required = tool.parameters.get("required", ())
    params = [
        {"name": each, "required": each in required, "schema": _schema(f"{name}:{each}", schema, tool.parameters)}
        for each, schema in tool.parameters.get("properties", {}).items()
    ]
    needed = [each["required"] for each in params]
    summary, _, _ = tool.description.partition("\n")
    return {
        "name": name,
        "summary": summary,
        "description": tool.description,
        # Positional params work only if the required ones come first.
        "paramStructure": "either" if needed == sorted(needed, reverse=True) else "by-name",
        "params": params,
        "result": {"name": "result", "schema": True},
    }


def _schema(place: str, schema: Any, whole: Mapping[str, Any]) -> Any:
    """Return the schema of a param. If the tool's schema has `$defs`, it becomes a document that includes them."""
    if "$defs" not in whole or not isinstance(schema, Mapping):
        return schema
    return {"$id": f"urn:holdfast:{place}", **cast(Mapping[str, Any], schema), "$defs": whole["$defs"]}
