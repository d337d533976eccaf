"""Files for browsers: those of the package's `static` folder, served to anybody."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from mimetypes import MimeTypes

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.errors import NotFound
from holdfast.server.problems import WrongMethod

METHODS = ("GET", "HEAD")

# A module is refused by browsers under any other type; machines differ in what they call it.
_types = MimeTypes()
_types.add_type("text/javascript", ".js")


@dataclass(frozen=True, slots=True)
class File:
    """What is sent of a file; `tag` tells its content from any other."""

    content: bytes
    media_type: str
    tag: str


class Files:
    """The files as they were when the server started: whatever is asked for, no other file is ever opened."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._files = dict(_read(folder or files("holdfast.server") / "static"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] not in METHODS:
            raise WrongMethod(scope["method"], list(METHODS))
        file = self._files.get(scope["path_params"]["path"])
        if file is None:
            raise NotFound("there is no such file")
        # Names stay the same when contents change: a browser asks each time, and mostly hears that nothing has.
        headers = {"etag": file.tag, "cache-control": "no-cache"}
        if file.tag in _tags(Headers(scope=scope)):
            response = Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        else:
            response = Response(file.content, headers=headers, media_type=file.media_type)
        await response(scope, receive, send)


def _read(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, File]]:
    for entry in folder.iterdir():
        name = prefix + entry.name
        if entry.is_dir():
            yield from _read(entry, f"{name}/")
        else:
            content = entry.read_bytes()
            media_type = _types.guess_type(name)[0] or "application/octet-stream"
            yield name, File(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _tags(headers: Headers) -> set[str]:
    """What the browser has already; a proxy that compresses marks the tag as weak."""
    return {tag.strip().removeprefix("W/") for tag in headers.get("if-none-match", "").split(",")}
