"""Asks MCP servers what they have: their tools, prompts and resources."""

from collections.abc import Mapping
from typing import Any, cast

from holdfast.core.errors import TooLarge
from holdfast.core.text import render
from holdfast.execution.mcp.connections import Upstream
from holdfast.execution.mcp.servers import McpServers
from holdfast.mcp.protocol import METHOD_NOT_FOUND, McpError
from holdfast.skills.sources.mcp import MARK

MAX_PAGES = 1000
LISTS: Mapping[str, tuple[str, str]] = {  # a list, its method, and the capability of servers that have it
    "tools": ("tools/list", "tools"),
    "prompts": ("prompts/list", "prompts"),
    "resources": ("resources/list", "resources"),
    "resourceTemplates": ("resources/templates/list", "resources"),
}


async def describe(servers: McpServers, upstream: Upstream, *, limit: int) -> bytes:
    """Return the document of a server: what it says of itself, and its lists. Raise TooLarge above `limit` bytes."""
    about = await servers.about(upstream)
    document: dict[str, Any] = {MARK: about}
    size = 0
    for name, (method, capability) in LISTS.items():
        if capability not in about["capabilities"]:
            continue
        document[name] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            try:
                page = await servers.call(upstream, method, {} if cursor is None else {"cursor": cursor})
            except McpError as error:
                if error.code == METHOD_NOT_FOUND:  # a server with resources need not have templates
                    break
                raise
            items: object = page.get(name)
            found = cast(list[Any], items) if isinstance(items, list) else []
            size += len(render(found))
            if size > limit:
                raise TooLarge("the lists of the server are too large", why=f"they have more than {limit:,} bytes")
            document[name] += found
            following = page.get("nextCursor")
            if not isinstance(following, str) or following == cursor:
                break
            cursor = following
    return render(document)
