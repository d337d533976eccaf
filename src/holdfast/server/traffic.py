"""Traffic: how much runs at once, what lasts, and the end of it when the server stops."""

import asyncio
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress

from holdfast.access.principals import Principal
from holdfast.core.errors import Overloaded, ShuttingDown
from holdfast.core.ids import TenantId

MAX_RUNNING = 256  # requests at once; each can hold a body in memory
MAX_LASTING = 2000  # requests that wait for an agent, as many that listen, and as many sockets: they hold little
MAX_LISTENING = 100  # requests of one user that listen: nobody takes the places of all others
VISIT = "holdfast.visit"  # where a request's scope has it
QUICK = 0.05  # seconds after which a call waits for something else, and no longer keeps others from running
FAREWELL = 1.0  # seconds for the last answers

Listener = tuple[TenantId, str]  # a user of a tenant


class Traffic:
    """The requests and sockets that there are now, and whether more are taken."""

    def __init__(self, limit: int = MAX_RUNNING, *, lasting: int = MAX_LASTING, listening: int = MAX_LISTENING) -> None:
        self._limit = limit
        self._lasting_limit = lasting
        self._listening_limit = listening
        self._running: set[asyncio.Timeout] = set()
        self._lasting: set[asyncio.Timeout] = set()
        self._listening: dict[asyncio.Timeout, Listener] = {}
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
        self._listening.pop(request, None)
        if not self._running and not self._lasting and not self._listening:
            self._idle.set()

    def stay(self, request: asyncio.Timeout, seconds: float | None) -> None:
        """Let a request last so long from now on, or as long as it likes; it keeps no other from running."""
        if request not in self._lasting and len(self._lasting) >= self._lasting_limit:
            raise Overloaded("the server is busy", why=f"{self._lasting_limit} requests last already", retry_after=5)
        self._lasting.add(request)
        self._running.discard(request)
        request.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    def listen(self, request: asyncio.Timeout, listener: Listener) -> None:
        """Let a request listen for as long as it likes; it keeps none from running, and none that lasts."""
        if len(self._listening) >= self._lasting_limit:
            raise Overloaded("the server is busy", why=f"{self._lasting_limit} requests listen", retry_after=5)
        if list(self._listening.values()).count(listener) >= self._listening_limit:
            why = f"{self._listening_limit} streams of the user {listener[1]!r:.200} are open"
            raise Overloaded("this caller listens too often", why=why, next="Close one of them.", retry_after=5)
        self._listening[request] = listener
        self._running.discard(request)
        request.reschedule(None)

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
        for request in (*self._running, *self._lasting, *self._listening):
            with suppress(RuntimeError):  # one that has ended is only being answered
                request.reschedule(asyncio.get_running_loop().time())

    def _refuse_late(self) -> None:
        if self.draining:
            raise ShuttingDown("the server is stopping", next="Try again when it is back.")


class Visit:
    """A request, as those who answer it may have it last."""

    def __init__(self, traffic: Traffic, request: asyncio.Timeout, request_id: str = "") -> None:
        self._traffic = traffic
        self._request = request
        self.request_id = request_id

    def stay(self, seconds: float | None) -> None:
        """Last so long from now on, or as long as it takes."""
        self._traffic.stay(self._request, seconds)

    @contextmanager
    def lasting(self, seconds: float) -> Generator[None]:
        """Let what is not done in a moment last so long, if there is a place for it; what is quick needs none."""
        timer = asyncio.get_running_loop().call_later(QUICK, self._stay, seconds)
        try:
            yield
        finally:
            timer.cancel()

    def listen(self, caller: Principal) -> None:
        """Last as long as it likes, as a stream of this caller, of which each has so many."""
        self._traffic.listen(self._request, (caller.tenant, caller.user))

    def socket(self) -> AbstractContextManager[None]:
        """Become a socket."""
        return self._traffic.socket(self._request)

    def _stay(self, seconds: float) -> None:
        with suppress(Overloaded, RuntimeError):  # then it has the time that any request has, or is being ended
            self.stay(seconds)

    @property
    def sockets(self) -> int:
        """How many sockets are open."""
        return self._traffic.sockets

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the server stops."""
        return self._traffic.stopping
