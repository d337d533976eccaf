"""The engine's API as commands call it: the same request, to the running server or to an engine opened for it.

So a command is written once, and behaves alike whether a server runs or not.
"""

import http.client
import json
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from holdfast.cli.invocation import Invocation
from holdfast.cli.running_server import find_server, no_server, say_where
from holdfast.core.errors import HoldfastError, InvalidInput, NotFound, Unavailable

Headers = dict[str, bytes]
Into = Callable[[bytes], None]

TIMEOUT = 120.0
PART_BYTES = 64 * 1024


class Carrier(Protocol):
    """Takes a request to the API and brings its answer."""

    async def send(
        self, method: str, path: str, headers: Headers, body: bytes, into: Into | None = None
    ) -> tuple[int, bytes]:
        """The answer's status and body; the parts of a good one go `into` something as they come, if it is given."""
        ...


def caller(token: str, tenant: str | None, user: str | None) -> Headers:
    """The headers that say who calls: the operator, for a tenant, in the name of a user."""
    headers = {"authorization": f"Bearer {token}".encode()}
    if tenant is not None:
        if not tenant.isprintable():  # it could not be sent
            raise NotFound(f"there is no tenant {tenant!r}", next="`holdfast tenants ls` lists them.")
        headers["holdfast-tenant"] = tenant.encode()
    if user is not None:
        if not user or not user.isprintable() or user != user.strip():
            raise InvalidInput(f"{user[:80]!r} cannot be used as a user here", next="Correct --user.")
        headers["holdfast-user"] = user.encode()
    return headers


class Api:
    """The API, called as the operator of the installation; `tenant` is whose things are meant."""

    def __init__(self, carrier: Carrier, token: str, tenant: str | None, *, user: str | None = None) -> None:
        self._carrier = carrier
        self._headers = caller(token, tenant, user)

    async def get(self, path: str) -> Any:
        """What is there."""
        return await self._call("GET", path, None)

    async def fetch(self, path: str, into: Into) -> None:
        """Hand on what is there, part by part."""
        status, answer = await self._carrier.send("GET", path, self._headers, b"", into)
        if status >= http.client.BAD_REQUEST:
            raise error_of(json.loads(answer))

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """What was made."""
        return await self._call("POST", path, body)

    async def upload(self, path: str, data: bytes, kind: bytes) -> Any:
        """What became of it."""
        return await self._send("POST", path, {**self._headers, "content-type": kind}, data)

    async def put(self, path: str, body: dict[str, Any]) -> Any:
        """What is there now."""
        return await self._call("PUT", path, body)

    async def patch(self, path: str, body: dict[str, Any]) -> Any:
        """What is there now."""
        return await self._call("PATCH", path, body)

    async def delete(self, path: str) -> Any:
        """What was removed, if the server says."""
        return await self._call("DELETE", path, None)

    async def _call(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        headers, data = self._headers, b""
        if body is not None:
            headers, data = {**headers, "content-type": b"application/json"}, json.dumps(body).encode()
        return await self._send(method, path, headers, data)

    async def _send(self, method: str, path: str, headers: Headers, data: bytes) -> Any:
        status, answer = await self._carrier.send(method, path, headers, data)
        said: Any = json.loads(answer) if answer else {}
        if status >= http.client.BAD_REQUEST:
            raise error_of(said)
        return said


class RunningServer:
    """Carries requests to a server in another process."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)

    async def send(
        self, method: str, path: str, headers: Headers, body: bytes, into: Into | None = None
    ) -> tuple[int, bytes]:
        """Wait for the answer; there is nothing else to do meanwhile."""
        return self.call(method, path, headers, body, into)

    def call(
        self, method: str, path: str, headers: Headers, body: bytes, into: Into | None = None
    ) -> tuple[int, bytes]:
        """Send a request and wait for the answer."""
        connection = http.client.HTTPConnection(self._url.hostname or "", self._url.port, timeout=TIMEOUT)
        try:
            with self._expected():
                connection.request(method, self._url.path.rstrip("/") + path, body or None, headers)
                answer = connection.getresponse()
                if into is None or answer.status >= http.client.BAD_REQUEST:
                    return answer.status, answer.read()
            while part := self._part(answer):
                into(part)
            return answer.status, b""
        finally:
            connection.close()

    def _part(self, answer: http.client.HTTPResponse) -> bytes:
        with self._expected():
            return answer.read1(PART_BYTES)

    @contextmanager
    def _expected(self) -> Generator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(
                f"the server at {self._url.geturl()} did not answer",
                why=str(error) or type(error).__name__,
                next="Look at what `holdfast up` says, then try again.",
            ) from error


class OpenedEngine:
    """Carries requests to the server's application in this process."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def send(
        self, method: str, path: str, headers: Headers, body: bytes, into: Into | None = None
    ) -> tuple[int, bytes]:
        """Call the application as a web server would."""
        path, _, query = path.partition("?")
        sent = {**headers, "host": b"localhost", "content-length": str(len(body)).encode()}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value) for name, value in sent.items()],
            "client": ("127.0.0.1", 0),
            "server": ("localhost", 0),
        }
        status, parts, complete, gone = 0, list[bytes](), False, None

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def answer(message: dict[str, Any]) -> None:
            nonlocal status, complete, gone
            if message["type"] == "http.response.start":
                status = message["status"]
                return
            complete = not message.get("more_body", False)
            take = parts.append if into is None or status >= http.client.BAD_REQUEST else into
            try:
                take(message.get("body", b""))
            except OSError as error:
                gone = error  # the application takes it for its own caller's going, and says nothing
                raise

        await self._app(scope, receive, answer)
        if gone is not None:
            raise gone
        if not complete:
            raise Unavailable("the answer broke off", next="Look at the log, then try again.")
        return status, b"".join(parts)


@asynccontextmanager
async def reach(invocation: Invocation, *, of_a_tenant: bool = True, running: bool = False) -> AsyncGenerator[Api]:
    """The API of the server that runs on the data folder, or of an engine opened here unless it must be `running`."""
    config = invocation.config()
    tenant = config.tenant if of_a_tenant else None
    server = find_server(config)
    if server is not None:
        yield Api(RunningServer(server.url), server.token, tenant)
        return
    if running:
        raise no_server(config)
    from holdfast.engine import open_engine
    from holdfast.server.app import build_app
    from holdfast.server.listening import Address

    logging.getLogger("holdfast.embeddings").setLevel(logging.ERROR)  # a search says itself what it had to do without
    async with AsyncExitStack() as stack:
        with invocation.output.progress() as progress:
            engine = await stack.enter_async_context(open_engine(config=config, progress=progress))
        say_where(invocation, config)
        token = secrets.token_urlsafe()
        yield Api(OpenedEngine(build_app(engine, Address("127.0.0.1", 0), token=token)), token, tenant)


def error_of(problem: dict[str, Any]) -> HoldfastError:
    """The error that a problem of the server tells."""
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
