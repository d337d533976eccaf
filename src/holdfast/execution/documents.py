"""Fetches documents from the web under the egress rules, within limits of time and size."""

import asyncio
from collections.abc import Mapping

from yarl import URL

from holdfast.core.errors import HoldfastError, InvalidInput, LimitReached, NotFound, TimedOut, TooLarge, Unavailable
from holdfast.execution.egress import Egress, Hop, checked_url
from holdfast.execution.rest.redirects import MOST, redirected_request
from holdfast.execution.rest.requests import ENCODINGS, USER_AGENT, WireRequest
from holdfast.execution.rest.responses import read_body
from holdfast.skills.sources.source import FetchedDocument, Validators

TIMEOUT = 60.0  # seconds, for the whole fetch
ACCEPT = "application/json, application/yaml;q=0.9, */*;q=0.5"
MAX_MESSAGE = 300  # characters of a connection's error message
MISSING = frozenset({404, 410})
NOT_MODIFIED = 304
CONDITIONS = frozenset({"If-None-Match", "If-Modified-Since"})
MAX_VALIDATOR = 1000  # characters; longer ones are not kept


class Documents:
    """Fetches documents. Requests do not identify the caller, and each redirect is checked again."""

    def __init__(self, egress: Egress, *, timeout: float = TIMEOUT) -> None:
        self._egress = egress
        self._timeout = timeout

    async def fetch(self, url: str, limit: int) -> bytes:
        """Return the document at a URL. Raise TooLarge if it has more than `limit` bytes."""
        fetched = await self.fetch_if_changed(url, limit, Validators())
        assert fetched.document is not None  # only a request with validators can find it unchanged
        return fetched.document

    async def fetch_if_changed(self, url: str, limit: int, known: Validators) -> FetchedDocument:
        """Return the document at a URL, unless it is still the version with the validators `known`."""
        conditions = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
        headers = {"Accept": ACCEPT, "Accept-Encoding": ENCODINGS, "User-Agent": USER_AGENT}
        headers |= {name: value for name, value in conditions.items() if value}
        request = WireRequest("GET", str(checked_url(url)), headers, None)
        try:
            async with asyncio.timeout(self._timeout):
                for _ in range(MOST + 1):
                    result = await self._send(request, limit)
                    if isinstance(result, FetchedDocument):
                        return result
                    request = result
        except TimeoutError:
            why = f"it did not arrive within {self._timeout:g} seconds"
            raise TimedOut("the document cannot be fetched", why=why, next="Pass it as a file.") from None
        raise LimitReached("the document cannot be fetched", why=f"{url} was redirected more than {MOST} times")

    async def _send(self, request: WireRequest, limit: int) -> FetchedDocument | WireRequest:
        """Return the document, or the request that a redirect asks for."""
        import aiohttp

        url = URL(request.url, encoded=True)
        hop = Hop(url.raw_host or "")
        async with self._egress.reserve_connection(hop):
            try:
                async with self._egress.session().get(url, headers=request.headers, allow_redirects=False) as response:
                    redirect = redirected_request(request, response.status, response.headers.get("Location"))
                    if redirect is not None:
                        return redirect
                    if response.status == NOT_MODIFIED and CONDITIONS & request.headers.keys():
                        return FetchedDocument(None)
                    if response.status != 200:
                        raise _status_error(request.url, response.status)
                    encoding = response.headers.get("Content-Encoding", "")
                    body = await read_body(response.content.iter_any(), encoding=encoding, limit=limit)
                    return FetchedDocument(body, _validators(response.headers))
            except TooLarge:
                why = f"it has more than {limit:,} bytes"
                next = "Copy the part that you need into a separate document."
                raise TooLarge("the document is too large", why=why, next=next, limit=limit) from None
            except (aiohttp.ClientError, OSError, ValueError) as error:
                if hop.refused and not hop.sockets:
                    raise hop.refusal() from None
                why = " ".join(str(error).split())[:MAX_MESSAGE] or type(error).__name__
                next = "Check the URL, or pass the document as a file."
                raise Unavailable(f"{request.url[:200]} cannot be fetched", why=why, next=next) from None


def _validators(headers: Mapping[str, str]) -> Validators:
    found = (headers.get("ETag", ""), headers.get("Last-Modified", ""))
    return Validators(*(each if each.isprintable() and len(each) <= MAX_VALIDATOR else "" for each in found))


def _status_error(url: str, status: int) -> HoldfastError:
    kind = NotFound if status in MISSING else Unavailable if status >= 500 else InvalidInput
    next = "Check the URL, or pass the document as a file."
    return kind(f"{url[:200]} cannot be fetched", why=f"the server returned {status}", next=next, status=status)
