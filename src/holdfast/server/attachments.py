"""Attachments: what others wrote, for a browser to keep and not to show."""

from urllib.parse import quote

from starlette.responses import Response

BYTES = "application/octet-stream"


def attachment(content: bytes, name: str, media_type: str = BYTES) -> Response:
    """An answer that is a file; of what kind it says to be is told, but no browser acts on it."""
    kind = media_type if media_type.isascii() and media_type.isprintable() and media_type else BYTES
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, headers={"content-type": kind, "content-disposition": disposition})
