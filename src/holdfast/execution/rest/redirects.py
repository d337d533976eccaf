"""Redirects: where a back end sends a request on to, and what of it goes there."""

import re
from dataclasses import replace
from urllib.parse import urljoin

from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.execution.egress import checked_url
from holdfast.execution.rest.requests import WireRequest

MOST = 5  # in a row
REDIRECTS = frozenset({301, 302, 303, 307, 308})
WITH_BODY = frozenset({307, 308})
READING = frozenset({"GET", "HEAD"})
# What another origin is told; all else may say who calls, or was meant for the first one alone.
HARMLESS = frozenset({"accept", "accept-encoding", "user-agent"})

_BEFORE_PATH = re.compile(r"\A[a-zA-Z]+://[^/?]*")
_ENCODED = re.compile(r"(/[!-~]*)?")


def redirected(request: WireRequest, status: int, location: str | None) -> WireRequest | None:
    """The request that a redirect asks for; None where the answer is to be told as it is.

    What does not only read is sent on with its body, and to the same origin alone.
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


def _target(here: str, location: str) -> str:
    """Where it goes. What is encoded already stays as it is to the letter: some addresses are signed."""
    try:
        there = urljoin(here, location).partition("#")[0]
        url = checked_url(there)
    except (HoldfastError, ValueError) as error:
        why = error.why or error.what if isinstance(error, HoldfastError) else str(error)
        raise InvalidInput(
            f"{checked_url(here).raw_host} sends the call on to where nothing is called", why=why
        ) from None
    rest = _BEFORE_PATH.sub("", there)
    return f"{url.origin()}{rest or '/'}" if _ENCODED.fullmatch(rest) else str(url)
