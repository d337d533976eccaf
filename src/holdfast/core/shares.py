"""Shares: a limited number of places of which no tenant and no user can take all.

A holder is a tenant and one of its users (or an address, before authentication). There are no quotas to configure: how
many places a holder can take depends on how many are free. A single tenant can take `tenant_share` of all places, and a
single user in it `user_share` of these. With more tenants or users, each gets less, and some places stay free for new
ones. The queue is fair: places go to one tenant after the other, and within a tenant to one user after the other.
"""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Generic, TypeVar

from holdfast.core.errors import HoldfastError, Overloaded
from holdfast.core.limits import LimitSettings

Holder = tuple[str, str]  # a tenant, and one of its users
NOBODY: Holder = ("", "")
RETRY_AFTER = 1.0  # seconds
SHOWN = 200  # characters of a user's name in an error
NOTHING = 1e-9  # tolerance: less room than this counts as none

Item = TypeVar("Item")

_current: ContextVar[Holder] = ContextVar("holdfast_holder", default=NOBODY)


def set_holder(tenant: object, user: str | None) -> Holder:
    """Set the holder of this task and of the tasks that it starts."""
    holder = (str(tenant), user or "")
    _current.set(holder)
    return holder


def current_holder() -> Holder:
    """Return the holder of this task."""
    return _current.get()


def room(share: float, free: float, held: int) -> float:
    """Return how many more places a holder of `held` places can take while `free` places are free.

    With a share of 0.9, a holder can have at most nine times as many places as are left: a single one 9/10 of all, two
    that take all they can 9/19 each. The rest stays free.
    """
    return share * free - (1 - share) * held


class FairQueue(Generic[Item]):
    """A fair queue: one tenant after the other, in it one user after the other, for each user first in, first out."""

    def __init__(self) -> None:
        self._tenants: OrderedDict[str, OrderedDict[str, deque[Item]]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, holder: Holder, item: Item) -> None:
        """Add an item at the end of the holder's queue."""
        tenant, user = holder
        self._tenants.setdefault(tenant, OrderedDict()).setdefault(user, deque()).append(item)
        self._size += 1

    def remove(self, holder: Holder, item: Item) -> None:
        """Remove an item, if it is still queued."""
        users = self._tenants.get(holder[0])
        queue = None if users is None else users.get(holder[1])
        if queue is not None and item in queue:
            queue.remove(item)
            self._size -= 1
            self._tidy(holder)

    def pop(self, may: Callable[[Holder], bool] = lambda _: True) -> tuple[Holder, Item] | None:
        """Remove and return the next item whose holder `may` accepts. Its tenant and user move to the end."""
        for tenant, users in self._tenants.items():
            user = next((user for user in users if may((tenant, user))), None)
            if user is not None:
                item = users[user].popleft()
                self._size -= 1
                self._tenants.move_to_end(tenant)
                users.move_to_end(user)
                self._tidy((tenant, user))
                return (tenant, user), item
        return None

    def _tidy(self, holder: Holder) -> None:
        tenant, user = holder
        users = self._tenants[tenant]
        if not users[user]:
            del users[user]
            if not users:
                del self._tenants[tenant]


class Shares:
    """A limited number of places of one kind."""

    def __init__(
        self,
        what: str,
        total: int,
        *,
        setting: str,
        tenant_share: float = 1.0,
        user_share: float = 1.0,
        by_address: bool = False,
    ) -> None:
        self.what = what
        self.total = total
        self.in_use = 0
        self._setting = setting
        self._tenant_share = tenant_share
        self._user_share = user_share
        self._of = "address" if by_address else "tenant"  # the meaning of the first part of a holder
        self._by_tenant: dict[str, int] = {}
        self._by_user: dict[Holder, int] = {}
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()
        self.on_free: list[Callable[[], None]] = []  # called when a place is released

    @property
    def waiting(self) -> int:
        """The number of callers in the queue."""
        return len(self._waiting)

    @property
    def max_per_user(self) -> int:
        """The maximum number of places of a single user."""
        return max(1, math.ceil(self._user_share * self._tenant_share * self.total - NOTHING))

    def count(self, holder: Holder) -> int:
        """Return the number of places of a holder."""
        return self._by_user.get(holder, 0)

    def can_acquire(self, holder: Holder) -> bool:
        """Whether a holder can take a place now."""
        left = room(self._tenant_share, self.total - self.in_use, self._by_tenant.get(holder[0], 0))
        if left <= NOTHING:
            return False
        by_user = self._by_user.get(holder, 0)
        # A user without places gets one if the tenant can still take one.
        return not by_user or room(self._user_share, left, by_user) > NOTHING

    def room_for_tenant(self, tenant: str) -> int:
        """Return how many more places a tenant can take now, for all its users together."""
        left = room(self._tenant_share, self.total - self.in_use, self._by_tenant.get(tenant, 0))
        return max(0, math.ceil(left - NOTHING))

    def try_acquire(self, holder: Holder) -> bool:
        """Take a place if the holder can; return whether it did."""
        # `can_acquire` and `add` inlined, for speed: every request and every tool call takes several places.
        tenant_share, user_share, tenant = self._tenant_share, self._user_share, holder[0]
        by_tenant, by_user = self._by_tenant.get(tenant, 0), self._by_user.get(holder, 0)
        left = tenant_share * (self.total - self.in_use) - (1 - tenant_share) * by_tenant
        if left <= NOTHING or (by_user and user_share * left - (1 - user_share) * by_user <= NOTHING):
            return False
        self.in_use += 1
        self._by_tenant[tenant] = by_tenant + 1
        self._by_user[holder] = by_user + 1
        return True

    def acquire(self, holder: Holder, *, retry_after: float = RETRY_AFTER) -> None:
        """Take a place, or raise Overloaded, which names the limit and the setting that raises it."""
        if not self.try_acquire(holder):
            raise self.refusal(holder, retry_after=retry_after)

    async def wait(self, holder: Holder, timeout: float | None = None) -> None:
        """Wait in the queue for a place. Raises Overloaded after `timeout` seconds."""
        if self.try_acquire(holder):
            return
        refusal = self.refusal(holder, waited=timeout)  # made now: after the timeout the reason may be another one
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(holder, turn)
        try:
            async with asyncio.timeout(timeout):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release(holder)  # the place was assigned, but the caller no longer waits
            if isinstance(error, asyncio.CancelledError):
                raise
            raise refusal from None
        finally:
            self._waiting.remove(holder, turn)

    def add(self, holder: Holder, count: int = 1) -> None:
        """Count places as taken, even if none are free."""
        self.in_use += count
        self._by_tenant[holder[0]] = self._by_tenant.get(holder[0], 0) + count
        self._by_user[holder] = self._by_user.get(holder, 0) + count

    def release(self, holder: Holder, count: int = 1) -> None:
        """Release places, and assign them to the queue."""
        self.in_use -= count
        _subtract(self._by_tenant, holder[0], count)
        _subtract(self._by_user, holder, count)
        while self._waiting and (found := self._waiting.pop(self.can_acquire)) is not None:
            next_holder, turn = found
            if not turn.done():
                self.add(next_holder)
                turn.set_result(None)
        for callback in self.on_free:
            callback()

    def hold(self, holder: Holder | None = None, *, timeout: float | None = None) -> "_Hold":
        """Hold a place for an `async with` block; by default for the holder of this task."""
        return _Hold(self, _current.get() if holder is None else holder, timeout)

    def fail(self, error: HoldfastError) -> None:
        """Raise an error in all callers in the queue."""
        while (found := self._waiting.pop()) is not None:
            if not found[1].done():
                found[1].set_exception(error)

    def refusal(self, holder: Holder, *, retry_after: float = RETRY_AFTER, waited: float | None = None) -> Overloaded:
        """Return the error for a holder that gets no place."""
        tenant, user = holder
        by_tenant, by_user = self._by_tenant.get(tenant, 0), self._by_user.get(holder, 0)
        if self.in_use >= self.total:
            scope, setting, what = "all", self._setting, f"all {self.what} are in use"
            why = f"the limit is {self.total}"
        elif room(self._tenant_share, self.total - self.in_use, by_tenant) <= NOTHING:
            scope, setting = self._of, f"limits.{self._of}_share"
            what = f"the {scope} has used its share of the {self.what}"
            why = f"it has {by_tenant} of {self.total}; the rest is reserved for others"
        else:
            scope, setting, what = "user", "limits.user_share", f"the user has used their share of the {self.what}"
            why = f"{user[:SHOWN]!r} has {by_user} of {self.total}; the rest is reserved for others"
        if waited is not None:
            why += f"; none was released within {waited:.3g} seconds"
        setting_names = setting if scope == "all" else f"{setting} or {self._setting}"
        return Overloaded(
            what,
            why=why,
            next=f"Try again in {retry_after:g} seconds, or raise {setting_names}.",
            retry_after=retry_after,
            limit=self.what,
            scope=scope,
            setting=setting,
        )


class _Hold:
    """Holds a place for a block. It is a class because a generator takes three times as long."""

    __slots__ = ("_holder", "_shares", "_timeout")

    def __init__(self, shares: Shares, holder: Holder, timeout: float | None) -> None:
        self._shares = shares
        self._holder = holder
        self._timeout = timeout

    async def __aenter__(self) -> None:
        if not self._shares.try_acquire(self._holder):
            await self._shares.wait(self._holder, self._timeout)

    async def __aexit__(self, *_: object) -> None:
        self._shares.release(self._holder)


def shared_by_tenant(limits: LimitSettings, what: str, total: int, *, setting: str) -> Shares:
    """Return places that tenants and users share by the settings."""
    return Shares(what, total, setting=setting, tenant_share=limits.tenant_share, user_share=limits.user_share)


def shared_by_address(limits: LimitSettings, what: str, total: int, *, setting: str) -> Shares:
    """Return places for callers before authentication, which their addresses share."""
    return Shares(what, total, setting=setting, tenant_share=limits.address_share, by_address=True)


def _subtract(counts: "dict[Item, int]", key: Item, count: int) -> None:
    left = counts.get(key, 0) - count  # missing: the holder had none
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)
