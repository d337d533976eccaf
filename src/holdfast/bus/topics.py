"""Topics: the named logs to which records are published, and how far groups have read them."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from holdfast.core.errors import Conflict, InvalidInput, NotFound
from holdfast.core.text import restore
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

COMMANDS = "agent-commands"
EVENTS = "agent-events"
MAX_PARTITIONS = 1000

NAME = r"[A-Za-z0-9_-]{1,150}"  # of a topic or a group
_NAME = re.compile(NAME)

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic.

    `records`: how many were published so far. `per_second`: the recent rate. `oldest`: when the oldest stored record
    was published.
    """

    name: str
    partitions: int
    records: int
    per_second: float
    oldest: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group is behind on a partition.

    `position` and `end` are offsets of our log. `lag` counts every unread record; with Kafka, also those of foreign
    producers. `oldest` is when the first unread record was published. `owner` names the consumer of the partition, with
    a remark if it has missed renewals of its lease.
    """

    group: str
    topic: str
    partition: int
    position: int
    end: int
    lag: int
    oldest: datetime | None
    owner: str | None
    attempts: int
    error: str | None


class Topics:
    """Creates, removes and lists topics."""

    def __init__(self, database: Database, partitions: int) -> None:
        self._database = database
        self._partitions = partitions

    async def create(self, name: str, *, partitions: int | None = None, tx: Transaction | None = None) -> int:
        """Create a topic, unless it exists. Return the number of its partitions, which never changes."""
        wanted = self._partitions if partitions is None else partitions
        if type(wanted) is not int or not 1 <= wanted <= MAX_PARTITIONS:
            raise InvalidInput(
                "the number of partitions is invalid",
                why=f"it is {wanted!r:.100}",
                next=f"Use 1 to {MAX_PARTITIONS}.",
            )
        within = await self._database.within(tx)
        found = cast(int, await within.value(sql("create_topic"), topic_name(name), wanted))
        if partitions is not None and found != partitions:
            raise Conflict(
                f"the topic {name} has {found} partitions",
                expected=partitions,
                current=found,
                why=f"{partitions} were requested, and the number of partitions never changes",
                next="Use another name, or omit the number.",
            )
        return found

    async def remove(self, name: str) -> None:
        """Remove a topic, its records and the positions of its groups. Its dead letters are kept."""
        if name in (COMMANDS, EVENTS):
            raise InvalidInput(f"{name} cannot be removed", why="commands and their completions are published there")
        if not await self._database.value(sql("remove_topic"), topic_name(name)):
            raise unknown_topic(name)

    async def partitions(self, name: str) -> int:
        """Return the number of partitions of a topic."""
        found = await self._database.value(sql("topic_partitions"), topic_name(name))
        if found is None:
            raise unknown_topic(name)
        return cast(int, found)

    async def lag(self, group: str | None = None) -> list[Lag]:
        """List how far groups are behind, per partition."""
        return [lag for lag, _ in await self.progress(group)]

    async def progress(self, group: str | None = None) -> list[tuple[Lag, int | None]]:
        """List how far groups are behind in our log, per partition, each with its position on Kafka."""
        return [(_lag(row), row["broker_position"]) for row in await self._database.all(sql("lag"), group)]

    async def list(self) -> list[Topic]:
        """List all topics by name."""
        return [Topic(**dict(row)) for row in await self._database.all(sql("topics"))]


def topic_name(name: str) -> str:
    """Return the name if a topic can have it. Kafka must accept it. A dot is reserved: it follows the tenant there."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"{name!r:.200} is not a valid name for a topic",
            next="Use up to 150 letters, digits, hyphens and underscores.",
        )
    return name


def group_name(name: str) -> str:
    """Return the name if a group can have it. With a dot, it could name another tenant's group on Kafka."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"{name!r:.200} is not a valid name for a group",
            why="a dot separates the name of the tenant from the name of the group" if "." in str(name) else "",
            next="Use up to 150 letters, digits, hyphens and underscores; you cannot name groups of other tenants.",
        )
    return name


def _lag(row: Row) -> Lag:
    fields: dict[str, Any] = {name: value for name, value in row.items() if name != "broker_position"}
    fields["error"] = None if row["error"] is None else restore(row["error"])
    return Lag(**fields)


def unknown_topic(name: str) -> NotFound:
    """Return the error for a topic that does not exist."""
    return NotFound(
        f"the topic {name} does not exist",
        next=f"Create it with `await engine.log.create({name!r})` or `holdfast topics create {name}`.",
    )
