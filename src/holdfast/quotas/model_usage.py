"""Model usage: how many tokens the model calls of each day used, by user, agent and model.

Rows are written behind the calls, many in one statement. If the process dies, the counts of the last second are lost.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import msgspec

from holdfast.core.background import DelayedWriter
from holdfast.core.errors import HoldfastError
from holdfast.core.names import shortened_name
from holdfast.core.text import dumps, restore
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

DELAY = 1.0  # seconds for which counts are collected before a write
MAX_PART = 800  # bytes of a name: the key of a row has three, and an index entry can have a third of a page at most

sql = statements(__name__)
log = logging.getLogger(__name__)

UsageKey = tuple[str, str, str]  # user, agent, model


@dataclass(slots=True)
class UsageCounts:
    """What was counted since the last write."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class DailyUsage(msgspec.Struct, frozen=True):
    """What the model calls of a user and an agent used on a day, in UTC. Without a user or an agent, it is null."""

    day: date
    user: str | None
    agent: str | None
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float


class ModelUsageCounts(DelayedWriter):
    """Counts the model calls of all tenants."""

    def __init__(self) -> None:
        super().__init__("usage of models", delay=DELAY)
        self._counted: defaultdict[Database, dict[UsageKey, UsageCounts]] = defaultdict(dict)

    def count(
        self,
        database: Database,
        *,
        user: str | None,
        agent: str | None,
        model: str,
        input: int,
        output: int,
        cost: float,
    ) -> None:
        """Count a call; it is written soon."""
        names = user or "", agent or "", model
        user, agent, model = (shortened_name(name, MAX_PART) for name in names)
        counts = self._counted[database].setdefault((user, agent, model), UsageCounts())
        counts.calls += 1
        counts.input_tokens += input
        counts.output_tokens += output
        counts.cost += cost
        self.write_later()

    @property
    def has_values(self) -> bool:
        """Whether counts wait."""
        return bool(self._counted)

    async def flush(self) -> None:
        """Write the counts. Those of a tenant whose database does not answer wait for the next flush."""
        for database in tuple(self._counted):
            counted = self._counted.pop(database)
            rows = [
                {
                    "user_name": user,
                    "agent": agent,
                    "model": model,
                    "calls": counts.calls,
                    "input_tokens": counts.input_tokens,
                    "output_tokens": counts.output_tokens,
                    "cost": counts.cost,
                }
                for (user, agent, model), counts in counted.items()
            ]
            try:
                await database.run(sql("count_model_usage"), dumps(rows))
            except BaseException as error:
                self._keep(database, counted)
                if not isinstance(error, HoldfastError):
                    raise
                log.warning("could not count the usage of models; trying again: %s", error)

    def _keep(self, database: Database, counted: dict[UsageKey, UsageCounts]) -> None:
        """Add counts that were not written to those that came meanwhile."""
        present = self._counted[database]
        for key, counts in counted.items():
            newer = present.setdefault(key, UsageCounts())
            newer.calls += counts.calls
            newer.input_tokens += counts.input_tokens
            newer.output_tokens += counts.output_tokens
            newer.cost += counts.cost


async def daily_usage(database: Database, *, days: int, limit: int) -> Sequence[DailyUsage]:
    """List what the model calls of the last days used, newest first. Today is day 1."""
    rows = await database.all(sql("model_usage"), days - 1, limit)
    return [
        DailyUsage(
            row["day"],
            restore(row["user_name"]) or None,
            restore(row["agent"]) or None,
            restore(row["model"]),
            row["calls"],
            row["input_tokens"],
            row["output_tokens"],
            row["cost"],
        )
        for row in rows
    ]
