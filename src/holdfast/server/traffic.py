"""Traffic: how much runs at once, for whom, what lasts, and the end of it when the server stops.

A request takes a place when it is known who calls: among those of its tenant and user. What is asked by unknown callers
has few places of its own, so that nobody can take the engine from others without a key.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from time import monotonic

from holdfast.access.principals import Principal
from holdfast.core.errors import Overloaded, ShuttingDown
from holdfast.core.limits import LimitSettings
from holdfast.core.shares import Holder, Shares, shared_by_address, shared_by_tenant, work_for

VISIT = "holdfast.visit"  # where a request's scope has it
QUICK = 0.05  # seconds after which a call waits for something else, and no longer keeps others from running
ALWAYS_ANSWERED = "/healthz"  # however busy the server is: that it lives must not be in doubt
FAREWELL = 1.0  # seconds for the last answers
LATER = 5.0  # seconds after which there may be a place among what lasts
REMEMBERED = 10_000  # addresses


class Traffic:
    """The requests and sockets that there are now, and whether more are taken."""

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
        self._visits: set[Visit] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = asyncio.Event()

    @property
    def draining(self) -> bool:
        """Whether no more are taken."""
        return self.stopping.is_set()

    def join(self, visit: "Visit") -> None:
        """Wait for a request when the server stops."""
        self._visits.add(visit)
        self._idle.clear()

    def leave(self, visit: "Visit") -> None:
        """A request has ended, or need not be waited for."""
        self._visits.discard(visit)
        if not self._visits:
            self._idle.set()

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
        for visit in list(self._visits):
            visit.cut()

    def refuse_late(self) -> None:
        """Refuse what comes when the server stops."""
        if self.draining:
            raise ShuttingDown("the server is stopping", next="Try again when it is back.")


class Visit:
    """A request, from its head to its answer: which place it has, and how long it may last."""

    def __init__(self, traffic: Traffic, request: asyncio.Timeout, request_id: str = "", address: str = "") -> None:
        self._traffic = traffic
        self._request = request
        self._places: Shares | None = None
        self._holder: Holder = (address, "")
        self.address = address
        self.request_id = request_id

    def arrive(self) -> None:
        """Come in, with nobody knowing yet who it is."""
        self._traffic.refuse_late()
        self._move(self._traffic.arriving, self._holder)
        self._traffic.join(self)

    def enter(self, caller: Principal) -> None:
        """Run for a caller who is known; Overloaded where there is no place for them."""
        self._move(self._traffic.running, work_for(caller.tenant, caller.user))

    def enter_unknown(self, *, sign_in: bool = False) -> None:
        """Run for whoever it is; Overloaded where there is no place for that."""
        if sign_in:
            self._traffic.sign_in_rate.take(self.address)
        self._move(self._traffic.sign_ins if sign_in else self._traffic.anonymous, self._holder)

    def leave(self) -> None:
        """It has ended."""
        if self._places is not None:
            self._places.give(self._holder)
            self._places = None
        self._traffic.leave(self)

    def stay(self, seconds: float | None) -> None:
        """Last so long from now on, or as long as it takes; it keeps no other from running."""
        self._last(self._traffic.waiting, seconds)

    def listen(self) -> None:
        """Last as long as it likes, as a stream."""
        self._last(self._traffic.streams, None)

    @contextmanager
    def lasting(self, seconds: float) -> Generator[None]:
        """Let what is not done in a moment last so long, if there is a place for it; what is quick needs none."""
        timer = asyncio.get_running_loop().call_later(QUICK, self._stay, seconds)
        try:
            yield
        finally:
            timer.cancel()

    @contextmanager
    def socket(self) -> Generator[None]:
        """Become a socket, or be refused."""
        self._traffic.refuse_late()
        self._last(self._traffic.sockets, None)
        self._traffic.leave(self)  # sockets are closed when the server stops
        try:
            yield
        finally:
            self.leave()

    def cut(self) -> None:
        """End it now; it is answered with an error."""
        with suppress(RuntimeError):  # one that has ended is only being answered
            self._request.reschedule(asyncio.get_running_loop().time())

    @property
    def sockets(self) -> int:
        """How many sockets are open."""
        return self._traffic.sockets.taken

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the server stops."""
        return self._traffic.stopping

    def _stay(self, seconds: float) -> None:
        with suppress(Overloaded, RuntimeError):  # then it has the time that any request has, or is being ended
            self.stay(seconds)

    def _last(self, places: Shares, seconds: float | None) -> None:
        self._move(places, self._holder, retry_after=LATER)
        self._request.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    def _move(self, places: Shares, holder: Holder, *, retry_after: float = 1.0) -> None:
        """Take another place, and give up the one before."""
        if places is self._places:
            return
        places.take(holder, retry_after=retry_after)
        if self._places is not None:
            self._places.give(self._holder)
        self._places, self._holder = places, holder


class Rate:
    """How often a minute something may be done from one address; after a pause, as often at once."""

    def __init__(self, per_minute: int, *, setting: str, clock: Callable[[], float] = monotonic) -> None:
        self._per_minute = per_minute
        self._setting = setting
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how many, and when that was

    def take(self, address: str) -> None:
        """Count it, or raise Overloaded."""
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
