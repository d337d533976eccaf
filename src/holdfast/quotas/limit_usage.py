"""Limit usage: how much of each limit is used now, by subject, as the rows say."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from holdfast.core.text import restore
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements
from holdfast.quotas.limit import BUDGETS, UsageLimit

sql = statements(__name__)


class LimitUsage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a limit a subject uses. `reserved`: of a budget, by model calls in progress, included in `used`.

    Tokens and slots that processes have leased count as used. `resets_at`: when the window of a budget ends.
    """

    limit: str
    subject: str
    measure: str
    used: float
    amount: float
    reserved: float = 0.0
    warned: bool = False
    resets_at: datetime | None = None


async def limit_usage(database: Database, limits: Iterable[UsageLimit], *, most: int) -> Sequence[LimitUsage]:
    """Return the usage of limits, those that are used most first. Subjects that have used nothing are left out."""
    by_id = {limit.id: limit for limit in limits}
    requests = [limit for limit in by_id.values() if limit.measure == "requests"]
    slots = [limit for limit in by_id.values() if limit.measure == "concurrency"]
    budgets = [limit for limit in by_id.values() if limit.measure in BUDGETS]
    found: list[LimitUsage] = []
    if requests:
        rates = [limit.rate for limit in requests]
        capacities = [limit.capacity for limit in requests]
        for row in await database.all(sql("bucket_usage"), [each.id for each in requests], rates, capacities, most):
            limit = by_id[row["limit_id"]]
            found.append(_usage(limit, row["subject"], used=limit.capacity - row["level"], amount=limit.capacity))
    if slots:
        for row in await database.all(sql("slot_usage"), [each.id for each in slots], most):
            limit = by_id[row["limit_id"]]
            found.append(_usage(limit, row["subject"], used=row["slots"], amount=limit.amount))
    if budgets:
        windows, amounts = [limit.window for limit in budgets], [limit.amount for limit in budgets]
        for row in await database.all(sql("budget_usage"), [each.id for each in budgets], windows, amounts, most):
            limit = by_id[row["limit_id"]]
            found.append(
                LimitUsage(
                    limit=limit.name,
                    subject=restore(row["subject"]),
                    measure=limit.measure,
                    used=row["used"] + row["reserved"],
                    amount=limit.amount,
                    reserved=row["reserved"],
                    warned=row["warned_at"] is not None,
                    resets_at=row["resets_at"],
                )
            )
    used = [each for each in found if each.used > 0]
    return sorted(used, key=lambda each: (-each.used / each.amount, each.limit, each.subject))[:most]


def _usage(limit: UsageLimit, subject: str, *, used: float, amount: float) -> LimitUsage:
    shown = round(max(0.0, used), 3)
    return LimitUsage(limit=limit.name, subject=restore(subject), measure=limit.measure, used=shown, amount=amount)
