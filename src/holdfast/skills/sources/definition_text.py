"""Definitions of tools as text for people, and the differences between two of them. Pure.

Hidden characters are spelled out, so that whoever approves a definition sees what a model reads.
"""

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any, cast

from holdfast.core.text import restore
from holdfast.skills.definition_scan import visible

CONTEXT = 2  # unchanged lines around a difference
_SHOWN = ("annotations", "outputSchema", "title")  # fields of an MCP server's definition with parts of their own

Definition = Mapping[str, Any]


def differing_parts(old: Definition | None, new: Definition) -> tuple[str, ...]:
    """Return which parts of a definition differ: title, description, destination, arguments…; for a new tool, none."""
    if old is None:
        return ()
    before, after = _parts(old), _parts(new)
    return tuple(part for part in after if before[part] != after[part])


def diff_text(old: Definition | None, new: Definition) -> str:
    """Return the differences of two definitions, part by part. All lines of a new tool are added ones."""
    before, after = {} if old is None else _parts(old), _parts(new)
    lines: list[str] = []
    for part, now in after.items():
        was = before.get(part, [])
        if was != now:
            lines += [f"{part}:", *(f"  {line}" for line in list(unified_diff(was, now, lineterm="", n=CONTEXT))[2:])]
    return "\n".join(lines)


def _parts(definition: Definition) -> dict[str, list[str]]:
    request = _object(definition.get("request"))
    more = _object(_object(request.get("mcp")).get("definition"))
    arguments = {**_object(definition.get("rest")), "properties": _object(definition.get("parameters"))}
    access = f"{definition.get('access')}{', idempotent' if definition.get('idempotent') else ''}"
    return {
        "name": _lines(definition.get("name")),
        "title": _lines(definition.get("title") or more.get("title")),
        "description": _lines(definition.get("description")),
        "access": [access],
        "tags": _lines(definition.get("tags") or None),
        "destination": [*_destination(definition, request)],
        "arguments": _lines(arguments),
        "annotations": _lines(more.get("annotations")),
        "output": _lines(more.get("outputSchema")),
        "further fields": _lines({key: value for key, value in more.items() if key not in _SHOWN} or None),
    }


def _destination(definition: Definition, request: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a call goes, and how its request is built, line by line."""
    if (mcp := request.get("mcp")) is not None:
        yield f"tool {visible(restore(str(mcp.get('name', ''))))} of the MCP server"
    else:
        yield visible(f"{definition.get('kind')} {request.get('method', '')} {request.get('url', '')}".strip())
    for key, value in sorted(request.items()):
        if key == "graphql":
            yield from _lines(_object(value).get("document"))
        elif key not in ("mcp", "method", "url"):
            yield f"{key}: {visible(json.dumps(value, ensure_ascii=False, sort_keys=True))}"


def _object(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def _lines(value: Any) -> list[str]:
    if value in (None, ""):
        return []
    text = restore(value) if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return [visible(line) for line in text.split("\n")]
