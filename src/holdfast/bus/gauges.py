"""Gauges: the log's numbers for monitoring, of one tenant or of all."""

from dataclasses import dataclass

from holdfast.core.ids import TenantId
from holdfast.postgres.database import PooledStatements
from holdfast.postgres.sql import statements

MOST = 1000  # of each kind: tenants choose the names, and a monitoring system pays for each

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class TopicGauge:
    """A topic: the number of records so far, and the recent rate."""

    tenant: str
    topic: str
    partitions: int
    records: int
    per_second: float


@dataclass(frozen=True, slots=True)
class GroupGauge:
    """A group on a topic: the number of unread records, and the age of the oldest in seconds."""

    tenant: str
    group: str
    topic: str
    lag: int
    age: float


@dataclass(frozen=True, slots=True)
class DeadLetterGauge:
    """A group on a topic: the number of dead letters, without redriven ones."""

    tenant: str
    group: str
    topic: str
    letters: int


@dataclass(frozen=True, slots=True)
class CommandGauge:
    """A handler: the number of its commands in a state, queued or running."""

    tenant: str
    skill: str
    state: str
    commands: int


class Gauges:
    """Reads the gauges of a tenant, or of all tenants, at most `most` of each kind."""

    def __init__(self, system: PooledStatements, tenant: TenantId | None = None, *, most: int = MOST) -> None:
        self._system = system
        self._parameters = tenant, most

    async def topics(self) -> list[TopicGauge]:
        """Return a gauge per topic."""
        return [TopicGauge(**dict(row)) for row in await self._system.all(sql("topic_gauges"), *self._parameters)]

    async def groups(self) -> list[GroupGauge]:
        """Return a gauge per group and topic that it reads."""
        return [GroupGauge(**dict(row)) for row in await self._system.all(sql("group_gauges"), *self._parameters)]

    async def dead_letters(self) -> list[DeadLetterGauge]:
        """Return a gauge per group and topic that have dead letters."""
        return [
            DeadLetterGauge(**dict(row)) for row in await self._system.all(sql("dead_letter_gauges"), *self._parameters)
        ]

    async def commands(self) -> list[CommandGauge]:
        """Return a gauge per handler and state that have commands."""
        return [CommandGauge(**dict(row)) for row in await self._system.all(sql("command_gauges"), *self._parameters)]
