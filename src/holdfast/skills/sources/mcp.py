"""Imports the tools, prompts and resources of MCP servers. Pure.

The document of a server is what it answered: `{"mcp": {…}, "tools": […], "prompts": […], "resources": […],
"resourceTemplates": […]}`. Names get the prefix of the source, and so do the schemes of addresses.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, cast

from holdfast.core.errors import InvalidInput
from holdfast.skills.request import Backend, McpServer, McpTool, RequestTemplate
from holdfast.skills.sources.openapi.keywords import compile_schema, short
from holdfast.skills.sources.openapi.operation_choice import OperationKey, chooser
from holdfast.skills.sources.source import Choice, ImportedDocument, ImportedTool, Skipped
from holdfast.skills.tool import Tool

MARK = "mcp"  # the key by which a document is recognized
NOTHING_KNOWN = b'{"mcp": {}}'  # the document of a server that was not asked yet
MAX_DESCRIPTION = 4000  # characters
MAX_NAME = 64
HASH = 6
NOT_CHOSEN = "it was not chosen"
LISTS = ("tools", "prompts", "resources")
OFFERS = ("prompts", "resources", "resourceTemplates")

_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
_ARGUMENTS = ("name", "description", "inputSchema")  # fields of a definition that are stored as columns


def import_server(root: Mapping[str, Any], choice: Choice, backend: Backend) -> ImportedDocument:
    """Return the chosen tools of a server, or all of them if nothing was chosen, and its prompts and resources."""
    about = _object(root.get(MARK))
    info, capabilities = _object(about.get("serverInfo")), _object(about.get("capabilities"))
    everything = not (choice.operations or choice.tags or choice.paths)
    chosen = chooser(choice, root)
    tools: dict[str, ImportedTool] = {}
    skipped: list[Skipped] = []
    seen: set[str] = set()
    prefix = prefix_of(backend.source, backend.mcp or McpServer())
    for number, definition in enumerate(_objects(root.get("tools"))):
        place = f"tools.{number}"
        name = definition.get("name")
        if not isinstance(name, str) or not name or name in seen:
            skipped.append(Skipped(str(name or place)[:200], place, "it has no name of its own"))
            continue
        seen.add(name)
        if not everything and chosen.refusal(OperationKey("", name, name, (), None, None)) is not None:
            skipped.append(Skipped(name, place, NOT_CHOSEN, chosen=False))
            continue
        try:
            wanted = tool_name(prefix, name, taken=tools)
            tools[wanted] = _tool(definition, name, wanted, backend.source)
        except InvalidInput as error:
            skipped.append(Skipped(name, place, error.why or error.what))
    title = info.get("title") or info.get("name") or ""
    unmet = () if everything else chosen.unmet()
    return ImportedDocument(
        str(title),
        str(info.get("version") or ""),
        tuple(tools.values()),
        (*skipped, *unmet),
        {name: _objects(root.get(name)) for name in OFFERS if root.get(name)},
        tuple(name for name in LISTS if _object(capabilities.get(name)).get("listChanged") is True),
    )


def prefix_of(source: str, server: McpServer) -> str:
    """Return the beginning of the names of a server's tools and prompts."""
    prefix = source if server.prefix is None else server.prefix
    return f"{prefix}_" if prefix else ""


def tool_name(prefix: str, name: str, *, taken: Mapping[str, object]) -> str:
    """Return the name of a tool here. A name that is too long, changed or taken gets a hash of its own."""
    whole = prefix + _UNFIT.sub("_", name)
    if len(whole) <= MAX_NAME and whole not in taken:
        return whole
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:HASH]
    return f"{whole[: MAX_NAME - HASH - 1]}_{digest}"


def scheme_of(backend: Backend) -> str:
    """Return the beginning of the schemes of a source's addresses: `github+` of `github+repo://…`."""
    prefix = prefix_of(backend.source, backend.mcp or McpServer()).rstrip("_").replace("_", "-").lower()
    return f"{prefix}+" if prefix else ""


def with_scheme(part: Mapping[str, Any], backend: Backend) -> dict[str, Any]:
    """Return a content block, a resource or contents with the addresses that callers of the engine use."""
    scheme, found = scheme_of(backend), dict(part)
    if not scheme:
        return found
    for name in ("uri", "uriTemplate"):
        if isinstance(found.get(name), str) and found.get("type") in (None, "resource_link"):
            found[name] = scheme + found[name]
    if isinstance(found.get("resource"), dict):
        found["resource"] = with_scheme(found["resource"], backend)
    return found


def _tool(definition: Mapping[str, Any], name: str, wanted: str, source: str) -> ImportedTool:
    schema: object = definition.get("inputSchema")
    if not isinstance(schema, dict):
        raise InvalidInput("the tool cannot be used", why="its inputSchema is not an object")
    try:
        compile_schema(cast(dict[str, Any], schema))
    except ValueError as error:
        raise InvalidInput("the tool cannot be used", why=f"its inputSchema is invalid: {error}") from None
    hints = _object(definition.get("annotations"))
    reads = hints.get("readOnlyHint") is True
    more = {key: value for key, value in definition.items() if key not in _ARGUMENTS}
    tool = Tool(
        wanted,
        short(str(definition.get("description") or ""), MAX_DESCRIPTION),
        cast(dict[str, Any], schema),
        "mcp_server",
        "read" if reads else "execute",
        idempotent=reads or hints.get("idempotentHint") is True,
        request=RequestTemplate("POST", "/", mcp=McpTool(name, more)),
        reference=source,
    )
    title = definition.get("title") or hints.get("title") or ""
    return ImportedTool(tool, name, str(title)[:200], definition)


def _object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in cast(list[Any], value) if isinstance(each, dict)] if isinstance(value, list) else []
