"""The protocol of the log, implemented by PostgreSQL alone and by PostgreSQL with Kafka."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from holdfast.bus.feed_options import Start
from holdfast.bus.records import Record
from holdfast.bus.subscription import Subscription
from holdfast.bus.topics import Lag, Topic
from holdfast.postgres.database import Transaction


class Log(Protocol):
    """A log that delivers records at least once and in order per key.

    A record is published with the caller's transaction, or not at all.
    """

    async def create(self, topic: str, *, partitions: int | None = None, tx: Transaction | None = None) -> int:
        """Create a topic, unless it exists. Return the number of its partitions, which never changes."""
        ...

    async def remove(self, topic: str) -> None:
        """Remove a topic, its records and the positions of its groups."""
        ...

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
        """Publish a record when `tx` commits, and nothing when it rolls back. Without `tx`, it is durable on return."""
        ...

    async def announce(
        self, *topics: str, keys: Collection[str] = (), known_locally: bool = False, tx: Transaction | None = None
    ) -> None:
        """Wake the readers of these topics, now or when `tx` commits. Needed after publishing by an SQL function.

        `keys`: the keys of all published records; without them, readers check all partitions. `known_locally`:
        subscribers with `known_locally` in this process know the records already, so they may read them a little later.
        """
        ...

    def subscribe(
        self,
        topics: Sequence[str],
        *,
        group: str | None = None,
        start: Start | None = None,
        known_locally: bool = False,
    ) -> AbstractAsyncContextManager[Subscription]:
        """Subscribe as a member of a group, which shares partitions and stores positions; without one, read all.

        `start`: where to begin if the group has never read the topic (default: `start`), or without a group (default:
        `end`). `known_locally`: the subscriber learns by other means what this process announces with
        `known_locally`, so these records need not arrive at once.
        """
        ...

    def read(
        self,
        topic: str,
        *,
        partition: int | None = None,
        offset: int | None = None,
        at: datetime | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Record]:
        """Read the stored records from an offset or a time on, in order per partition. No group's position moves."""
        ...

    async def topics(self) -> list[Topic]:
        """List all topics with their statistics."""
        ...

    async def lag(self, group: str | None = None) -> list[Lag]:
        """List how far groups are behind, per partition."""
        ...

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
        """Move a group to an offset, a time, the end or (default) the start. Return its new positions.

        The group must have no active members.
        """
        ...
