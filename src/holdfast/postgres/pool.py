"""A connection pool whose connections stay bound to a tenant.

To use a connection for the same tenant again costs nothing, for another tenant one round trip. So the pool prefers an
idle connection of the same tenant, then a new connection, then the connection that has been idle longest.

Tenants and users share the connections. However many statements of one of them wait, for example for a lock, others get
a connection.
"""

import asyncio
import select
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, Protocol, TypeVar

from holdfast.core.errors import Unavailable
from holdfast.core.shares import NOBODY, Holder, Shares

SURELY_ALIVE = 0.1  # seconds after its last use for which a connection is not checked


class DriverConnection(Protocol):
    """The methods of a driver's connection that the pool needs."""

    def is_closed(self) -> bool: ...
    def terminate(self) -> None: ...
    async def close(self, *, timeout: float | None = None) -> None: ...


C = TypeVar("C", bound=DriverConnection)


class PooledConnection(Generic[C]):
    """A pooled connection, and the tenant that it was last bound to."""

    __slots__ = ("connection", "holder", "last_used", "poller", "tenant")

    def __init__(self, connection: C, descriptor: int) -> None:
        self.connection = connection
        self.tenant: str | None = None
        self.holder: Holder = NOBODY  # whose share it takes now
        self.last_used = monotonic()
        self.poller = select.poll()
        self.poller.register(descriptor, select.POLLIN | select.POLLHUP)

    async def is_alive(self) -> bool:
        """Whether the connection is still open. Unread data on an idle one is most often the server's last message."""
        if monotonic() - self.last_used > SURELY_ALIVE:
            for _ in range(3):
                if self.connection.is_closed() or not self.poller.poll(0):
                    break
                await asyncio.sleep(0)  # the event loop reads it and closes the connection
        return not self.connection.is_closed()


class Pool(Generic[C]):
    """A pool with as many connections as there are places, shared by all tenants."""

    def __init__(
        self, connect: Callable[[], Awaitable[PooledConnection[C]]], places: Shares, *, timeout: float
    ) -> None:
        self._connect = connect
        self._places = places
        self._timeout = timeout
        self._open: set[PooledConnection[C]] = set()
        self._opening = 0
        self._idle: dict[PooledConnection[C], None] = {}  # in the order of release
        self._idle_of: dict[str | None, list[PooledConnection[C]]] = {}
        self._closed = False

    def try_acquire_bound(self, tenant: str | None, holder: Holder = NOBODY) -> PooledConnection[C] | None:
        """Return the last connection of `tenant`, if it needs no check and a place is free. Does not wait."""
        own = self._idle_of.get(tenant)
        if not own or self._closed:
            return None
        link = own[-1]
        if (
            monotonic() - link.last_used > SURELY_ALIVE
            or link.connection.is_closed()
            or not self._places.try_acquire(holder)
        ):
            return None
        own.pop()
        del self._idle[link]
        link.holder = holder
        return link

    async def acquire(self, tenant: str | None, holder: Holder = NOBODY) -> PooledConnection[C]:
        """Take a connection out of the pool, if possible one that is bound to `tenant`."""
        if self._closed:
            raise _closed_error()
        await self._places.wait(holder, self._timeout)
        try:
            link = await self._find(tenant)
        except BaseException:
            self._places.release(holder)
            raise
        link.holder = holder
        return link

    async def _find(self, tenant: str | None) -> PooledConnection[C]:
        if self._closed:
            raise _closed_error()
        while (link := self._pick(tenant)) is not None:
            try:
                if await link.is_alive():
                    return link
            except asyncio.CancelledError:
                self._put(link)
                raise
            self._discard(link)
        return await self._open_one()

    def release(self, link: PooledConnection[C]) -> None:
        """Put a connection back into the pool. Its transaction, if any, has ended."""
        self._put(link)
        self._places.release(link.holder)

    def _put(self, link: PooledConnection[C]) -> None:
        if self._closed:
            self._discard(link)
        else:
            link.last_used = monotonic()
            self._idle[link] = None
            own = self._idle_of.get(link.tenant)
            if own is None:
                self._idle_of[link.tenant] = [link]
            else:
                own.append(link)

    def discard(self, link: PooledConnection[C]) -> None:
        """Close a connection that must not be used again, and release its place."""
        self._discard(link)
        self._places.release(link.holder)

    async def close(self) -> None:
        """Close the idle connections now, and those in use when they are returned."""
        self._closed = True
        self._places.fail(_closed_error())
        idle, self._idle, self._idle_of = list(self._idle), {}, {}
        for link in idle:
            self._open.discard(link)
        await asyncio.gather(*(link.connection.close(timeout=5) for link in idle), return_exceptions=True)

    def clear(self) -> None:
        """Close idle connections: new ones get changed settings of the server, and are not lost like one of these."""
        for link in list(self._idle):
            self._remove(link)
            self._discard(link)

    @property
    def in_use(self) -> int:
        """The number of connections in use."""
        return len(self._open) - len(self._idle)

    def _pick(self, tenant: str | None) -> PooledConnection[C] | None:
        own = self._idle_of.get(tenant)
        if own:
            link = own[-1]
        elif self._idle and len(self._open) + self._opening >= self._places.total:
            link = next(iter(self._idle))
        else:
            return None
        self._remove(link)
        return link

    def _remove(self, link: PooledConnection[C]) -> None:
        del self._idle[link]
        own = self._idle_of[link.tenant]
        if own[-1] is link:
            own.pop()
        else:
            own.remove(link)
        if not own:
            del self._idle_of[link.tenant]

    async def _open_one(self) -> PooledConnection[C]:
        self._opening += 1
        try:
            link = await self._connect()
        finally:
            self._opening -= 1
        self._open.add(link)
        return link

    def _discard(self, link: PooledConnection[C]) -> None:
        self._open.discard(link)
        if not link.connection.is_closed():
            link.connection.terminate()


def _closed_error() -> Unavailable:
    return Unavailable("the engine is closed", why="its database connections are closed", next="Open a new engine.")
