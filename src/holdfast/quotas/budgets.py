"""Budgets: what the model calls of a tenant, a user or an agent may spend in a window of the calendar.

A call reserves an estimate before it begins, and settles with what it really used. The rows hold both, so that all
processes together cannot spend more than the budget and what the calls in progress turn out to need beyond their
estimates. If a process dies, what its calls had reserved stays spent: the provider may have charged for it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID

from holdfast.core.errors import BudgetSpent, HoldfastError
from holdfast.core.ids import uuid7
from holdfast.core.text import dumps, store
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.quotas.limit import BUDGETS, UsageLimit, subject_key
from holdfast.quotas.tenant_limits import TenantLimits

AGAIN = 0.25  # seconds until a call that waits for reservations of others asks again
PATIENCE = 60.0  # seconds that it waits

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Spend:
    """What a model call uses or may use: tokens, and their cost by the prices of the settings."""

    tokens: float
    cost: float

    def of(self, limit: UsageLimit) -> float:
        """Return it in the measure of a limit."""
        return self.tokens if limit.measure == "tokens" else self.cost


@dataclass(frozen=True, slots=True)
class ReservedBudget:
    """A budget from which a call has reserved its estimate."""

    limit: UsageLimit
    subject: str
    starts_at: datetime


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a call has reserved from its budgets. Settle it once, whatever becomes of the call."""

    id: UUID
    estimate: Spend
    budgets: Sequence[ReservedBudget]


class TenantBudgets:
    """The budgets of one tenant. `warn_at` is the share from which a warning is due, unless a limit says another."""

    def __init__(self, database: Database, limits: TenantLimits, *, warn_at: float, lease: float) -> None:
        self.refusals: Counter[str] = Counter()  # by name of the limit
        self.warnings: Counter[str] = Counter()
        self._database = database
        self._limits = limits
        self._warn_at = warn_at
        self._lease = timedelta(seconds=lease)

    async def reserve(self, estimate: Spend, *, user: str | None, agent: str | None) -> Reservation | None:
        """Reserve what a call may spend; None if it has no budget. Raise BudgetSpent if a budget is used up.

        If calls in progress have reserved the rest of a budget, wait for what they do not use.
        """
        budgets = await self._budgets_of(user, agent)
        if not budgets:
            return None
        id = uuid7()
        given = dumps(
            [
                {
                    "place": place,
                    "limit_id": limit.id,
                    "subject": subject,
                    "window_unit": limit.window,
                    "amount": limit.amount,
                    "estimate": estimate.of(limit),
                }
                for place, (limit, subject) in enumerate(budgets)
            ]
        )
        deadline = monotonic() + PATIENCE
        while True:
            try:
                rows = await self._database.all(sql("reserve_spend"), id, self._lease, given)
            except BaseException:  # it may have been reserved before the call was cancelled or the connection was lost
                release = self._release(id, budgets)
                await asyncio.shield(asyncio.create_task(release, name="releasing a reservation"))
                raise
            refused = [row for row in rows if row["outcome"] != "free"]
            if not refused:
                starts: Mapping[int, datetime] = {row["place"]: row["starts_at"] for row in rows}
                reserved = [ReservedBudget(*budget, starts[place]) for place, budget in enumerate(budgets)]
                return Reservation(id, estimate, reserved)
            spent = [row for row in refused if row["outcome"] == "spent"]
            if spent or monotonic() > deadline:
                raise self._refusal(budgets, spent or refused)
            await asyncio.sleep(AGAIN)

    async def settle(self, reservation: Reservation | None, actual: Spend | None) -> None:
        """Replace a reservation by what the call used; None: unknown, so that the estimate counts."""
        if reservation is None:
            return
        spent = reservation.estimate if actual is None else actual
        spends = [
            self._spend(place, each, reservation.estimate, spent) for place, each in enumerate(reservation.budgets)
        ]
        rows = await self._database.all(sql("settle_spend"), reservation.id, dumps(spends))
        for row in rows:
            place: int = row["place"]
            budget = reservation.budgets[place]
            limit = budget.limit
            self.warnings[limit.name] += 1
            log.warning(
                "%s has used %.6g of its budget `%s`: %.0f%%", budget.subject, row["used"], limit.rule,
                100 * row["used"] / limit.amount,
            )  # fmt: skip

    async def _release(self, id: UUID, budgets: Sequence[tuple[UsageLimit, str]]) -> None:
        ids, subjects = [limit.id for limit, _ in budgets], [store(subject) for _, subject in budgets]
        try:
            await self._database.run(sql("release_spend"), id, ids, subjects)
        except HoldfastError as error:
            log.warning("could not release what a call had reserved of its budgets; it may stay spent: %s", error)

    async def _budgets_of(self, user: str | None, agent: str | None) -> list[tuple[UsageLimit, str]]:
        await self._limits.refresh()
        found = self._limits.index.limits_of(user=user, agent=agent)
        return [(limit, subject_key(subject)) for limit, subject in found if limit.measure in BUDGETS]

    def _spend(self, place: int, budget: ReservedBudget, estimate: Spend, actual: Spend) -> dict[str, Any]:
        limit = budget.limit
        return {
            "place": place,
            "limit_id": limit.id,
            "subject": budget.subject,
            "starts_at": budget.starts_at,
            "estimate": estimate.of(limit),
            "actual": actual.of(limit),
            "warn_from": limit.amount * (self._warn_at if limit.warn is None else limit.warn),
        }

    def _refusal(self, budgets: Sequence[tuple[UsageLimit, str]], rows: Sequence[Row]) -> BudgetSpent:
        row = max(rows, key=lambda row: row["resets_in"])
        place: int = row["place"]
        limit, subject = budgets[place]
        self.refusals[limit.name] += 1
        rest = "" if row["outcome"] == "spent" else ", and calls in progress have reserved the rest"
        return BudgetSpent(
            f"the budget of {subject} is spent",
            why=f"it is `{limit.rule}`, and {row['used']:.6g} of it are used{rest}",
            next=f"It starts again in {_duration(row['resets_in'])}, or an admin raises it with `holdfast limits set`.",
            limit=limit.name,
            subject=subject,
            measure=limit.measure,
            amount=limit.amount,
            window=limit.window,
            used=row["used"],
            retry_after=row["resets_in"],
        )


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
