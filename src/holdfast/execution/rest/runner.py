"""The runner of tools that call HTTP back ends: REST services, and others that `Dialect` describes."""

import asyncio
import io
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from yarl import URL

from holdfast.core.errors import Forbidden, HoldfastError, LimitReached, TimedOut, Unavailable
from holdfast.core.threads import run_in_worker
from holdfast.execution.egress import Egress, Hop, checked_url
from holdfast.execution.identity.sent_identity import SentIdentity
from holdfast.execution.outcomes import trace_of
from holdfast.execution.redaction import NO_SECRETS, Redaction
from holdfast.execution.rest.redirects import MOST, redirected_request
from holdfast.execution.rest.requests import WireRequest, origin_of, secret_names, wire_request
from holdfast.execution.rest.responses import read_body, to_result
from holdfast.execution.runner import IN_DOUBT, JSON, Result
from holdfast.skills.request import Backend
from holdfast.skills.run import Run
from holdfast.skills.tool import Kind, Tool

if TYPE_CHECKING:
    from aiohttp import ClientResponse

MAX_RESPONSE_BYTES = 10_000_000
LEAD = 0.25  # seconds before the caller's time-out: the runner gives up first, and can say what was in progress
LARGE = 2**20  # bytes above which a body is sent in pieces
MAX_MESSAGE = 300  # characters of a connection's error message
THREAD = 2**18  # bytes above which an answer is parsed in a thread, so that it does not block the event loop

NOT_SENT = "Nothing was sent."
UNAUTHORIZED = 401

log = logging.getLogger(__name__)


class HostSecret(Protocol):
    """A secret that may be sent to some hosts."""

    @property
    def value(self) -> str:
        """The secret itself."""
        ...

    def allows(self, host: str) -> bool:
        """Whether it may be sent to a host."""
        ...


# Returns the secrets with these names; missing ones are left out.
Secrets = Callable[[Collection[str]], Awaitable[Mapping[str, HostSecret]]]


class Identify(Protocol):
    """Returns what a request for a call says of its caller, at an origin (scheme, host and port); None: nothing."""

    async def __call__(
        self, backend: Backend, run: Run, *, tool: str | None, kind: Kind, origin: str
    ) -> SentIdentity | None: ...


class ReadAnswer(Protocol):
    """Converts an answer to a result."""

    def __call__(
        self, status: int, headers: Mapping[str, str], body: bytes, *, method: str, idempotent: bool
    ) -> Result: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """How calls of one kind of tool become HTTP requests, and answers become results."""

    build: Callable[[Tool, Mapping[str, Any], Mapping[str, str]], WireRequest]
    read: ReadAnswer


REST = Dialect(wire_request, to_result)


@dataclass(slots=True)
class _Call:
    """A call in progress: the tool, what its requests say of the caller, its redaction, and the current hop."""

    tool: Tool
    redaction: Redaction
    identity: SentIdentity | None = None
    hop: Hop | None = None


class _TokenRefused(Exception):
    """The back end refused the token of a request, and did not process it. `result` is its answer."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.result = result


class HttpRunner:
    """Calls back ends. Each call is one request, which is retried only if the tool is idempotent.

    Secrets are fetched for each call, and redacted from its result and its errors.
    """

    def __init__(
        self,
        egress: Egress,
        secrets: Secrets,
        *,
        dialect: Dialect = REST,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        identify: Identify | None = None,
    ) -> None:
        self._dialect = dialect
        self._identify = identify
        self._egress = egress
        self._secrets = secrets
        self._limit = max_response_bytes

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Call the back end, and return its answer. An error status is a failed result."""
        if tool.backend is not None and tool.backend.timeout is not None and tool.timeout is None:
            timeout = min(timeout, tool.backend.timeout)
        secrets = await secret_values(self._secrets, secret_names(tool), lambda: _origin_host(tool), tool.name)
        identity = await self._identity(tool, run)
        redaction = Redaction(secrets.values()) if secrets else NO_SECRETS
        call = _Call(tool, redaction if identity is None else redaction.and_also(identity.redaction), identity)
        try:
            request = self._dialect.build(tool, arguments, secrets)
            return await self._within(timeout, request if identity is None else identity.add_to(request), call)
        except HoldfastError as error:
            raise redact_error(error, call.redaction) from None
        except Exception as error:  # noqa: BLE001 - its message may contain a secret
            kind = type(error).__name__
            log.error("the call of %s failed with a %s%s", tool.name, kind, trace_of(error))
            raise Unavailable(f"the call of {tool.name} failed", why=f"with a {kind}", next=_next(tool)) from None

    async def _identity(self, tool: Tool, run: Run) -> SentIdentity | None:
        backend = tool.backend
        if backend is None or backend.identity is None:
            return None
        if self._identify is None:
            raise Unavailable(f"{tool.name} cannot be called", why="this process cannot say who calls")
        return await self._identify(backend, run, tool=tool.name, kind=tool.kind, origin=origin_of(tool))

    async def _within(self, timeout: float, request: WireRequest, call: _Call) -> Result:
        try:
            async with asyncio.timeout(timeout - min(LEAD, timeout / 10)):
                return await self._exchange(request, call)
        except TimeoutError:
            if call.hop is not None and call.hop.waits:
                why = f"all connections were in use for {timeout:g} seconds"
                raise LimitReached(
                    f"{call.hop.host} was not called", why=why, next=f"Try again later. {NOT_SENT}"
                ) from None
            raise TimedOut(
                f"{_host(request)} did not respond within {timeout:g} seconds", next=_next(call.tool)
            ) from None

    async def _exchange(self, request: WireRequest, call: _Call) -> Result:
        for _ in range(MOST + 1):
            try:
                result = await self._send(request, call)
            except _TokenRefused as refused:
                result = await self._with_new_token(request, call) or refused.result
            if isinstance(result, Result):
                return result
            request = result
        raise LimitReached(f"{_host(request)} was not called", why=f"the call was redirected more than {MOST} times")

    async def _with_new_token(self, request: WireRequest, call: _Call) -> WireRequest | None:
        """Return a request with a new token, in place of one that was kept; None if there is none.

        It can be sent whatever it does: with the status 401, the back end says that it has not processed the first.
        """
        assert call.identity is not None
        assert call.identity.renew is not None
        identity = await call.identity.renew()
        if identity is None:
            return None
        call.identity = replace(identity, renew=None)
        call.redaction = call.redaction.and_also(identity.redaction)
        return identity.add_to(request)

    async def _send(self, request: WireRequest, call: _Call) -> Result | WireRequest:
        """Send a request. Return the answer, or the request that a redirect asks for."""
        url = URL(request.url, encoded=True)
        may_retry = call.tool.idempotent  # retry once: a kept-alive connection may be closed by now
        while True:
            hop = call.hop = Hop(url.raw_host or "")
            async with self._egress.reserve_connection(hop):
                try:
                    return await self._once(request, url, call)
                except (HoldfastError, _TokenRefused):
                    raise
                except Exception as error:  # noqa: BLE001 - errors that are not the connection's are raised again
                    if may_retry and is_stale(error, hop):
                        may_retry = False
                        continue
                    raise connection_error(error, hop, next=_next(call.tool)) from None

    async def _once(self, request: WireRequest, url: URL, call: _Call) -> Result | WireRequest:
        data = request.body
        async with self._egress.session().request(
            request.method,
            url,
            data=io.BytesIO(data) if data is not None and len(data) > LARGE else data,
            headers=request.headers,
            allow_redirects=False,
        ) as response:
            redirect = redirected_request(request, response.status, response.headers.get("Location"))
            if redirect is not None:
                return redirect
            result = await self._read_response(response, request, call)
            identity = call.identity
            if response.status == UNAUTHORIZED and identity is not None and identity.renew and identity.is_in(request):
                raise _TokenRefused(result)
            return result

    async def _read_response(self, response: "ClientResponse", request: WireRequest, call: _Call) -> Result:
        try:
            encoding = response.headers.get("Content-Encoding", "")
            body = await read_body(response.content.iter_any(), encoding=encoding, limit=self._limit)
        except HoldfastError as error:
            error.what = f"{_host(request)} returned {response.status}, but {error.what}"
            error.next = error.next if call.tool.idempotent else IN_DOUBT
            raise

        def convert() -> Result:
            result = self._dialect.read(
                response.status, response.headers, body, method=request.method, idempotent=call.tool.idempotent
            )
            return _redact_result(result, call.redaction)

        return convert() if len(body) <= THREAD else await run_in_worker(convert)


async def secret_values(secrets: Secrets, names: Collection[str], host: Callable[[], str], what: str) -> dict[str, str]:
    """Return the values of secrets for a call of `what`, if they may be sent to the host."""
    if not names:
        return {}
    receiver = host()
    found = await secrets(names)
    for name in sorted(names):
        if name not in found:
            next = f"Ask an operator to set it with `holdfast secrets set {name}`."
            raise Unavailable(f"{what} cannot be called", why=f"the secret {name} does not exist", next=next)
        if not found[name].allows(receiver):
            next = f"Ask an operator to set it again with {receiver} among its hosts."
            raise Forbidden(
                f"{receiver} was not called", why=f"the secret {name} may not be sent to this host", next=next
            )
    return {name: found[name].value for name in names}


def is_stale(error: Exception, hop: Hop) -> bool:
    """Whether a kept-alive connection turned out to be closed: the request can be sent again."""
    from aiohttp import ClientConnectionError

    return not hop.sockets and type(error) is ClientConnectionError


def connection_error(error: Exception, hop: Hop, *, next: str) -> Exception:
    """Return the error for a failed connection. It says whether anything was sent; `next` is the advice if so."""
    import aiohttp

    if not isinstance(error, aiohttp.ClientError | OSError | ValueError) or type(error) is TimeoutError:
        return error
    if hop.refused and not hop.sockets:
        return hop.refusal()
    why = " ".join(str(error).split())[:MAX_MESSAGE] or type(error).__name__
    if isinstance(error, aiohttp.InvalidURL):
        return Forbidden(f"{hop.host} was not called", why="it is not a valid host name or address")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return TimedOut(f"{hop.host} cannot be reached", why="it did not accept the connection in time", next=NOT_SENT)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return Unavailable(f"{hop.host} cannot be reached securely", why=why, next=NOT_SENT)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Unavailable(f"the host {hop.host} does not exist", why="its name cannot be resolved", next=NOT_SENT)
    if isinstance(error, aiohttp.ClientConnectorError):
        return Unavailable(f"{hop.host} cannot be reached", why=why, next=NOT_SENT)
    # From here on, the message may quote the answer, and redaction would not recognize a part of a secret.
    why = re.split("[:'\"(]", why)[0].strip()
    if isinstance(error, aiohttp.ClientPayloadError):
        return Unavailable(f"{hop.host} broke off its response", why=why, next=next)
    if isinstance(error, aiohttp.ClientResponseError):
        why = re.split("[:'\"]", error.message)[0].strip()
        return Unavailable(f"the response of {hop.host} is not valid HTTP", why=why, next=next)
    return Unavailable(f"{hop.host} closed the connection without a response", why=why, next=next)


def _redact_result(result: Result, redaction: Redaction) -> Result:
    whole = result.whole
    if whole is not None and redaction.is_in(whole):
        whole = None
    value, kind = redaction.redact(result.value), result.content_type
    if kind != JSON:  # it contains none, but is looked into for long: it could be base64
        kind = redaction.redact(kind)
    return replace(result, value=value, whole=whole, content_type=kind, plain=True)


def redact_error(error: HoldfastError, redaction: Redaction) -> HoldfastError:
    """Redact the secrets from an error."""
    error.what, error.why, error.next = map(redaction.redact, (error.what, error.why, error.next))
    error.details = redaction.redact(error.details)
    error.args = (error.what,)
    return error


def _next(tool: Tool) -> str:
    return "Try again." if tool.idempotent else IN_DOUBT


def _origin_host(tool: Tool) -> str:
    return checked_url(origin_of(tool)).raw_host or ""


def _host(request: WireRequest) -> str:
    return URL(request.url, encoded=True).raw_host or ""
