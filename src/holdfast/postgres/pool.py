"""Connections that remember whose they were last.

A connection carries its tenant: to hand it to the same tenant again costs nothing, to another one a round trip. So the
pool hands out one that already is the tenant's, then a new one, then the one that has been idle longest.
"""

import asyncio
import select
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, Protocol, TypeVar

from holdfast.core.errors import Overloaded, Unavailable

SURELY_ALIVE = 0.1  # seconds after its last use in which a connection is not checked for a server that went away


class Connection(Protocol):
    """What the pool needs of a driver's connection."""

    def is_closed(self) -> bool: ...
    def terminate(self) -> None: ...
    async def close(self, *, timeout: float | None = None) -> None: ...


C = TypeVar("C", bound=Connection)


class Link(Generic[C]):
    """A pooled connection and the tenant it was last bound to."""

    __slots__ = ("connection", "poller", "tenant", "used")

    def __init__(self, connection: C, descriptor: int) -> None:
        self.connection = connection
        self.tenant: str | None = None
        self.used = monotonic()
        self.poller = select.poll()
        self.poller.register(descriptor, select.POLLIN | select.POLLHUP)

    async def alive(self) -> bool:
        """Whether the server is still there: what is pending on an idle connection is mostly its goodbye."""
        if monotonic() - self.used > SURELY_ALIVE:
            for _ in range(3):
                if self.connection.is_closed() or not self.poller.poll(0):
                    break
                await asyncio.sleep(0)  # the event loop reads it and closes the connection
        return not self.connection.is_closed()


class Pool(Generic[C]):
    """At most `size` connections, shared by all tenants."""

    def __init__(self, connect: Callable[[], Awaitable[Link[C]]], *, size: int, timeout: float) -> None:
        self._connect = connect
        self._size = size
        self._timeout = timeout
        self._open: set[Link[C]] = set()
        self._opening = 0
        self._idle: dict[Link[C], None] = {}  # in the order of release
        self._idle_of: dict[str | None, list[Link[C]]] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._promised = 0  # places of waiters who were woken and have not come for them yet
        self._closed = False

    def at_hand(self, tenant: str | None) -> Link[C] | None:
        """The connection that `tenant` gave back last, if it is surely alive and nobody waits: no pause, no check."""
        own = self._idle_of.get(tenant)
        if not own or self._promised or self._closed:
            return None
        link = own[-1]
        if monotonic() - link.used > SURELY_ALIVE or link.connection.is_closed():
            return None
        own.pop()
        del self._idle[link]
        return link

    async def take(self, tenant: str | None) -> Link[C]:
        """A connection nobody else has, bound to `tenant` if one is there."""
        if self._closed:
            raise _closed()
        # A task in a tight loop would otherwise take its connection again before those who wait for it can.
        if len(self._idle) + self._size - len(self._open) - self._opening <= self._promised:
            await self._wait()
        while (link := self._pick(tenant)) is not None:
            try:
                if await link.alive():
                    return link
            except asyncio.CancelledError:
                self.give(link)
                raise
            self._discard(link)
        return await self._open_one()

    def give(self, link: Link[C]) -> None:
        """Take a connection back; its transaction, if any, has ended."""
        if self._closed:
            self._discard(link)
        else:
            link.used = monotonic()
            self._idle[link] = None
            own = self._idle_of.get(link.tenant)
            if own is None:
                self._idle_of[link.tenant] = [link]
            else:
                own.append(link)
        if self._waiters:
            self._wake()

    def discard(self, link: Link[C]) -> None:
        """Take a connection back that must not be used again."""
        self._discard(link)
        self._wake()

    async def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        self._closed = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(_closed())
        idle, self._idle, self._idle_of = list(self._idle), {}, {}
        for link in idle:
            self._open.discard(link)
        await asyncio.gather(*(link.connection.close(timeout=5) for link in idle), return_exceptions=True)

    def clear(self) -> None:
        """Drop what is idle: new connections take the server's settings anew."""
        for link in list(self._idle):
            self._remove(link)
            self._discard(link)

    @property
    def in_use(self) -> int:
        """How many connections are out."""
        return len(self._open) - len(self._idle)

    def _pick(self, tenant: str | None) -> Link[C] | None:
        own = self._idle_of.get(tenant)
        if own:
            link = own[-1]
        elif self._idle and len(self._open) + self._opening >= self._size:
            link = next(iter(self._idle))
        else:
            return None
        self._remove(link)
        return link

    def _remove(self, link: Link[C]) -> None:
        del self._idle[link]
        own = self._idle_of[link.tenant]
        if own[-1] is link:
            own.pop()
        else:
            own.remove(link)
        if not own:
            del self._idle_of[link.tenant]

    async def _open_one(self) -> Link[C]:
        self._opening += 1
        try:
            link = await self._connect()
        except BaseException:
            self._opening -= 1
            self._wake()
            raise
        self._opening -= 1
        self._open.add(link)
        return link

    def _discard(self, link: Link[C]) -> None:
        self._open.discard(link)
        if not link.connection.is_closed():
            link.connection.terminate()

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(self._timeout):
                await waiter
        except (TimeoutError, asyncio.CancelledError) as error:
            if waiter.done() and not waiter.cancelled() and not self._closed:
                self._promised -= 1
                self._wake()  # it was our turn, and we cannot take it
            if isinstance(error, asyncio.CancelledError):
                raise
            raise Overloaded(
                "all database connections are busy",
                why=f"{self._size} are in use and none came free within {self._timeout:g} seconds",
                next="try again, or raise database.pool_size",
                retry_after=1,
            ) from None
        else:
            self._promised -= 1
            if self._closed:
                raise _closed()
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._promised += 1
                return


def _closed() -> Unavailable:
    return Unavailable("the engine is closed", why="its database connections were given up", next="open a new engine")
