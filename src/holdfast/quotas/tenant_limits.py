"""The limits of one tenant: those of the settings and stored ones, cached in memory.

Each change has a revision. Twice a second, the next call reads the changes since the last one, in the background, so
that a change takes effect in every process within a second. Only after a pause without calls, a call waits for it.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextvars import Context
from datetime import datetime
from time import monotonic
from typing import cast
from uuid import UUID

import msgspec

from holdfast.core.errors import Forbidden, HoldfastError, InvalidInput, NotFound
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.quotas.limit import UsageLimit, name_of, parse_limit
from holdfast.quotas.limit_index import LimitIndex

FRESH = 0.4  # seconds after which the changes are read again, while calls use the cached limits
STALE = 0.9  # seconds after which calls wait for them
MOST_BEHIND = 1800.0  # seconds since the last look after which removed limits may be forgotten; then all are read
PAGE = 1000  # limits per statement
MOST = 20_000  # stored limits of a tenant: each process has them in memory

sql = statements(__name__)
log = logging.getLogger(__name__)


class StoredLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of a tenant. `origin`: the settings, the operator for this tenant, or an admin of the tenant."""

    id: UUID
    name: str
    rule: str
    origin: str
    scopes: list[str]
    measure: str
    amount: float
    window: str | None
    burst: float | None
    warn: float | None
    updated_by: str | None = None
    updated_at: datetime | None = None


class TenantLimits:
    """Caches and changes the limits of one tenant. `defaults` are those of the settings."""

    def __init__(self, database: Database, defaults: Sequence[UsageLimit]) -> None:
        self.revision = 0  # grows with every change that is read
        self.index = LimitIndex(defaults)
        self._database = database
        self._defaults = defaults
        self._changes: dict[UUID, tuple[str, datetime]] = {}  # by whom and when each was set
        self._seen = 0  # the revision of the database
        self._checked = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._is_warned = False  # that the limits cannot be read

    def is_fresh(self) -> bool:
        """Whether the cached limits can be used. Reads changes in the background if they may be due."""
        age = monotonic() - self._checked
        if age > FRESH and age <= STALE and self._reading is None:
            self._start()
        return age <= STALE

    async def refresh(self) -> None:
        """Wait until the cached limits can be used. Concurrent callers share one read."""
        if not self.is_fresh():
            await asyncio.shield(self._reading or self._start())

    async def list(self) -> Sequence[StoredLimit]:
        """List the limits of the tenant, by name."""
        await self._read()
        found = [self._describe(limit) for limit in self.index.limits.values()]
        return sorted(found, key=lambda limit: (limit.name, limit.origin))

    async def set(self, rule: str, *, by: str, as_operator: bool = False) -> StoredLimit:
        """Set a limit. It replaces the one with the same name, which differs at most in its numbers.

        The limits of an operator for the tenant are set `as_operator`. A limit of the tenant applies in addition.
        """
        limit = parse_limit(rule, by_operator=as_operator)
        if not await self._store(limit.id, limit.rule, by=by, as_operator=as_operator):
            raise InvalidInput(
                "the limit was not set",
                why=f"the tenant has {MOST:,} limits, and no more are allowed",
                next="Remove some. A limit for `each user` gives every user an amount of their own.",
            )
        await self._read()
        return self._describe(self.index.limits.get(limit.id, limit))

    async def remove(self, name: str, *, by: str, as_operator: bool = False) -> None:
        """Remove a limit by its name or its whole text."""
        sought = name_of(name)
        await self._read()
        found = [limit for limit in self.index.limits.values() if limit.name == sought]
        own = next((limit for limit in found if limit.by_operator == as_operator), None)
        if own is None and found:
            raise Forbidden(
                f"the limit {sought!r:.200} cannot be removed",
                why="the operator has set it" if not as_operator else "an admin of the tenant has set it",
                next="Ask the operator." if not as_operator else "Leave out that you act as the operator.",
            )
        if own is None:
            raise NotFound(f"there is no limit {sought!r:.200}", next="`holdfast limits ls` lists them.")
        if self.index.is_default(own):
            raise InvalidInput(
                f"the limit {sought!r:.200} cannot be removed",
                why="it is one of the settings, `quotas.limits`",
                next="Set a higher one for this tenant as the operator, or change the settings.",
            )
        await self._store(own.id, None, by=by, as_operator=as_operator)
        await self._read()

    async def _store(self, id: UUID, rule: str | None, *, by: str, as_operator: bool) -> bool:
        """Store a limit, or remove it. Return whether that was possible."""
        stored = None if rule is None else store(rule)
        return cast(bool, await self._database.value(sql("set_limit"), id, as_operator, stored, store(by), MOST))

    # Reading

    async def _read(self) -> None:
        """Read the changes now, after those that are being read."""
        if self._reading is not None:
            await asyncio.wait([self._reading])
        await asyncio.shield(self._reading or self._start())

    def _start(self) -> "asyncio.Task[None]":
        # An empty context: the task works for all callers, not only for the one that starts it.
        self._reading = asyncio.create_task(self._renew(), name="holdfast limits of a tenant", context=Context())
        self._reading.add_done_callback(self._on_read)
        return self._reading

    def _on_read(self, reading: "asyncio.Task[None]") -> None:
        self._reading = None
        error = None if reading.cancelled() else reading.exception()
        if error is not None and not self._is_warned:
            log.warning("could not read the limits of a tenant; its next calls try again: %s", error)
        self._is_warned = error is not None

    async def _renew(self) -> None:
        began = monotonic()
        is_whole, present, changed = began - self._checked > MOST_BEHIND, set[UUID](), False
        if is_whole:
            self._seen = 0
        while True:
            rows = await self._database.all(sql("changed_limits"), self._seen, PAGE)
            for row in rows:
                self._apply(row)
                present.add(row["id"])
                self._seen, changed = row["revision"], True
            if len(rows) < PAGE:
                break
        if is_whole:
            for id in [id for id in self._changes if id not in present]:
                self._forget(id)
                changed = True
        if changed:
            self.revision += 1
        self._checked = began

    def _apply(self, row: Row) -> None:
        if row["rule"] is None:
            self._forget(row["id"])
            return
        try:
            limit = parse_limit(restore(row["rule"]), by_operator=row["by_operator"])
        except HoldfastError as error:  # a newer release wrote it
            log.warning("a limit of a tenant is ignored: %s", error)
            return
        self.index.set(limit)
        self._changes[limit.id] = (restore(row["update_user"]), row["update_ts"])

    def _forget(self, id: UUID) -> None:
        self._changes.pop(id, None)
        self.index.remove(id)

    def _describe(self, limit: UsageLimit) -> StoredLimit:
        by, at = self._changes.get(limit.id, (None, None))
        origin = "settings" if self.index.is_default(limit) else "operator" if limit.by_operator else "tenant"
        return StoredLimit(
            id=limit.id,
            name=limit.name,
            rule=limit.rule,
            origin=origin,
            scopes=[*limit.scopes],
            measure=limit.measure,
            amount=limit.amount,
            window=limit.window,
            burst=limit.burst,
            warn=limit.warn,
            updated_by=by,
            updated_at=at,
        )
