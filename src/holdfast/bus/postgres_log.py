"""The log in PostgreSQL: records are rows, and a counter row per partition assigns their offsets."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from datetime import datetime, timedelta
from typing import Protocol, Self, cast
from uuid import UUID

from holdfast.bus.assignment import TopicPartition
from holdfast.bus.feed_options import FeedOptions, Listen, Start
from holdfast.bus.notifications import Notifications
from holdfast.bus.partition_hints import Hint
from holdfast.bus.positions import Positions
from holdfast.bus.postgres_feed import GrouplessFeed, PostgresFeed, fetch, topic_channel
from holdfast.bus.records import Record, RecordDraft, draft, hash_of, record_of
from holdfast.bus.subscription import Feed, RetryLimits, Subscription
from holdfast.bus.topics import Lag, Topic, Topics, group_name, topic_name, unknown_topic
from holdfast.core.batching import Batcher
from holdfast.core.errors import Busy, InvalidInput, NotFound
from holdfast.core.settings import BusSettings
from holdfast.core.text import loads
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

PAGE = 500
KNOWN_FOR = 60.0  # seconds for which a topic's number of partitions is cached

sql = statements(__name__)


class GroupFeed(Feed, Protocol):
    """The feed of a group member, opened with `async with`."""

    positions: Positions

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...


class PostgresLog:
    """Publishes and reads the records of one tenant."""

    def __init__(self, database: Database, settings: BusSettings, listen: Listen, notifications: Notifications) -> None:
        self._database = database
        self._settings = settings
        self._listen = listen
        self._notifications = notifications
        self._topics = Topics(database, settings.partitions)
        self._numbers: dict[str, tuple[int, float]] = {}  # of partitions, and when the cache entry expires
        self._writer = Batcher(self._write, size=lambda draft: draft.bytes)

    async def create(self, topic: str, *, partitions: int | None = None, tx: Transaction | None = None) -> int:
        """Create a topic, unless it exists. Return the number of its partitions, which never changes."""
        return await self._topics.create(topic, partitions=partitions, tx=tx)

    async def remove(self, topic: str) -> None:
        """Remove a topic, its records and the positions of its groups. Its dead letters are kept."""
        await self._topics.remove(topic)

    async def publish(
        self,
        topic: str,
        *,
        value: object,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        id: UUID | None = None,
        tx: Transaction | None = None,
    ) -> Record:
        """Publish a record when `tx` commits, and nothing when it rolls back. Without `tx`, it is durable on return.

        In a transaction, publish last: other producers of the same partition wait for the commit.
        """
        limit = self._settings.max_record_bytes
        record = draft(topic_name(topic), value, key=key, headers=headers, id=id, max_bytes=limit)
        if tx is None:
            row = await self._writer(record)
        else:
            within = await self._database.within(tx)
            row = cast(Row, await within.one(sql("publish"), *record.columns))
            if row["offset"] is None:
                raise unknown_topic(topic)
            await self._wake_readers({topic: [row["partition"]]}, tx=tx)
        return Record(topic, row["partition"], row["offset"], key, record.id, loads(record.headers), value, row["at"])

    @asynccontextmanager
    async def subscribe(
        self,
        topics: Sequence[str],
        *,
        group: str | None = None,
        start: Start | None = None,
        known_locally: bool = False,
    ) -> AsyncGenerator[Subscription]:
        """Subscribe as a member of a group, which shares partitions and stores positions; without one, read all."""
        names = tuple(dict.fromkeys(map(topic_name, [topics] if isinstance(topics, str) else topics)))
        if not names:
            raise InvalidInput("no topic was given", next="Name at least one topic.")
        if start not in (None, "start", "end"):
            raise InvalidInput(f"{start!r:.100} is not a valid start", next="Use `start` or `end`.")
        for name in names:
            await self._topics.partitions(name)
        settings = self._settings
        limits = RetryLimits(settings.max_attempts, timedelta(seconds=settings.max_failing))
        lease = timedelta(seconds=settings.lease)
        if group is None:
            options = FeedOptions(names, start or "end", settings.batch, settings.batch_bytes, lease, known_locally)
            async with GrouplessFeed(self._database, options, self._listen, self._notifications) as feed:
                with closing(Subscription(self._database, feed, None, limits)) as subscription:
                    yield subscription
            return
        options = FeedOptions(names, start or "start", settings.batch, settings.batch_bytes, lease, known_locally)
        async with await self._feed(group_name(group), options) as feed:
            with closing(Subscription(self._database, feed, feed.positions, limits)) as subscription:
                yield subscription

    async def read(
        self,
        topic: str,
        *,
        partition: int | None = None,
        offset: int | None = None,
        at: datetime | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Record]:
        """Read the stored records from an offset or a time on, in order per partition. No group's position moves."""
        left = limit
        for number, position in sorted((await self._starts(topic, partition, offset, at, end=False)).items()):
            while left is None or left > 0:
                page = PAGE if left is None else min(PAGE, left)
                starts = {TopicPartition(topic, number): position}
                rows = await fetch(self._database, starts, most=page, most_bytes=self._settings.batch_bytes)
                for row in rows:
                    yield record_of(row)
                if not rows:
                    break
                position = rows[-1]["offset"] + 1  # noqa: PLW2901
                left = None if left is None else left - len(rows)

    async def topics(self) -> list[Topic]:
        """List all topics with their statistics."""
        return await self._topics.list()

    async def lag(self, group: str | None = None) -> list[Lag]:
        """List how far groups are behind, per partition."""
        return await self._topics.lag(group)

    async def reset(
        self,
        group: str,
        topic: str,
        *,
        partition: int | None = None,
        offset: int | None = None,
        at: datetime | None = None,
        end: bool = False,
    ) -> dict[int, int]:
        """Move a group to an offset, a time, the end or (default) the start. Return its new positions."""
        positions = await self._starts(topic, partition, offset, at, end=end)
        if offset is not None:  # beyond the end, the group would skip new records
            ends = await self._starts(topic, partition, None, None, end=True)
            positions = {number: min(position, ends[number]) for number, position in positions.items()}
        outcome = await self._database.value(
            sql("reset_group"), group_name(group), topic, list(positions), list(positions.values())
        )
        if outcome == "missing":
            raise NotFound(f"the group {group} does not exist", next="List the groups with `holdfast topics lag`.")
        if outcome == "busy":
            raise Busy(
                f"the group {group} has active consumers",
                why="they would continue from their own positions",
                next="Stop them, then reset the group.",
            )
        return positions

    async def announce(
        self, *topics: str, keys: Collection[str] = (), known_locally: bool = False, tx: Transaction | None = None
    ) -> None:
        """Wake the readers of these topics, now or when `tx` commits. Needed after publishing by an SQL function."""
        changed = {topic: await self._partitions(topic, keys, tx) for topic in topics}
        await self._wake_readers(changed, known_locally=known_locally, tx=tx)

    async def _wake_readers(
        self, changed: Mapping[str, Collection[int]], *, known_locally: bool = False, tx: Transaction | None = None
    ) -> None:
        """Wake the readers of topics, and name the partitions that have new records."""
        tenant = await self._database.tenant()
        sender = self._notifications.name if known_locally else ""
        for topic, partitions in changed.items():
            self._notifications.send(topic_channel(tenant, topic), hint=str(Hint(sorted(partitions), sender)), tx=tx)

    async def _partitions(self, topic: str, keys: Collection[str], tx: Transaction | None) -> set[int]:
        """Return the partitions of records with these keys. An empty set means all partitions, or an unknown topic."""
        if not keys:
            return set()
        now = asyncio.get_running_loop().time()
        number, until = self._numbers.get(topic, (0, 0.0))
        if now > until:
            within = await self._database.within(tx)
            number = cast(int, await within.value(sql("topic_partitions"), topic) or 0)
            self._numbers[topic] = (number, now + KNOWN_FOR)
        return {hash_of(key) % number for key in keys} if number else set()

    async def _feed(self, group: str, options: FeedOptions) -> GroupFeed:
        return PostgresFeed(self._database, group, options, self._listen, self._notifications)

    async def _write(self, drafts: Sequence[RecordDraft]) -> list[Row | Exception]:
        """Publish the records of many producers in one commit. A record with an unknown topic fails alone."""
        if len(drafts) == 1:
            return [await self._write_one(drafts[0])]
        columns = [list(column) for column in zip(*(one.columns for one in drafts), strict=True)]
        rows: defaultdict[tuple[str, UUID], deque[Row]] = defaultdict(deque)
        changed: defaultdict[str, set[int]] = defaultdict(set)
        for row in await self._database.all(sql("publish_all"), *columns):
            rows[row["topic"], row["id"]].append(row)
            changed[row["topic"]].add(row["partition"])
        await self._wake_readers(changed)
        own = [rows[one.topic, one.id] for one in drafts]  # several records may have the same id
        return [found.popleft() if found else unknown_topic(one.topic) for one, found in zip(drafts, own, strict=True)]

    async def _write_one(self, record: RecordDraft) -> Row | Exception:
        row = cast(Row, await self._database.one(sql("publish"), *record.columns))
        if row["offset"] is None:
            return unknown_topic(record.topic)
        await self._wake_readers({record.topic: [row["partition"]]})
        return row

    async def _starts(
        self, topic: str, partition: int | None, offset: int | None, at: datetime | None, *, end: bool
    ) -> dict[int, int]:
        """Return the offset to begin at, per partition."""
        number = await self._topics.partitions(topic)
        if (offset is not None) + (at is not None) + end > 1:
            raise InvalidInput("more than one starting position was given", next="Pass only one of offset, at and end.")
        if partition is not None and not 0 <= partition < number:
            raise InvalidInput(f"the topic {topic} has no partition {partition}", next=f"Use 0 to {number - 1}.")
        if offset is not None and offset < 0:
            raise InvalidInput("the offset is negative", next="Use 0 or more.")
        wanted = range(number) if partition is None else [partition]
        if at is None and not end:
            return dict.fromkeys(wanted, offset or 0)
        rows = await self._database.all(sql("offsets_at"), topic, list(wanted), at)
        return {row["partition"]: row["offset"] for row in rows}
