"""Attachments: files from users, which a browser saves and does not display."""

from urllib.parse import quote

from starlette.responses import Response

BYTES = "application/octet-stream"


def attachment(content: bytes, name: str, media_type: str = BYTES) -> Response:
    """Return a response that downloads a file. It keeps the declared media type, but browsers do not render it."""
    kind = media_type if media_type.isascii() and media_type.isprintable() and media_type else BYTES
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, headers={"content-type": kind, "content-disposition": disposition})
