"""Downloads: files from users, which a browser saves and does not display, and exports as JSON lines."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from holdfast.server.operations import JSON_LINES

BYTES = "application/octet-stream"


def attachment(content: bytes, name: str, media_type: str = BYTES) -> Response:
    """Return a response that downloads a file. It keeps the declared media type, but browsers do not render it."""
    kind = media_type if media_type.isascii() and media_type.isprintable() and media_type else BYTES
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, headers={"content-type": kind, "content-disposition": disposition})


def json_lines(exported: AsyncGenerator[str]) -> Response:
    """Return a response that streams an export: one JSON value per line."""
    return StreamingResponse(_lines(exported), media_type=JSON_LINES)


async def _lines(exported: AsyncGenerator[str]) -> AsyncGenerator[str]:
    async with aclosing(exported):
        async for line in exported:
            yield line + "\n"
