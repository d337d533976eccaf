"""Client of the HTTP API for commands."""

import http.client
import json
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from holdfast.cli.invocation import Invocation
from holdfast.cli.operations import Request, operation
from holdfast.cli.servers import KEY, Headers, Server, find_server
from holdfast.core.errors import HoldfastError, Unauthenticated, Unavailable
from holdfast.core.threads import run_in_thread

Into = Callable[[bytes], None]
Body = bytes | Callable[[], Iterator[bytes]]

TIMEOUT = 120.0
PART_BYTES = 64 * 1024


class Api:
    """Calls the HTTP API of a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Call an operation and return the decoded response; an empty object if there is none."""
        request = operation(name).request(arguments)
        if request.body is None:
            return await self._send(request)
        return await self._send(request, json.dumps(request.body, default=str).encode(), "application/json")

    async def upload(self, name: str, data: bytes, /, **arguments: Any) -> Any:
        """Call an operation with a body that is not JSON, and return the decoded response."""
        called = operation(name)
        return await self._send(called.request(arguments), data, called.body_format)

    async def send_file(
        self, name: str, pieces: Callable[[], Iterator[bytes]], /, *, size: int, media_type: str, **arguments: Any
    ) -> Any:
        """Call an operation whose body is a file of this size, and return the decoded response."""
        request = operation(name).request(arguments)
        return await self._send(request, pieces, media_type or "application/octet-stream", size=size)

    async def download(self, name: str, into: Into, /, **arguments: Any) -> None:
        """Call an operation and pass the response body to `into`, part by part."""
        await self._send(operation(name).request(arguments), into=into)

    async def _send(
        self,
        request: Request,
        body: Body = b"",
        media_type: str | None = None,
        into: Into | None = None,
        *,
        size: int | None = None,
    ) -> Any:
        headers = dict(self._server.headers)
        if size is not None:
            headers["content-length"] = str(size).encode()
        if media_type is not None:
            headers["content-type"] = media_type.encode()
        # In a thread: the server may be in this process, and Ctrl-C must not wait for the response.
        status, answer = await run_in_thread(
            lambda: self._wait(request.method, request.path, headers, body, into), name="request"
        )
        if status >= http.client.BAD_REQUEST:
            raise self._error(answer)
        return json.loads(answer) if answer else {}

    def _wait(self, method: str, path: str, headers: Headers, body: Body, into: Into | None) -> tuple[int, bytes]:
        """Return the status and body of the response. With `into`, pass the parts of a successful response to it."""
        connection = _connection(self._server)
        try:
            with self._translate_errors():
                given = body() if callable(body) else body or None
                # A server that refuses a large file answers before it has read all of it, and hangs up.
                with suppress(*((BrokenPipeError, ConnectionResetError) if callable(body) else ())):
                    connection.request(method, urlsplit(self._server.url).path + path, given, headers)
                answer = connection.getresponse()
                if into is None or answer.status >= http.client.BAD_REQUEST:
                    return answer.status, answer.read()
            while part := self._part(answer):
                into(part)
            return answer.status, b""
        finally:
            connection.close()

    def _part(self, answer: http.client.HTTPResponse) -> bytes:
        with self._translate_errors():
            return answer.read1(PART_BYTES)

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(
                f"the server at {self._server.url} did not answer",
                why=str(error) or type(error).__name__,
                next="Check that it runs and that its address is right, then try again.",
            ) from error

    def _error(self, answer: bytes) -> HoldfastError:
        try:
            error = error_of(json.loads(answer))
        except (ValueError, KeyError, TypeError):
            return Unavailable(
                f"the server at {self._server.url} is not a Holdfast server",
                why=f"it sent {answer[:200]!r}",
                next="Check its address.",
            )
        if isinstance(error, Unauthenticated) and "authorization" not in self._server.headers:
            return Unauthenticated(error.what, why=error.why, next=f"Set {KEY} to a key of the server.")
        return error


class _SocketConnection(http.client.HTTPConnection):
    """A connection to a server that listens on a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT)
        self._path = path

    def connect(self) -> None:
        """Open the connection."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(self._path)


def _connection(server: Server) -> http.client.HTTPConnection:
    if server.socket is not None:
        return _SocketConnection(server.socket)
    url = urlsplit(server.url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    return kind(url.hostname or "", url.port, timeout=TIMEOUT)


@asynccontextmanager
async def reach(invocation: Invocation, *, of_a_tenant: bool = True, running: bool = False) -> AsyncGenerator[Api]:
    """Yield the API of the command's server; see `find_server`."""
    async with find_server(invocation, of_a_tenant=of_a_tenant, running=running) as found:
        yield Api(found.server)


def error_of(problem: dict[str, Any]) -> HoldfastError:
    """Return the error that an error response of the server describes."""
    kind = next((kind for kind in _tree(HoldfastError) if kind.code == problem["code"]), HoldfastError)
    error = kind.__new__(kind)
    HoldfastError.__init__(
        error, problem["what"], why=problem.get("why", ""), next=problem.get("next", ""), **problem.get("details", {})
    )
    return error


def _tree(kind: type[HoldfastError]) -> Iterator[type[HoldfastError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _tree(child)
