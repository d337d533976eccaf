"""Middleware that every request passes before routing. It is plain ASGI, because its cost adds to every request."""

import asyncio
import logging
import re
from collections.abc import Iterable
from contextlib import suppress
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from holdfast.core.errors import Broken, HoldfastError, ShuttingDown, TimedOut, TooLarge
from holdfast.core.ids import uuid7
from holdfast.core.request_context import Entry, RequestContext, set_request, trace_id_of
from holdfast.core.settings import ServerSettings
from holdfast.server.challenges import SOCKET_SCHEMES, Challenges
from holdfast.server.host_origin import HostOriginPolicy
from holdfast.server.operations import ApiOperation
from holdfast.server.problems import SlowBody, problem_response, status_of
from holdfast.server.request_limits import ALWAYS_ANSWERED, SLOT, FairStart, RequestLimits, RequestSlot

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    # With `no-referrer`, browsers send `Origin: null` from our own forms.
    "referrer-policy": "same-origin",
}

ANSWER_TIMEOUT = 5  # seconds to send a problem
FIRST_SECONDS = 5.0  # seconds at the start of a body without a minimum rate
UPLOAD_SECONDS = 3600.0  # for a body that an operation reads as it arrives; the minimum rate applies to it, too
SHOWN_PATH = 200  # characters of the path in a problem

_SECURITY_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

log = logging.getLogger(__name__)


class Middleware:
    """Sets the request id, checks Host and Origin, applies limits and timeouts, and turns errors into problems."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        host_policy: HostOriginPolicy,
        challenges: Challenges,
        traffic: RequestLimits,
        settings: ServerSettings,
        operations: Iterable[ApiOperation] = (),
    ) -> None:
        self._app = app
        self._host_policy = host_policy
        self._challenges = challenges
        self._traffic = traffic
        self._fair_start = FairStart()
        self._settings = settings
        self._always_answered = {ALWAYS_ANSWERED, f"{settings.root_path}{ALWAYS_ANSWERED}"}
        self._larger = [
            (operation.method, compile_path(operation.path)[0], operation)
            for operation in operations
            if operation.larger_limit or operation.takes_stream
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request or WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            raise RuntimeError(f"no {scope['type']} is served here")
        headers = Headers(scope=scope)
        answer = ResponseSender(send, _request_id(headers), self._traffic)
        request = asyncio.timeout(self._settings.request_timeout)
        client = scope.get("client")
        address = client[0] if client else ""
        slot = scope[SLOT] = RequestSlot(self._traffic, request, answer.request_id, address)
        entry = _entry_of(scope, self._settings.root_path)
        set_request(RequestContext(entry, answer.request_id, trace_id_of(headers.get("traceparent")), address))
        try:
            error = await self._run(scope, receive, answer, request, slot)
            if error is not None:
                _record(error, answer.request_id)
                # A response that has started cannot be replaced. The client notices that the connection ends.
                if not answer.started:
                    path = scope["path"][:SHOWN_PATH]
                    challenge = self._challenges.of(error, scope)
                    response = problem_response(error, instance=path, request_id=answer.request_id, challenge=challenge)
                    # A client that does not read the response must not keep its place.
                    with suppress(TimeoutError, ClientDisconnected):
                        async with asyncio.timeout(ANSWER_TIMEOUT):
                            await response(scope, receive, answer.send)
        finally:
            slot.leave()

    async def _run(
        self, scope: Scope, receive: Receive, answer: "ResponseSender", request: asyncio.Timeout, slot: RequestSlot
    ) -> HoldfastError | None:
        headers = Headers(scope=scope)
        try:
            async with request:
                if scope["path"] not in self._always_answered:
                    await self._fair_start.wait(slot.address, headers)
                    slot.arrive()
                self._host_policy.check_host(headers)
                # A WebSocket can write, and browsers let any page open one: check its origin like that of a write.
                scheme: str = scope["scheme"]
                self._host_policy.check_origin(
                    scope.get("method", "UPGRADE"), SOCKET_SCHEMES.get(scheme, scheme), headers
                )
                await self._app(
                    _with_root_path(self._settings.root_path, scope),
                    self._limit_body(scope, headers, receive),
                    answer.send,
                )
        except (ClientDisconnect, ClientDisconnected):
            return None
        except HoldfastError as error:
            return error
        except Exception as error:  # noqa: BLE001
            if isinstance(error, TimeoutError) and request.expired():
                return self._out_of_time()
            broken = Broken(f"{type(error).__name__}: {error}")
            broken.__cause__ = error
            return broken
        return None

    def _limit_body(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        length = headers.get("content-length")
        if length is None and "transfer-encoding" not in headers:
            return receive
        settings = self._settings
        limit, timeout = settings.max_body_bytes, settings.body_timeout
        operation = self._operation_for_large(scope)
        if operation is not None:
            limit = max(limit, operation.larger_limit)
            timeout = max(timeout, UPLOAD_SECONDS) if operation.takes_stream else timeout
        if length is not None and int(length) > limit:
            raise _too_large(limit)
        return _Body(receive, limit, timeout=timeout, rate=settings.min_body_rate).receive

    def _operation_for_large(self, scope: Scope) -> ApiOperation | None:
        """Return the operation, if it takes larger bodies than others. It authenticates before it reads the body."""
        path = scope["path"].removeprefix(self._settings.root_path)
        method = scope.get("method")
        return next((each for of, fits, each in self._larger if of == method and fits.match(path)), None)

    def _out_of_time(self) -> HoldfastError:
        if self._traffic.draining:
            return ShuttingDown("the server stopped before this was done", next="Try again when it is back.")
        limit = self._settings.request_timeout
        return TimedOut(
            f"this took longer than {limit:g} seconds", next="Ask for less at once, or raise server.request_timeout."
        )


class ResponseSender:
    """Sends a response, with the headers that every response has."""

    def __init__(self, send: Send, request_id: str, traffic: RequestLimits) -> None:
        self._send = send
        self._traffic = traffic
        self.request_id = request_id
        self.started = False

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        if message["type"] == "websocket.accept":
            self.started = True
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
        elif message["type"].endswith("http.response.start"):
            self.started = True
            headers: list[tuple[bytes, bytes]] = [*message.get("headers", ())]
            given = {name for name, _ in headers}
            headers += [header for header in _SECURITY_HEADERS if header[0] not in given]
            headers.append((b"x-request-id", self.request_id.encode()))
            if self._traffic.draining:
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        await self._send(message)


class _Body:
    """A request body with a size limit and a minimum rate."""

    def __init__(self, receive: Receive, limit: int, *, timeout: float, rate: int) -> None:
        self._receive = receive
        self._limit = limit
        self._timeout = timeout
        self._rate = rate
        self._began: float | None = None
        self._size = 0
        self._complete = False

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        if self._began is None:
            self._began = asyncio.get_running_loop().time()
        allowed = body_seconds(self._size, timeout=self._timeout, rate=self._rate)
        try:
            async with asyncio.timeout_at(self._began + allowed):
                message = await self._receive()
        except TimeoutError:
            raise SlowBody(
                "the body did not arrive in time",
                why=f"{self._size} bytes of it came in {allowed:g} seconds",
                next=f"Send at least {self._rate} bytes a second, and all of it within {self._timeout:g} seconds.",
            ) from None
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            raise _too_large(self._limit)
        self._complete = not message.get("more_body", False)
        return message


def body_seconds(size: int, *, timeout: float, rate: int) -> float:
    """Return how many seconds a body may have taken after `size` bytes."""
    return min(timeout, FIRST_SECONDS + size / rate)


def _request_id(headers: Headers) -> str:
    given = headers.getlist("x-request-id")
    return given[0] if len(given) == 1 and _SANE_ID.fullmatch(given[0]) else str(uuid7())


def _entry_of(scope: Scope, root_path: str) -> Entry:
    if scope["type"] == "websocket":
        return "websocket"
    path: str = scope["path"].removeprefix(root_path)
    if path == "/rpc":
        return "rpc"
    return "mcp" if path == "/mcp" or path.startswith("/mcp/") else "http"


def _with_root_path(root_path: str, scope: Scope) -> Scope:
    """Put the root path in front of the request's path, unless the proxy has left it there."""
    if root_path:
        path: str = scope["path"]
        scope["root_path"] = root_path
        if path == root_path:
            scope["path"] = path = f"{root_path}/"
        if not path.startswith(f"{root_path}/"):
            scope["path"] = root_path + path
    return scope


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        "the body is too large", why=f"at most {limit} bytes are taken", next="Send it in parts.", limit=limit
    )


def _record(error: HoldfastError, request_id: str) -> None:
    status = status_of(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request %s broke: %s", request_id, error, exc_info=error)
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request %s failed: %s", request_id, error)
