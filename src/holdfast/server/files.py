"""Static files: serves the `static` folder of the package and the console to browsers, without authentication."""

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from mimetypes import MimeTypes

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from holdfast.core.errors import NotFound
from holdfast.server.problems import require_read_method

NAMED_BY_CONTENT = "console/assets/"  # the names of these files contain a hash of the content
PACKED = ("text/", "image/svg")  # media types worth compressing
# The paths of the screens. The router in the page has the same paths.
SCREENS = ("/", "/chat", "/sessions", "/memory", "/connections")
# Only our own scripts and styles run, the page connects only to this server, and no other page can frame it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Holdfast</title></head>
<body><h1>Holdfast</h1>
<p>The engine runs. Its console was not built: <code>make run</code> does that, and every package has it.</p>
<ul>
<li><a href="{root}/readyz">How its parts do</a></li>
<li><a href="{root}/api/openapi.json">What it offers</a></li>
</ul>
</body>
</html>
"""

# Browsers refuse a module with another type, and the type tables of operating systems differ.
_types = MimeTypes()
_types.add_type("text/javascript", ".js")


@dataclass(frozen=True)
class StaticFile:
    """A file in memory. `tag` is its ETag, a hash of the content."""

    content: bytes
    media_type: str
    tag: str
    immutable: bool = False

    @cached_property
    def packed(self) -> bytes | None:
        """The content compressed with gzip; None for media types that are not worth compressing."""
        return gzip.compress(self.content, mtime=0) if self.media_type.startswith(PACKED) else None


class Files:
    """The static files, read when the server starts. No request opens a file, so that no path can escape the folder."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._files = dict(_read(folder or files("holdfast.server") / "static"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        require_read_method(scope["method"])
        file = self._files.get(scope["path_params"]["path"])
        if file is None:
            raise NotFound("there is no such file")
        request_headers = Headers(scope=scope)
        # A file whose name does not change with its content must be revalidated; the usual response is 304.
        caching = "public, max-age=31536000, immutable" if file.immutable else "no-cache"
        headers = {"etag": file.tag, "cache-control": caching, "vary": "accept-encoding"}
        if file.tag in _tags(request_headers):
            response = Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        elif "gzip" in request_headers.get("accept-encoding", "") and file.packed is not None:
            response = Response(
                file.packed, headers={**headers, "content-encoding": "gzip"}, media_type=file.media_type
            )
        else:
            response = Response(file.content, headers=headers, media_type=file.media_type)
        await response(scope, receive, send)


def _read(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, StaticFile]]:
    for entry in folder.iterdir():
        name = prefix + entry.name
        if entry.is_dir():
            yield from _read(entry, f"{name}/")
        else:
            content = entry.read_bytes()
            media_type = _types.guess_type(name)[0] or "application/octet-stream"
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            yield name, StaticFile(content, media_type, tag, immutable=name.startswith(NAMED_BY_CONTENT))


def _tags(headers: Headers) -> set[str]:
    """Return the tags in If-None-Match, without `W/`: a proxy that compresses makes them weak."""
    return {tag.strip().removeprefix("W/") for tag in headers.get("if-none-match", "").split(",")}


class Console:
    """Serves the page, without authentication: the API checks access to the data."""

    def __init__(self, root_path: str, folder: Traversable | None = None) -> None:
        page = (folder or files("holdfast.server") / "static" / "console") / "index.html"
        self._page = (
            _insert_root(page.read_text(), root_path) if page.is_file() else NOT_BUILT.format(root=escape(root_path))
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        require_read_method(scope["method"])
        headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}
        await HTMLResponse(self._page, headers=headers)(scope, receive, send)


def _insert_root(page: str, root_path: str) -> str:
    """Insert the paths of the page's files and the root path of the API."""
    root = escape(root_path)
    meta = '<meta name="holdfast-root" content="'
    return page.replace('"./', f'"{root}/static/console/').replace(meta, meta + root)
