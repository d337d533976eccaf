"""Replay: reads the stored records of a topic in pages, over all its partitions. No group's position moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from holdfast.bus.records import Record, record_of
from holdfast.bus.topics import Topics
from holdfast.core.errors import InvalidInput
from holdfast.core.settings import BusSettings
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class ReplayPage:
    """Records, and the offset at which each partition continues."""

    records: list[Record]
    next: dict[int, int]


class Replay:
    """Reads stored records of a tenant's topics in bounded pages."""

    def __init__(self, database: Database, settings: BusSettings) -> None:
        self._database = database
        self._settings = settings
        self._topics = Topics(database, settings.partitions)

    async def start(
        self, topic: str, *, partition: int | None = None, offset: int | None = None, at: datetime | None = None
    ) -> dict[int, int]:
        """Return the offset to begin at, in each partition or one: for an offset, a time, or the first record."""
        if offset is not None and at is not None:
            raise InvalidInput("more than one starting position was given", next="Pass only one of offset and at.")
        wanted = await self._partitions(topic, partition)
        if at is None:
            return dict.fromkeys(wanted, offset or 0)
        return await self._offsets(topic, wanted, at)

    async def page(self, topic: str, start: Mapping[int, int], *, limit: int) -> ReplayPage:
        """Return the next records from these offsets on, in order per partition.

        The partitions that have records share the limit. With a small limit, a page skips some of them at random.
        """
        count = await self._topics.partitions(topic)
        for partition in start:
            _check_partition(topic, partition, count)
        columns = [topic] * len(start), list(start), list(start.values())
        rows = await self._database.all(sql("fetch"), *columns, limit, self._settings.batch_bytes)
        return ReplayPage(
            [record_of(row) for row in rows], {**start, **{row["partition"]: row["offset"] + 1 for row in rows}}
        )

    async def newest(self, topic: str, *, partition: int | None = None, limit: int) -> ReplayPage:
        """Return the newest records, ordered by time. The next page has the records that are published from now on."""
        ends = await self._offsets(topic, await self._partitions(topic, partition), None)
        columns = list(ends), list(ends.values())
        rows = await self._database.all(sql("newest"), topic, *columns, limit, self._settings.batch_bytes)
        return ReplayPage([record_of(row) for row in rows], ends)

    async def _partitions(self, topic: str, partition: int | None) -> list[int]:
        count = await self._topics.partitions(topic)
        if partition is None:
            return list(range(count))
        _check_partition(topic, partition, count)
        return [partition]

    async def _offsets(self, topic: str, partitions: list[int], at: datetime | None) -> dict[int, int]:
        rows = await self._database.all(sql("offsets_at"), topic, partitions, at)
        return {row["partition"]: row["offset"] for row in sorted(rows, key=lambda row: row["partition"])}


def _check_partition(topic: str, partition: int, count: int) -> None:
    if not 0 <= partition < count:
        raise InvalidInput(f"the topic {topic} has no partition {partition}", next=f"Use 0 to {count - 1}.")
