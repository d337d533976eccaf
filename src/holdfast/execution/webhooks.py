"""Webhooks: JSON that the engine posts to an address of the settings, under the egress rules."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from yarl import URL

from holdfast.core.errors import TimedOut, Unavailable
from holdfast.core.text import render
from holdfast.execution.egress import AllowedHosts, Egress, Hop, checked_url
from holdfast.execution.rest.requests import USER_AGENT

TIMEOUT = 30.0
MAX_MESSAGE = 300  # characters of a connection's error message
REFUSED = 300  # the first status that does not mean success: redirects are not followed


class Webhooks:
    """Posts JSON."""

    def __init__(self, egress: Egress, *, timeout: float = TIMEOUT) -> None:
        self._egress = egress
        self._timeout = timeout

    async def post(self, url: str, value: Any) -> None:
        """Post a value as JSON. Raise an error unless the server accepts it."""
        import aiohttp

        address = checked_url(url)
        hop = Hop(address.raw_host or "")
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        try:
            async with asyncio.timeout(self._timeout), self._egress.reserve_connection(hop):
                session = self._egress.session()
                async with session.post(
                    address, data=render(value), headers=headers, allow_redirects=False
                ) as response:
                    status = response.status
        except TimeoutError:
            raise TimedOut(f"{url[:200]} did not answer", why=f"it had {self._timeout:g} seconds") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if hop.refused and not hop.sockets:
                raise hop.refusal() from None
            why = " ".join(str(error).split())[:MAX_MESSAGE] or type(error).__name__
            raise Unavailable(f"{url[:200]} cannot be reached", why=why, next="Check the address.") from None
        if status >= REFUSED:
            raise Unavailable(f"{url[:200]} did not accept the message", why=f"it answered {status}")


@asynccontextmanager
async def open_webhooks(
    allow_private: tuple[str, ...], url: str | None
) -> AsyncGenerator[Callable[[str, Any], Awaitable[None]]]:
    """Open a function that posts JSON to the address of a setting, which may be private: the operator sets it.

    It has its own connections, so that tools cannot reach this address.
    """
    own = [] if url is None else [f"{URL(url).host_subcomponent}:{URL(url).port}"]
    async with Egress(AllowedHosts.parse([*allow_private, *own])) as egress:
        yield Webhooks(egress).post
