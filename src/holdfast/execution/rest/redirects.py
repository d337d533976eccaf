"""Redirects: where a back end redirects a request to, and what of the request is sent there."""

import re
from dataclasses import replace
from urllib.parse import urljoin

from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.execution.egress import checked_url
from holdfast.execution.rest.requests import WireRequest

MOST = 5  # redirects in a row
REDIRECTS = frozenset({301, 302, 303, 307, 308})
WITH_BODY = frozenset({307, 308})
READING = frozenset({"GET", "HEAD"})
# Headers that are sent to another origin. Others may identify the caller, or were meant only for the first origin.
HARMLESS = frozenset({"accept", "accept-encoding", "user-agent"})

_BEFORE_PATH = re.compile(r"\A[a-zA-Z]+://[^/?]*")
_ENCODED = re.compile(r"(/[!-~]*)?")


def redirected_request(request: WireRequest, status: int, location: str | None) -> WireRequest | None:
    """Return the request that a redirect asks for; None if it is not followed, and the answer is the result.

    A request other than GET and HEAD is redirected only with its body (307, 308), and only to the same origin.
    """
    if status not in REDIRECTS or not location:
        return None
    reads = request.method in READING
    if not reads and status not in WITH_BODY:
        return None
    target = _target(request.url, location)
    if checked_url(target).origin() == checked_url(request.url).origin():
        if status in WITH_BODY:
            return replace(request, url=target)
        headers = {name: value for name, value in request.headers.items() if name.lower() != "content-type"}
        return replace(request, url=target, headers=headers, body=None)
    if not reads:
        return None
    headers = {name: value for name, value in request.headers.items() if name.lower() in HARMLESS}
    return replace(request, url=target, headers=headers, body=None)


def _target(base: str, location: str) -> str:
    """Return the URL of a redirect. A URL that is already encoded stays unchanged, because some URLs are signed."""
    try:
        target = urljoin(base, location).partition("#")[0]
        url = checked_url(target)
    except (HoldfastError, ValueError) as error:
        why = error.why or error.what if isinstance(error, HoldfastError) else str(error)
        raise InvalidInput(
            f"{checked_url(base).raw_host} redirects the call to a URL that cannot be called", why=why
        ) from None
    rest = _BEFORE_PATH.sub("", target)
    return f"{url.origin()}{rest or '/'}" if _ENCODED.fullmatch(rest) else str(url)
