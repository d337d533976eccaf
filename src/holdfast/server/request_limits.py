"""Limits of concurrent requests, streams and sockets, and draining when the server stops.

After authentication, a request takes a place in the share of its tenant and user. Unauthenticated requests have a few
places of their own, so that nobody without a key can block the engine for others.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from time import monotonic

from starlette.datastructures import Headers

from holdfast.access.principals import Principal
from holdfast.core.errors import Overloaded, ShuttingDown
from holdfast.core.limits import LimitSettings
from holdfast.core.shares import FairQueue, Holder, Shares, set_holder, shared_by_address, shared_by_tenant

SLOT = "holdfast.visit"  # the key of the `RequestSlot` in the ASGI scope
QUICK = 0.05  # seconds after which a call counts as waiting, and frees its place among the running requests
ALWAYS_ANSWERED = "/healthz"  # without limits: a busy server must still be seen as alive
FAREWELL = 1.0  # seconds to send the last responses
LATER = 5.0  # seconds: Retry-After if there is no place for a waiting request, a stream or a socket
REMEMBERED = 10_000  # addresses whose rate is known
PER_ROUND = 4  # requests that start in one round of the event loop


class RequestLimits:
    """The current requests, streams and sockets of a server, and its limits."""

    def __init__(self, limits: LimitSettings | None = None) -> None:
        limits = limits or LimitSettings()
        number, few = "limits.requests", "limits.anonymous"
        self.connections = shared_by_address(limits, "connections", limits.connections, setting="limits.connections")
        self.arriving = shared_by_address(limits, "requests that come in", limits.requests, setting=number)
        self.anonymous = shared_by_address(limits, "anonymous requests", limits.anonymous, setting=few)
        self.sign_ins = shared_by_address(limits, "sign-ins", limits.sign_ins, setting="limits.sign_ins")
        self.sign_in_rate = Rate(limits.sign_ins_per_minute, setting="limits.sign_ins_per_minute")
        self.running = shared_by_tenant(limits, "running requests", limits.requests, setting=number)
        self.waiting = shared_by_tenant(limits, "waiting requests", limits.waiting, setting="limits.waiting")
        self.streams = shared_by_tenant(limits, "streams", limits.streams, setting="limits.streams")
        self.sockets = shared_by_tenant(limits, "sockets", limits.sockets, setting="limits.sockets")
        self._slots: set[RequestSlot] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = asyncio.Event()

    @property
    def draining(self) -> bool:
        """Whether the server is stopping and accepts no more requests."""
        return self.stopping.is_set()

    def join(self, slot: "RequestSlot") -> None:
        """Register a request. `drain` waits for it."""
        self._slots.add(slot)
        self._idle.clear()

    def leave(self, slot: "RequestSlot") -> None:
        """Unregister a request that has ended, or that `drain` need not wait for."""
        self._slots.discard(slot)
        if not self._slots:
            self._idle.set()

    async def drain(self, grace: float) -> None:
        """Accept no more requests. Wait up to `grace` seconds for the running ones, then abort them."""
        self.stopping.set()
        try:
            await asyncio.wait_for(self._idle.wait(), grace)
        except TimeoutError:
            self.cut()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), FAREWELL)

    def cut(self) -> None:
        """Abort all registered requests. Their clients get an error."""
        for slot in list(self._slots):
            slot.cut()

    def refuse_late(self) -> None:
        """Refuse a request that arrives while the server is stopping."""
        if self.draining:
            raise ShuttingDown("the server is stopping", next="Try again when it is back.")


class RequestSlot:
    """A request from its headers to its response: the place that it holds, and its timeout."""

    def __init__(
        self, traffic: RequestLimits, request: asyncio.Timeout, request_id: str = "", address: str = ""
    ) -> None:
        self._traffic = traffic
        self._request = request
        self._places: Shares | None = None
        self._holder: Holder = (address, "")
        self.address = address
        self.request_id = request_id

    def arrive(self) -> None:
        """Take a place among the arriving requests, before authentication."""
        self._traffic.refuse_late()
        self._move(self._traffic.arriving, self._holder)
        self._traffic.join(self)

    def enter(self, caller: Principal) -> None:
        """Take a place in the share of an authenticated caller, or raise Overloaded."""
        self._move(self._traffic.running, set_holder(caller.tenant, caller.user))

    def enter_unknown(self, *, sign_in: bool = False) -> None:
        """Take a place among the anonymous requests or the sign-ins, or raise Overloaded."""
        if sign_in:
            self._traffic.sign_in_rate.take(self.address)
        self._move(self._traffic.sign_ins if sign_in else self._traffic.anonymous, self._holder)

    def leave(self) -> None:
        """Release the place: the request has ended."""
        if self._places is not None:
            self._places.release(self._holder)
            self._places = None
        self._traffic.leave(self)

    def stay(self, seconds: float | None) -> None:
        """Become a waiting request, with a timeout of `seconds` from now on, or none. It frees its running place."""
        self._become(self._traffic.waiting, seconds)

    def listen(self) -> None:
        """Become a stream, without a timeout."""
        self._become(self._traffic.streams, None)

    @contextmanager
    def extend_timeout(self, seconds: float) -> Generator[None]:
        """Allow a call `seconds`: after `QUICK` it becomes a waiting request, if there is a place.

        A faster call never takes such a place.
        """
        timer = asyncio.get_running_loop().call_later(QUICK, self._stay, seconds)
        try:
            yield
        finally:
            timer.cancel()

    @contextmanager
    def socket(self) -> Generator[None]:
        """Hold a place among the sockets. Refuse the socket if there is none, or if the server is stopping."""
        self._traffic.refuse_late()
        self._become(self._traffic.sockets, None)
        self._traffic.leave(self)  # `drain` does not wait for sockets: the server closes them
        try:
            yield
        finally:
            self.leave()

    def cut(self) -> None:
        """Abort the request now. Its client gets an error."""
        with suppress(RuntimeError):  # the timeout is over, and the response is being sent
            self._request.reschedule(asyncio.get_running_loop().time())

    @property
    def sockets(self) -> int:
        """The number of open sockets."""
        return self._traffic.sockets.in_use

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the server stops."""
        return self._traffic.stopping

    def _stay(self, seconds: float) -> None:
        with suppress(Overloaded, RuntimeError):  # it keeps the usual timeout, or is already ending
            self.stay(seconds)

    def _become(self, places: Shares, seconds: float | None) -> None:
        self._move(places, self._holder, retry_after=LATER)
        self._request.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    def _move(self, places: Shares, holder: Holder, *, retry_after: float = 1.0) -> None:
        """Take a place, and release the previous one."""
        if places is self._places:
            return
        places.acquire(holder, retry_after=retry_after)
        if self._places is not None:
            self._places.release(self._holder)
        self._places, self._holder = places, holder


class Rate:
    """A rate limit per address: a token bucket that holds the requests of one minute."""

    def __init__(self, per_minute: int, *, setting: str, clock: Callable[[], float] = monotonic) -> None:
        self._per_minute = per_minute
        self._setting = setting
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, and when they were counted

    def take(self, address: str) -> None:
        """Take a token, or raise Overloaded."""
        now = self._clock()
        left, seen = self._left.get(address, (float(self._per_minute), now))
        left = min(float(self._per_minute), left + (now - seen) * self._per_minute / 60)
        if left < 1:
            wait = (1 - left) * 60 / self._per_minute
            raise Overloaded(
                "too many sign-ins from this address",
                why=f"{self._per_minute} a minute are taken",
                next=f"Try again in {wait:.0f} seconds, or raise {self._setting}.",
                retry_after=wait,
                limit="sign-ins a minute",
                scope="address",
                setting=self._setting,
            )
        self._left[address] = (left - 1, now)
        self._left.move_to_end(address)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)


class FairStart:
    """Starts a few requests in each round of the event loop: address after address, credential after credential."""

    def __init__(self) -> None:
        self._left = PER_ROUND
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()

    async def wait(self, address: str, headers: Headers) -> None:
        """Return when it is this caller's turn: at once, unless others wait."""
        if self._left and not self._waiting:
            self._take()
            return
        caller: Holder = (address, headers.get("authorization") or headers.get("cookie", ""))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(caller, turn)
        try:
            await turn
        finally:
            if not turn.done() or turn.cancelled():
                self._waiting.remove(caller, turn)

    def _take(self) -> None:
        if self._left == PER_ROUND:
            asyncio.get_running_loop().call_soon(self._next_round)
        self._left -= 1

    def _next_round(self) -> None:
        self._left = PER_ROUND
        while self._left and (found := self._waiting.pop()) is not None:
            if not found[1].done():
                self._take()
                found[1].set_result(None)
