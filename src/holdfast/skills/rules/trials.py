"""Trials: what rules on trial would have decided otherwise. Counted in memory, and written behind the calls."""

import asyncio
import logging
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.core.background import DelayedWriter
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import TenantId
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

DELAY = 1.0  # seconds for which calls are collected before a write
EXAMPLES = 5  # of a rule
MAX_NAMES = 20  # of arguments in an example
MAX_NAME = 100  # characters

sql = statements(__name__)
log = logging.getLogger(__name__)


class TrialCall(msgspec.Struct, frozen=True):
    """A call that a rule on trial would have decided otherwise. Its arguments are named, and not shown."""

    tool: str
    user: str | None
    agent: str | None
    arguments: tuple[str, ...]
    at: datetime


class RuleTrial(msgspec.Struct, frozen=True):
    """How many calls a rule on trial would have decided otherwise, when the last time, and the latest of them."""

    rule: str
    calls: int
    last_at: datetime
    examples: tuple[TrialCall, ...]


@dataclass(slots=True)
class TrialCount:
    """The calls of a rule that are not written yet, and the latest of them, newest first."""

    calls: int = 0
    examples: deque[TrialCall] = field(default_factory=lambda: deque[TrialCall](maxlen=EXAMPLES))


Counts = defaultdict[str, TrialCount]


class RuleTrials(DelayedWriter):
    """Counts in batches. If the process dies, only the counts that it has not written are lost."""

    def __init__(self) -> None:
        super().__init__("rule trials", delay=DELAY)
        self._counts: defaultdict[Database, Counts] = defaultdict(lambda: Counts(TrialCount))
        self._totals: Counter[tuple[TenantId, str]] = Counter()

    def note(
        self,
        database: Database,
        rules: Iterable[str],
        *,
        tool: str,
        user: str | None,
        agent: str | None,
        arguments: Mapping[str, Any],
    ) -> None:
        """Count a call for each of these rules."""
        call = TrialCall(
            store(tool),
            _store(user),
            _store(agent),
            tuple(store(each)[:MAX_NAME] for each in list(arguments)[:MAX_NAMES]),
            datetime.now(UTC),
        )
        for rule in rules:
            count = self._counts[database][rule]
            count.calls += 1
            count.examples.appendleft(call)
        self.write_later()

    def counts(self, tenant: TenantId | None) -> Mapping[tuple[TenantId, str], int]:
        """Return how many calls this process has written for each rule, of a tenant or of all."""
        return {key: count for key, count in self._totals.items() if tenant in (None, key[0])}

    async def of(self, database: Database) -> dict[str, RuleTrial]:
        """Return what was counted for a tenant in all processes, by the names of the rules."""
        rows = await database.all(sql("trials"))
        return {
            row["rule"]: RuleTrial(row["rule"], row["calls"], row["last_at"], _examples(row["examples"]))
            for row in rows
        }

    @property
    def has_values(self) -> bool:
        """Whether there are counts to write."""
        return bool(self._counts)

    async def flush(self) -> None:
        """Write the counts. If this is cancelled, unwritten counts are kept for the next flush."""
        for database in tuple(self._counts):
            counts = self._counts.pop(database, Counts(TrialCount))
            written = {
                rule: {"calls": each.calls, "examples": msgspec.to_builtins([*each.examples])}
                for rule, each in counts.items()
            }
            try:
                await database.run(sql("count_trials"), written, EXAMPLES)
                tenant = await database.tenant()
                self._totals.update({(tenant, rule): count.calls for rule, count in counts.items()})
            except HoldfastError as error:
                log.warning("could not count what %s rules on trial would have decided: %s", len(counts), error)
            except asyncio.CancelledError:
                for rule, each in counts.items():
                    kept = self._counts[database][rule]
                    kept.calls += each.calls
                    kept.examples.extend(each.examples)
                raise


def _examples(stored: Any) -> tuple[TrialCall, ...]:
    found = msgspec.convert(stored, tuple[TrialCall, ...])
    return tuple(
        TrialCall(
            restore(each.tool), _restore(each.user), _restore(each.agent), tuple(map(restore, each.arguments)), each.at
        )
        for each in found
    )


def _store(name: str | None) -> str | None:
    return None if name is None else store(name)


def _restore(name: str | None) -> str | None:
    return None if name is None else restore(name)
