"""Rate limits: admits or refuses calls by the limits of one tenant, from memory.

The limits of a call are looked up once for each caller and tool. The tokens and slots of this process are renewed in
the background, many in one statement. Only a call that finds nothing leased waits for such a statement, together with
all others that do; it does not wait for what only the background asks. If the database is away, calls are admitted as
long as the leased tokens last, and then fail.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from contextvars import Context
from datetime import timedelta
from time import monotonic
from uuid import UUID
from weakref import WeakValueDictionary

from holdfast.core.background import end_task
from holdfast.core.errors import HoldfastError, ShuttingDown, Unavailable
from holdfast.core.ids import uuid7
from holdfast.core.text import dumps
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements
from holdfast.quotas.leased_buckets import Ask, LeasedBucket, SlotBucket, TokenBucket
from holdfast.quotas.limit import UsageLimit
from holdfast.quotas.limit_index import Subject
from holdfast.quotas.tenant_limits import TenantLimits

REMEMBERED = 10_000  # callers and tools whose limits are cached
GATHER = 0.02  # seconds for which background asks are collected, so that many subjects share a statement
TOGETHER = 100  # buckets per statement: their rows are locked until it ends
ATTEMPTS = 10  # statements that one call waits for at most

sql = statements(__name__)
log = logging.getLogger(__name__)

Caller = tuple[str | None, str | None, UUID | None, str | None]  # user, agent, key, tool


class AdmittedCall:
    """A call that was admitted. `end` it, or `undo` it if it was not made after all."""

    __slots__ = ("_buckets",)

    def __init__(self, buckets: Sequence[LeasedBucket]) -> None:
        self._buckets = buckets

    def end(self) -> None:
        """Free the slots of the call."""
        for bucket in self._buckets:
            bucket.release()

    def undo(self) -> None:
        """Give back what the call took."""
        for bucket in self._buckets:
            bucket.give_back()


UNLIMITED = AdmittedCall(())


class TenantRateLimits:
    """The leased tokens and slots of one tenant in this process."""

    def __init__(self, database: Database, limits: TenantLimits, *, lease: float) -> None:
        self.refusals: Counter[str] = Counter()  # by name of the limit
        self._database = database
        self._limits = limits
        self._lease = lease
        self._process = uuid7()
        self._revision = -1
        self._resolved: OrderedDict[Caller, tuple[LeasedBucket, ...]] = OrderedDict()
        self._known: WeakValueDictionary[tuple[UUID, str], LeasedBucket] = WeakValueDictionary()
        self._active: set[LeasedBucket] = set()  # with something leased, or with calls that wait
        self._awaited: set[LeasedBucket] = set()  # to be asked now, because calls wait
        self._due: set[LeasedBucket] = set()  # to be asked in the background
        self._is_warned = False  # that leases cannot be renewed
        self._exchange: asyncio.Task[None] | None = None
        self._urgent = asyncio.Event()
        self._answered: asyncio.Future[None] | None = None

    @property
    def leased(self) -> Collection[LeasedBucket]:
        """The buckets of which this process holds something, and those for which calls wait."""
        return self._active

    def try_admit(self, caller: Caller) -> AdmittedCall | None:
        """Admit a call, or raise RateLimited. Return None if it has to wait: then call `admit`."""
        return self._try_admit(caller) if self._limits.is_fresh() else None

    def _try_admit(self, caller: Caller) -> AdmittedCall | None:
        if self._revision != self._limits.revision:
            self._forget_resolved()
        buckets = self._resolved.get(caller)
        if buckets is None:
            buckets = self._resolve(caller)
        if not buckets:
            return UNLIMITED
        now = monotonic()
        for bucket in buckets:
            if not bucket.has_room(now):
                return self._without_room(buckets, now)
        for bucket in buckets:
            bucket.take(now)
        return AdmittedCall(buckets)

    async def admit(self, caller: Caller) -> AdmittedCall:
        """Admit a call, or raise RateLimited. Wait for the rows if nothing is leased."""
        lacking: list[LeasedBucket] = []
        for _ in range(ATTEMPTS):
            await self._limits.refresh()  # however long it takes, these are the newest limits there are
            began = monotonic()
            admission = self._try_admit(caller)
            if admission is not None:
                return admission
            lacking = self._lacking(caller)
            if lacking:
                await self._wait(lacking)
                self._refuse(bucket for bucket in lacking if bucket.refused_at >= began and not bucket.has_room(began))
        self._refuse(lacking)  # others were always faster
        raise Unavailable("this call was not admitted", why="others were always faster", next="Try again.")

    def tend(self) -> None:
        """Start to renew leases, and to give back what is not used. Does not wait."""
        now = monotonic()
        self._due.update(bucket for bucket in self._active if now >= bucket.quiet_until)
        if self._due:
            self._start()

    async def close(self) -> None:
        """Give everything back."""
        if self._exchange is not None:
            await end_task(self._exchange)
        _end(self._answered)
        asks = [(bucket, ask) for bucket in self._active if (ask := bucket.last_ask()) is not None]
        self._active.clear()
        try:
            for start in range(0, len(asks), TOGETHER):
                await self._send(asks[start : start + TOGETHER])
        except HoldfastError as error:
            log.info("could not give back what was leased of limits; it comes back by itself: %s", error)

    def _without_room(self, buckets: Iterable[LeasedBucket], now: float) -> None:
        """Raise the refusal of the limit that lasts longest, if any is known to have nothing."""
        self._refuse(bucket for bucket in buckets if now < bucket.refused_until and not bucket.has_room(now))

    def _refuse(self, empty: Iterable[LeasedBucket]) -> None:
        """Raise the refusal of the bucket that is empty for the longest time, if there is one."""
        bucket = max(empty, key=lambda bucket: bucket.retry_at, default=None)
        if bucket is not None:
            self.refusals[bucket.limit.name] += 1
            raise bucket.refusal(monotonic())

    def _lacking(self, caller: Caller) -> list[LeasedBucket]:
        now = monotonic()
        return [bucket for bucket in self._resolved.get(caller, ()) if not bucket.has_room(now)]

    async def _wait(self, buckets: Sequence[LeasedBucket]) -> None:
        """Wait for the next answer of the rows."""
        for bucket in buckets:
            bucket.waiting += 1
            self._active.add(bucket)
            self._awaited.add(bucket)
        try:
            if self._answered is None:
                self._answered = asyncio.get_running_loop().create_future()
                self._answered.add_done_callback(_retrieve)
            answered = self._answered
            now = monotonic()
            if all(now >= bucket.ask_after for bucket in buckets):
                self._urgent.set()
            self._start()
            await asyncio.shield(answered)
        finally:
            for bucket in buckets:
                bucket.waiting -= 1

    def _forget_resolved(self) -> None:
        """Look up all limits anew, because some have changed. What is leased stays."""
        self._revision = self._limits.revision
        self._resolved.clear()
        limits = self._limits.index.limits
        for (id, _), bucket in list(self._known.items()):
            limit = limits.get(id)
            if limit is not None and limit is not bucket.limit:
                bucket.renew(limit)

    def _resolve(self, caller: Caller) -> tuple[LeasedBucket, ...]:
        user, agent, key, tool = caller
        found = self._limits.index.limits_of(user=user, agent=agent, key=None if key is None else str(key), tool=tool)
        buckets = tuple(
            self._bucket(limit, subject) for limit, subject in found if limit.measure in ("requests", "concurrency")
        )
        self._resolved[caller] = buckets
        if len(self._resolved) > REMEMBERED:
            self._resolved.popitem(last=False)
        return buckets

    def _bucket(self, limit: UsageLimit, subject: Subject) -> LeasedBucket:
        made: LeasedBucket
        if limit.measure == "concurrency":
            made = SlotBucket(limit, subject, self._ask_soon, lease=self._lease)
        else:
            made = TokenBucket(limit, subject, self._ask_soon)
        return self._known.setdefault((limit.id, made.subject_key), made)

    # The rows

    def _ask_soon(self, bucket: LeasedBucket) -> None:
        bucket.is_asked = True
        self._due.add(bucket)
        self._start()

    def _start(self) -> None:
        if self._exchange is None:
            # An empty context: the task works for all callers, not only for the one that starts it.
            self._exchange = asyncio.create_task(self._run(), name="holdfast limits", context=Context())

    async def _run(self) -> None:
        """Ask the rows until no bucket is due. All calls that wait share an answer."""
        try:
            while self._awaited or self._due:
                if not self._urgent.is_set():
                    await self._gather()
                self._urgent.clear()
                answered, self._answered = self._answered, None
                try:
                    await self._ask(self._next_due())
                except Exception as error:  # noqa: BLE001 - those who wait get it, or the log
                    self._on_failure(error, answered)
                else:
                    if answered is not None:
                        answered.set_result(None)
                finally:
                    _end(answered)
        finally:
            self._exchange = None

    def _next_due(self) -> Iterable[LeasedBucket]:
        """Return all buckets for which calls wait, and of the others so many that these calls do not wait for them."""
        due, self._awaited = self._awaited, set()
        while self._due and len(due) < TOGETHER:
            due.add(self._due.pop())
        return due

    def _on_failure(self, error: Exception, answered: "asyncio.Future[None] | None") -> None:
        if answered is not None:
            answered.set_exception(error)
        elif not isinstance(error, HoldfastError):
            log.error("internal error: could not renew leases of limits", exc_info=error)
        elif not self._is_warned:
            self._is_warned = True
            log.warning("could not renew leases of limits; trying again: %s", error)

    async def _gather(self) -> None:
        """Wait for more buckets that are due, but not if a call waits."""
        if len(self._due) >= TOGETHER:
            await asyncio.sleep(0)  # other tasks come in between
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER):
                await self._urgent.wait()

    async def _ask(self, due: Iterable[LeasedBucket]) -> None:
        now = monotonic()
        asks: list[tuple[LeasedBucket, Ask]] = []
        for bucket in due:
            bucket.is_asked = False
            ask = bucket.ask(now)
            if ask is not None:
                asks.append((bucket, ask))
            elif bucket.is_empty and not bucket.waiting:
                self._active.discard(bucket)
        for start in range(0, len(asks), TOGETHER):
            await self._send(asks[start : start + TOGETHER])

    async def _send(self, asks: Sequence[tuple[LeasedBucket, Ask]]) -> None:
        asked_at, limits = monotonic(), [bucket.limit for bucket, _ in asks]
        given = dumps([bucket.describe(ask, place) for place, (bucket, ask) in enumerate(asks)])
        rows = await self._database.all(sql("lease_limits"), self._process, timedelta(seconds=self._lease), given)
        self._is_warned = False
        now = monotonic()
        for row in rows:
            place: int = row["place"]
            bucket, ask = asks[place]
            bucket.receive(ask, row["granted"], row["retry_after"], asked_at, now)
            if bucket.limit is not limits[place]:  # it was changed meanwhile
                bucket.renew(bucket.limit)
            if bucket.is_empty and not bucket.waiting:
                self._active.discard(bucket)
            else:
                self._active.add(bucket)


def _end(answered: "asyncio.Future[None] | None") -> None:
    """Refuse the calls that still wait when the process ends."""
    if answered is not None and not answered.done():
        answered.set_exception(ShuttingDown("the engine is closing", next="Try again when it is back."))


def _retrieve(answered: "asyncio.Future[None]") -> None:
    if not answered.cancelled():
        answered.exception()  # retrieved, so that asyncio does not warn if nobody waits any more
