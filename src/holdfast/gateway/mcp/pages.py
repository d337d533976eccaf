"""Pages of long lists, with cursors that are opaque to clients."""

import base64
import binascii

from holdfast.gateway.mcp.requests import McpRequest
from holdfast.mcp.protocol import INVALID_PARAMS, McpError

PAGE = 100  # entries


def cursor_of(after: str) -> str:
    """Return the cursor of the page after an entry."""
    return base64.urlsafe_b64encode(after.encode(errors="surrogatepass")).decode()


def after_of(request: McpRequest) -> str | None:
    """Return the entry before the requested page; None for the first page."""
    cursor = request.params.get("cursor")
    if cursor is None:
        return None
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode(errors="surrogatepass")
    except (TypeError, ValueError, binascii.Error):
        raise McpError(INVALID_PARAMS, "the cursor cannot be read: give back the `nextCursor` of the list") from None
