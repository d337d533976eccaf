"""Resolves host names, each in its own thread: a name server that hangs blocks only the calls that need it."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from holdfast.core.errors import Unavailable
from holdfast.core.threads import run_in_thread

SECONDS = 10.0  # for one name
MOST_ABANDONED = 100  # abandoned lookups that still run


class Resolver(AbstractResolver):
    """Resolves names with the system's resolver. Raises OSError if a name cannot be resolved in time."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host."""

        def look_up() -> list[ResolveResult]:
            infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
            return [_resolve_result(host, *info) for info in infos]

        try:
            async with asyncio.timeout(SECONDS):
                return await run_in_thread(look_up, name="holdfast name", most_abandoned=MOST_ABANDONED)
        except (TimeoutError, Unavailable):
            raise OSError("no name server responds") from None

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""


def _resolve_result(
    host: str, family: int, _kind: int, protocol: int, _name: str, place: Sequence[Any]
) -> ResolveResult:
    address, port, *more = place
    zone = f"%{more[1]}" if more and more[1] else ""  # of a link-local address
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=f"{address}{zone}", port=port, family=family, proto=protocol, flags=flags)
