"""Small documents, and what they become."""

import json
from typing import Any

from holdfast.skills.sources.openapi import import_document, read_document
from holdfast.skills.sources.source import Choice, ImportedDocument, ImportedTool, Skipped

EVERYTHING = Choice(everything=True)


def document(paths: dict[str, Any], **more: Any) -> dict[str, Any]:
    servers = {} if "swagger" in more else {"openapi": "3.0.3", "servers": [{"url": "https://api.example.com/v1"}]}
    return {**servers, "info": {"title": "Shop", "version": "1.0"}, "paths": paths, **more}


def imported(root: dict[str, Any], choice: Choice = EVERYTHING, **options: Any) -> ImportedDocument:
    location = options.pop("location", "")
    return import_document(read_document(json.dumps(root).encode(), location=location), choice, **options)


def operation(said: dict[str, Any], *, method: str = "post", path: str = "/things", **more: Any) -> ImportedTool:
    """The tool that one operation becomes."""
    found = imported(document({path: {method: said}}, **more))
    assert not found.skipped, found.skipped
    return found.tools[0]


def skipped(said: dict[str, Any], *, method: str = "post", path: str = "/things", **more: Any) -> Skipped:
    """Why one operation becomes no tool."""
    found = imported(document({path: {method: said}}, **more))
    assert not found.tools
    return found.skipped[0]


def with_body(schema: Any, content_type: str = "application/json", **media: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {content_type: {"schema": schema, **media}}}}


def argument(schema: Any, **more: Any) -> Any:
    """What the schema of an argument becomes."""
    said = {"parameters": [{"name": "x", "in": "query", "schema": schema}]}
    return operation(said, method="get", **more).tool.parameters["properties"]["x"]
