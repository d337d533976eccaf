"""Traffic: how much runs at once, what lasts, and the end of it when the server stops."""

import asyncio
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress

from holdfast.core.errors import Overloaded, ShuttingDown

MAX_RUNNING = 256  # requests at once; each can hold a body in memory
MAX_LASTING = 2000  # requests that wait for an agent, and as many sockets: they hold little, and for long
VISIT = "holdfast.visit"  # where a request's scope has it
FAREWELL = 1.0  # seconds for the last answers


class Traffic:
    """The requests and sockets that there are now, and whether more are taken."""

    def __init__(self, limit: int = MAX_RUNNING, *, lasting: int = MAX_LASTING) -> None:
        self._limit = limit
        self._lasting_limit = lasting
        self._running: set[asyncio.Timeout] = set()
        self._lasting: set[asyncio.Timeout] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.sockets = 0
        self.stopping = asyncio.Event()

    @property
    def draining(self) -> bool:
        """Whether no more are taken."""
        return self.stopping.is_set()

    def enter(self, request: asyncio.Timeout) -> None:
        """Let a request run, or refuse it."""
        self._refuse_late()
        if len(self._running) >= self._limit:
            raise Overloaded("the server is busy", why=f"{self._limit} requests run already", retry_after=1)
        self._running.add(request)
        self._idle.clear()

    def leave(self, request: asyncio.Timeout) -> None:
        """A request has ended."""
        self._running.discard(request)
        self._lasting.discard(request)
        if not self._running and not self._lasting:
            self._idle.set()

    def stay(self, request: asyncio.Timeout, seconds: float | None) -> None:
        """Let a request last so long from now on, or as long as it likes; it keeps no other from running."""
        if request not in self._lasting and len(self._lasting) >= self._lasting_limit:
            raise Overloaded("the server is busy", why=f"{self._lasting_limit} requests wait for agents", retry_after=5)
        self._lasting.add(request)
        self._running.discard(request)
        request.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    @contextmanager
    def socket(self, request: asyncio.Timeout) -> Generator[None]:
        """Let a request become a socket, or refuse it."""
        self._refuse_late()
        if self.sockets >= self._lasting_limit:
            raise Overloaded("the server is busy", why=f"{self._lasting_limit} sockets are open", retry_after=5)
        self.leave(request)
        request.reschedule(None)
        self.sockets += 1
        try:
            yield
        finally:
            self.sockets -= 1

    async def drain(self, grace: float) -> None:
        """Take no more requests; those that run have `grace` seconds to end, then they are ended."""
        self.stopping.set()
        try:
            await asyncio.wait_for(self._idle.wait(), grace)
        except TimeoutError:
            self.cut()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), FAREWELL)

    def cut(self) -> None:
        """End what runs now; it is answered with an error."""
        for request in (*self._running, *self._lasting):
            with suppress(RuntimeError):  # one that has ended is only being answered
                request.reschedule(asyncio.get_running_loop().time())

    def _refuse_late(self) -> None:
        if self.draining:
            raise ShuttingDown("the server is stopping", next="Try again when it is back.")


class Visit:
    """A request, as those who answer it may have it last."""

    def __init__(self, traffic: Traffic, request: asyncio.Timeout) -> None:
        self._traffic = traffic
        self._request = request

    def stay(self, seconds: float | None) -> None:
        """Last so long from now on, or as long as it takes."""
        self._traffic.stay(self._request, seconds)

    def socket(self) -> AbstractContextManager[None]:
        """Become a socket."""
        return self._traffic.socket(self._request)

    @property
    def sockets(self) -> int:
        """How many sockets are open."""
        return self._traffic.sockets

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the server stops."""
        return self._traffic.stopping
