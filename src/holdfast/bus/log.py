"""The log, as everyone sees it: one protocol, held by PostgreSQL alone or by Kafka with it."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from holdfast.bus.reading import Start
from holdfast.bus.records import Record
from holdfast.bus.subscription import Subscription
from holdfast.bus.topics import Lag, Topic
from holdfast.postgres.database import Transaction


class Log(Protocol):
    """At least once, in order per key; published with the caller's transaction, or not at all."""

    async def create(self, topic: str, *, partitions: int | None = None, tx: Transaction | None = None) -> int:
        """Make a topic, unless it is there; the number of its partitions, which never changes."""
        ...

    async def remove(self, topic: str) -> None:
        """Remove a topic with its records and the positions of its groups."""
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
        """Publish when `tx` commits, and nothing when it rolls back; without one, it is durable when this returns."""
        ...

    async def announce(
        self, *topics: str, keys: Collection[str] = (), told: bool = False, tx: Transaction | None = None
    ) -> None:
        """Wake those who read these topics, now or when `tx` commits: for whoever publishes by a function of SQL.

        `keys`: of all that was published; without them, all partitions are looked at. `told`: whoever subscribes with
        `told` in this process has been told already, and reads it a little later.
        """
        ...

    def subscribe(
        self, topics: Sequence[str], *, group: str | None = None, start: Start | None = None, told: bool = False
    ) -> AbstractAsyncContextManager[Subscription]:
        """Read as one of a group, which shares partitions and keeps positions; without a group, all from now on.

        `start`: where a group begins that has never read the topic (unless said `start`), or a reader without (`end`).
        `told`: what this process announces as told is known here by other means, and need not come at once.
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
        """What is there, from an offset or a time on, in order of each partition; no group notices."""
        ...

    async def topics(self) -> list[Topic]:
        """Every topic and how it does."""
        ...

    async def lag(self, group: str | None = None) -> list[Lag]:
        """How far groups are behind, partition by partition."""
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
        """Have a group read again from an offset, a time, the end or (unless said) the start; its new positions.

        Nobody may be reading with it meanwhile.
        """
        ...
