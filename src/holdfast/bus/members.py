"""Members of a consumer group. Each renews a lease; one that does not loses its partitions."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from holdfast.bus.assignment import TopicPartition
from holdfast.bus.notifications import channel
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Database, Transaction
from holdfast.postgres.sql import statements

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Group:
    """A group while its row is locked: its live members, and the owner and epoch of each partition."""

    members: Mapping[UUID, Sequence[str]]
    owners: Mapping[TopicPartition, UUID | None]
    epochs: Mapping[TopicPartition, int]
    changed: bool  # this beat added the member, or removed expired ones


class Membership:
    """One member of a group."""

    def __init__(self, database: Database, group: str, id: UUID, topics: Sequence[str], lease: timedelta) -> None:
        self._database = database
        self._group = group
        self._id = id
        self._topics = list(topics)
        self._lease = lease

    async def beat(self, tx: Transaction, unlisted: Collection[TopicPartition] = ()) -> Group:
        """Renew the lease, remove members whose lease has expired, and return the group. Locks it until the commit.

        `unlisted`: partitions of its topics that PostgreSQL may not know.
        """
        rows = await tx.all(
            sql("join_group"), self._group, self._id, f"process {os.getpid()}", self._topics, self._lease
        )
        members = {row["id"]: list(row["topics"]) for row in rows}
        topics = sorted({topic for topics in members.values() for topic in topics})
        unlisted_columns = [slot.topic for slot in unlisted], [slot.partition for slot in unlisted]
        found = await tx.all(sql("group_partitions"), self._group, topics, *unlisted_columns)
        return Group(
            members,
            {TopicPartition(row["topic"], row["partition"]): row["owner"] for row in found},
            {TopicPartition(row["topic"], row["partition"]): row["epoch"] for row in found},
            changed=any(row["changed"] for row in rows),
        )

    async def leave(self) -> None:
        """Leave the group and release its partitions."""
        await self._database.run(sql("leave_group"), self._group, self._id)


def group_channel(tenant: TenantId, group: str) -> str:
    """Return the channel on which the members of a group are woken."""
    return channel("group", tenant, group)
