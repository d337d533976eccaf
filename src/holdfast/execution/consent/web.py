"""Requests to servers that a user's consent needs, besides those for tokens. Redirects are not followed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from yarl import URL

from holdfast.core.errors import HoldfastError, TimedOut, TooLarge, Unavailable
from holdfast.core.text import parse, render
from holdfast.execution.egress import Egress, Hop, checked_url
from holdfast.execution.rest.requests import ENCODINGS, USER_AGENT
from holdfast.execution.rest.responses import read_body
from holdfast.execution.rest.runner import connection_error

TIMEOUT = 10.0  # seconds
MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """The answer of a server. `fields` are those of a JSON object; empty if it is something else.

    `challenges` are those of `WWW-Authenticate`, of which an answer can have several.
    """

    status: int
    challenges: str
    fields: Mapping[str, Any]


async def ask(egress: Egress, method: str, url: str, body: object = None) -> WebAnswer:
    """Send a request without credentials, with a body in JSON if there is one."""
    address = checked_url(url)
    headers = {
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": ENCODINGS,
        "User-Agent": USER_AGENT,
        **({} if body is None else {"Content-Type": "application/json"}),
    }
    try:
        async with asyncio.timeout(TIMEOUT):
            return await _ask(egress, method, address, headers, None if body is None else render(body))
    except TimeoutError:
        why = f"it did not answer within {TIMEOUT:g} seconds"
        raise TimedOut(f"{address.raw_host} cannot be asked", why=why, next="Try again later.") from None


async def _ask(egress: Egress, method: str, url: URL, headers: Mapping[str, str], body: bytes | None) -> WebAnswer:
    hop = Hop(url.raw_host or "")
    async with egress.reserve_connection(hop):
        try:
            async with egress.session().request(
                method, url, data=body, headers=headers, allow_redirects=False
            ) as response:
                content = b""
                if response.headers.get("Content-Type", "").partition(";")[0].strip().lower() == "application/json":
                    encoding = response.headers.get("Content-Encoding", "")
                    content = await read_body(response.content.iter_any(), encoding=encoding, limit=MAX_BYTES)
                challenges = ", ".join(response.headers.getall("WWW-Authenticate", ()))
                return WebAnswer(response.status, challenges, _fields(content))
        except TooLarge:
            why = f"its answer has more than {MAX_BYTES:,} bytes"
            raise Unavailable(f"{hop.host} cannot be asked", why=why) from None
        except HoldfastError:
            raise
        except Exception as error:  # noqa: BLE001 - errors that are not the connection's are raised again
            raise connection_error(error, hop, next="Try again later.") from None


def _fields(content: bytes) -> Mapping[str, Any]:
    try:
        found: object = parse(content, limit=MAX_BYTES) if content else None
    except HoldfastError:
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}
