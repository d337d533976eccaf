"""Shares: a number of places, shared so that no tenant and no user can take them all.

A holder is a tenant and one of its users (or an address, for callers who are not known yet). There are no quotas to
set up: how much a holder may take depends on what is left. A tenant that is alone gets `tenant_share` of all places,
and a user who is alone in it `user_share` of that; when others come, each gets less, and some places always stay free
for the next. Who has to wait gets a place in turn: tenant after tenant, and within a tenant user after user.
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
SHOWN = 200  # characters of a user's name
NOTHING = 1e-9  # less room than this is none: fractions are not exact

Item = TypeVar("Item")

_current: ContextVar[Holder] = ContextVar("holdfast_holder", default=NOBODY)


def work_for(tenant: object, user: str | None) -> Holder:
    """Count what this task takes from now on, and the tasks that it starts, as this user's."""
    holder = (str(tenant), user or "")
    _current.set(holder)
    return holder


def current_holder() -> Holder:
    """Whom this task works for."""
    return _current.get()


def room(share: float, free: float, held: int) -> float:
    """How many more places somebody may take who holds `held` of them, while `free` are free.

    With a share of 0.9 they may hold nine times as many as are left: alone nine tenths of all, among two greedy ones
    nine nineteenths each, and the rest stays free.
    """
    return share * free - (1 - share) * held


class FairQueue(Generic[Item]):
    """What waits, in turn: tenant after tenant, within a tenant user after user, each in the order of asking."""

    def __init__(self) -> None:
        self._tenants: OrderedDict[str, OrderedDict[str, deque[Item]]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, holder: Holder, item: Item) -> None:
        """Put something at the end of its holder's line."""
        tenant, user = holder
        self._tenants.setdefault(tenant, OrderedDict()).setdefault(user, deque()).append(item)
        self._size += 1

    def remove(self, holder: Holder, item: Item) -> None:
        """Take something out that waits no longer, if it is still there."""
        users = self._tenants.get(holder[0])
        line = None if users is None else users.get(holder[1])
        if line is not None and item in line:
            line.remove(item)
            self._size -= 1
            self._tidy(holder)

    def pop(self, may: Callable[[Holder], bool] = lambda _: True) -> tuple[Holder, Item] | None:
        """The next whose holder may have a turn; its tenant and its user go to the end of their lines."""
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
    """So many places of one kind."""

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
        self.taken = 0
        self._setting = setting
        self._tenant_share = tenant_share
        self._user_share = user_share
        self._of = "address" if by_address else "tenant"  # what the first name of a holder is
        self._by_tenant: dict[str, int] = {}
        self._by_user: dict[Holder, int] = {}
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()
        self.on_free: list[Callable[[], None]] = []  # called when a place was given back

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._waiting)

    @property
    def most_of_user(self) -> int:
        """How many a user may hold who is alone."""
        return max(1, math.ceil(self._user_share * self._tenant_share * self.total - NOTHING))

    def held(self, holder: Holder) -> int:
        """How many a holder has."""
        return self._by_user.get(holder, 0)

    def offers(self, holder: Holder) -> bool:
        """Whether there is a place for a holder now."""
        left = room(self._tenant_share, self.total - self.taken, self._by_tenant.get(holder[0], 0))
        if left <= NOTHING:
            return False
        by_user = self._by_user.get(holder, 0)
        # Who holds nothing gets one of those that their tenant may still take.
        return not by_user or room(self._user_share, left, by_user) > NOTHING

    def room_of_tenant(self, tenant: str) -> int:
        """How many more places a tenant may take now, whoever of its users takes them."""
        left = room(self._tenant_share, self.total - self.taken, self._by_tenant.get(tenant, 0))
        return max(0, math.ceil(left - NOTHING))

    def try_take(self, holder: Holder) -> bool:
        """Take a place, if there is one for this holder."""
        # As `offers` and `add`, without their calls: every request and every call of a tool takes several places.
        tenant_share, user_share, tenant = self._tenant_share, self._user_share, holder[0]
        by_tenant, by_user = self._by_tenant.get(tenant, 0), self._by_user.get(holder, 0)
        left = tenant_share * (self.total - self.taken) - (1 - tenant_share) * by_tenant
        if left <= NOTHING or (by_user and user_share * left - (1 - user_share) * by_user <= NOTHING):
            return False
        self.taken += 1
        self._by_tenant[tenant] = by_tenant + 1
        self._by_user[holder] = by_user + 1
        return True

    def take(self, holder: Holder, *, retry_after: float = RETRY_AFTER) -> None:
        """Take a place, or raise Overloaded, which says what was reached and which setting raises it."""
        if not self.try_take(holder):
            raise self.refusal(holder, retry_after=retry_after)

    async def wait(self, holder: Holder, timeout: float | None = None) -> None:
        """Take a place as soon as it is this holder's turn; Overloaded when that takes too long."""
        if self.try_take(holder):
            return
        refusal = self.refusal(holder, waited=timeout)  # as it is now: when the time is over, another may be the reason
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(holder, turn)
        try:
            async with asyncio.timeout(timeout):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give(holder)  # it was our turn, and we cannot take it
            if isinstance(error, asyncio.CancelledError):
                raise
            raise refusal from None
        finally:
            self._waiting.remove(holder, turn)

    def add(self, holder: Holder, count: int = 1) -> None:
        """Count places as taken, whether there were any or not."""
        self.taken += count
        self._by_tenant[holder[0]] = self._by_tenant.get(holder[0], 0) + count
        self._by_user[holder] = self._by_user.get(holder, 0) + count

    def give(self, holder: Holder, count: int = 1) -> None:
        """Give places back: to those who wait for one, in turn."""
        self.taken -= count
        _subtract(self._by_tenant, holder[0], count)
        _subtract(self._by_user, holder, count)
        while self._waiting and (found := self._waiting.pop(self.offers)) is not None:
            next_holder, turn = found
            if not turn.done():
                self.add(next_holder)
                turn.set_result(None)
        for told in self.on_free:
            told()

    def hold(self, holder: Holder | None = None, *, timeout: float | None = None) -> "_Hold":
        """Have a place as long as this lasts; without a holder, for whom this task works."""
        return _Hold(self, _current.get() if holder is None else holder, timeout)

    def fail(self, error: HoldfastError) -> None:
        """Have all who wait fail."""
        while (found := self._waiting.pop()) is not None:
            if not found[1].done():
                found[1].set_exception(error)

    def refusal(self, holder: Holder, *, retry_after: float = RETRY_AFTER, waited: float | None = None) -> Overloaded:
        """What a holder is told for whom there is no place."""
        tenant, user = holder
        by_tenant, by_user = self._by_tenant.get(tenant, 0), self._by_user.get(holder, 0)
        if self.taken >= self.total:
            scope, setting, what = "all", self._setting, f"all {self.what} are taken"
            why = f"there are {self.total}"
        elif room(self._tenant_share, self.total - self.taken, by_tenant) <= NOTHING:
            scope, setting = self._of, f"limits.{self._of}_share"
            what = f"the {scope} has its share of the {self.what}"
            why = f"it has {by_tenant} of {self.total}, and the rest is kept for others"
        else:
            scope, setting, what = "user", "limits.user_share", f"the user has their share of the {self.what}"
            why = f"{user[:SHOWN]!r} has {by_user} of {self.total}, and the rest is kept for others"
        if waited is not None:
            why += f"; none came free within {waited:.3g} seconds"
        raised = setting if scope == "all" else f"{setting} or {self._setting}"
        return Overloaded(
            what,
            why=why,
            next=f"Try again in {retry_after:g} seconds, or raise {raised}.",
            retry_after=retry_after,
            limit=self.what,
            scope=scope,
            setting=setting,
        )


class _Hold:
    """A place, for as long as the block lasts; a class, since a generator takes three times as long."""

    __slots__ = ("_holder", "_shares", "_timeout")

    def __init__(self, shares: Shares, holder: Holder, timeout: float | None) -> None:
        self._shares = shares
        self._holder = holder
        self._timeout = timeout

    async def __aenter__(self) -> None:
        if not self._shares.try_take(self._holder):
            await self._shares.wait(self._holder, self._timeout)

    async def __aexit__(self, *_: object) -> None:
        self._shares.give(self._holder)


def shared_by_tenant(limits: LimitSettings, what: str, total: int, *, setting: str) -> Shares:
    """Places that are shared as the settings say."""
    return Shares(what, total, setting=setting, tenant_share=limits.tenant_share, user_share=limits.user_share)


def shared_by_address(limits: LimitSettings, what: str, total: int, *, setting: str) -> Shares:
    """Places for callers who are not known, shared by the addresses that they call from."""
    return Shares(what, total, setting=setting, tenant_share=limits.address_share, by_address=True)


def _subtract(counts: "dict[Item, int]", key: Item, count: int) -> None:
    left = counts.get(key, 0) - count  # none were held where somebody held nothing at all
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)
