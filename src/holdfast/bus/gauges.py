"""Gauges: how the log does in numbers, of one tenant or of all, for those who watch an installation."""

from dataclasses import dataclass

from holdfast.core.ids import TenantId
from holdfast.postgres.database import PooledStatements
from holdfast.postgres.sql import statements

MOST = 1000  # of each kind: names are made by tenants, and a monitoring system pays for each

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class TopicGauge:
    """A topic: how many records it has had, and at which rate of late."""

    tenant: str
    topic: str
    partitions: int
    records: int
    per_second: float


@dataclass(frozen=True, slots=True)
class GroupGauge:
    """A group on a topic: how many records it has not read; `age` is for how many seconds the oldest has waited."""

    tenant: str
    group: str
    topic: str
    lag: int
    age: float


@dataclass(frozen=True, slots=True)
class DeadLetterGauge:
    """A group on a topic: how many dead letters wait for somebody to decide."""

    tenant: str
    group: str
    topic: str
    letters: int


@dataclass(frozen=True, slots=True)
class CommandGauge:
    """A skill: how many commands wait for a worker, or are being done."""

    tenant: str
    skill: str
    state: str
    commands: int


class Gauges:
    """Reads the numbers, at most so many of each kind; without a tenant, of all of them."""

    def __init__(self, system: PooledStatements, tenant: TenantId | None = None, *, most: int = MOST) -> None:
        self._system = system
        self._asked = tenant, most

    async def topics(self) -> list[TopicGauge]:
        """Of each topic."""
        return [TopicGauge(**dict(row)) for row in await self._system.all(sql("topic_gauges"), *self._asked)]

    async def groups(self) -> list[GroupGauge]:
        """Of each group and topic that it reads."""
        return [GroupGauge(**dict(row)) for row in await self._system.all(sql("group_gauges"), *self._asked)]

    async def dead_letters(self) -> list[DeadLetterGauge]:
        """Of each group and topic that has any."""
        return [DeadLetterGauge(**dict(row)) for row in await self._system.all(sql("dead_letter_gauges"), *self._asked)]

    async def commands(self) -> list[CommandGauge]:
        """Of each skill that is asked for now, by state."""
        return [CommandGauge(**dict(row)) for row in await self._system.all(sql("command_gauges"), *self._asked)]
