"""The runner of tools that are HTTP back ends."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from yarl import URL

from holdfast.core.errors import Forbidden, HoldfastError, LimitReached, TimedOut, Unavailable
from holdfast.execution.egress import Egress, Hop, checked_url
from holdfast.execution.redaction import Redaction
from holdfast.execution.rest.redirects import MOST, redirected
from holdfast.execution.rest.requests import WireRequest, origin_of, secret_names, wire_request
from holdfast.execution.rest.responses import read_body, tell
from holdfast.execution.runner import Result
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

if TYPE_CHECKING:
    from aiohttp import ClientResponse

MAX_RESPONSE_BYTES = 10_000_000
LEAD = 0.25  # seconds before the caller's time is over: whoever gives up first can say what was under way
LARGE = 2**20  # bytes of a body that is sent in pieces
SAID = 300  # characters of what a connection says

IN_DOUBT = "It may have taken effect all the same: look before it is called again."
NOT_SENT = "Nothing was sent to it."


class Shown(Protocol):
    """A secret that is shown to some hosts."""

    @property
    def value(self) -> str:
        """What it is."""
        ...

    def allows(self, host: str) -> bool:
        """Whether a host may see it."""
        ...


# Gives the secrets of these names, without those that are not there.
Secrets = Callable[[Collection[str]], Awaitable[Mapping[str, Shown]]]


class RestRunner:
    """Calls back ends. Each call is one request, which is sent again only if the tool is idempotent.

    Secrets are fetched for the call, and struck out of whatever comes of it.
    """

    def __init__(self, egress: Egress, secrets: Secrets, *, max_response_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._egress = egress
        self._secrets = secrets
        self._limit = max_response_bytes

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Call the back end, and tell its answer; a refusal of its is a failed result."""
        if tool.backend is not None and tool.backend.timeout is not None and tool.timeout is None:
            timeout = min(timeout, tool.backend.timeout)
        names = secret_names(tool)
        if not names:
            return await self._within(timeout, wire_request(tool, arguments, {}), tool)
        secrets = await self._values(tool, names)
        redaction = Redaction(secrets.values())
        try:
            result = await self._within(timeout, wire_request(tool, arguments, secrets), tool)
            return _struck(result, redaction)
        except HoldfastError as error:
            raise _without(error, redaction) from None

    async def _values(self, tool: Tool, names: Collection[str]) -> dict[str, str]:
        host = checked_url(origin_of(tool)).host or ""
        found = await self._secrets(names)
        for name in sorted(names):
            if name not in found:
                next = f"An operator sets it: `holdfast secrets set {name}`."
                raise Unavailable(f"{tool.name} cannot be called", why=f"there is no secret {name}", next=next)
            if not found[name].allows(host):
                next = f"An operator can set it anew, for {host} too."
                raise Forbidden(f"{host} was not called", why=f"the secret {name} is not for it", next=next)
        return {name: found[name].value for name in names}

    async def _within(self, timeout: float, request: WireRequest, tool: Tool) -> Result:
        try:
            async with asyncio.timeout(timeout - min(LEAD, timeout / 10)):
                return await self._exchange(request, tool)
        except TimeoutError:
            raise TimedOut(
                f"{_host(request)} has not answered in {timeout:g} seconds",
                next="It can be tried again." if tool.idempotent else IN_DOUBT,
            ) from None

    async def _exchange(self, request: WireRequest, tool: Tool) -> Result:
        for _ in range(MOST + 1):
            answer = await self._sent(request, tool)
            if isinstance(answer, Result):
                return answer
            request = answer
        raise LimitReached(f"{_host(request)} was not called", why=f"the call was sent on more than {MOST} times")

    async def _sent(self, request: WireRequest, tool: Tool) -> Result | WireRequest:
        """What came of a request: the answer, or where it is sent on to."""
        url = URL(request.url, encoded=True)
        kept = tool.idempotent  # a connection that was kept may be closed by now, and then one may try another
        while True:
            with Hop(url.host or "") as hop:
                try:
                    return await self._once(request, url, tool)
                except HoldfastError:
                    raise
                except Exception as error:  # noqa: BLE001 - what is not the connection's is raised again
                    if kept and not hop.sockets and _is_closed(error):
                        kept = False
                        continue
                    raise _failure(error, hop, tool) from None

    async def _once(self, request: WireRequest, url: URL, tool: Tool) -> Result | WireRequest:
        data = request.body
        async with self._egress.session().request(
            request.method,
            url,
            data=io.BytesIO(data) if data is not None and len(data) > LARGE else data,
            headers=request.headers,
            allow_redirects=False,
        ) as answer:
            onward = redirected(request, answer.status, answer.headers.get("Location"))
            return onward or await self._told(answer, request, tool)

    async def _told(self, answer: "ClientResponse", request: WireRequest, tool: Tool) -> Result:
        try:
            encoding = answer.headers.get("Content-Encoding", "")
            body = await read_body(answer.content.iter_any(), encoding=encoding, limit=self._limit)
        except HoldfastError as error:
            error.what = f"{_host(request)} answered {answer.status}, but {error.what}"
            raise
        return tell(answer.status, answer.headers, body, method=request.method, idempotent=tool.idempotent)


def _is_closed(error: Exception) -> bool:
    from aiohttp import ClientConnectionError

    return type(error) is ClientConnectionError


def _failure(error: Exception, hop: Hop, tool: Tool) -> Exception:
    """What a connection failed by, and whether anything was sent before."""
    import aiohttp

    if not isinstance(error, aiohttp.ClientError | OSError | ValueError) or type(error) is TimeoutError:
        return error
    if hop.refused and not isinstance(error, aiohttp.ClientPayloadError):
        return hop.refusal()
    why = " ".join(str(error).split())[:SAID] or type(error).__name__
    if isinstance(error, aiohttp.InvalidURL):
        return Forbidden(f"{hop.host} was not called", why="it is no name, and no address in its usual form")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return TimedOut(f"{hop.host} cannot be reached", why="it takes no connection in time", next=NOT_SENT)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return Unavailable(f"{hop.host} cannot be reached securely", why=why, next=NOT_SENT)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Unavailable(f"there is no host {hop.host}", why="its name cannot be resolved", next=NOT_SENT)
    if isinstance(error, aiohttp.ClientConnectorError):
        return Unavailable(f"{hop.host} cannot be reached", why=why, next=NOT_SENT)
    next = "It can be tried again." if tool.idempotent else IN_DOUBT
    if isinstance(error, aiohttp.ClientPayloadError):
        return Unavailable(f"{hop.host} broke off its answer", why=why, next=next)
    if isinstance(error, aiohttp.ClientResponseError):
        return Unavailable(f"{hop.host} gave an answer that is no HTTP", why=error.message[:SAID], next=next)
    return Unavailable(f"{hop.host} closed the connection without an answer", why=why, next=next)


def _struck(result: Result, redaction: Redaction) -> Result:
    whole = result.whole
    if whole is not None and redaction.is_in(whole):
        whole = None
    return replace(result, value=redaction.struck(result.value), whole=whole)


def _without(error: HoldfastError, redaction: Redaction) -> HoldfastError:
    """The same error, which says nothing secret."""
    error.what, error.why, error.next = map(redaction.struck, (error.what, error.why, error.next))
    error.details = redaction.struck(error.details)
    error.args = (error.what,)
    return error


def _host(request: WireRequest) -> str:
    return URL(request.url, encoded=True).host or ""
