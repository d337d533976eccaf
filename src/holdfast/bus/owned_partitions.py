"""The partitions that a group member owns by a lease in PostgreSQL. Their records may come from PostgreSQL or Kafka.

Members share the partitions evenly. A member that joins or leaves wakes the others. A member that does not renew its
lease in time loses its partitions. A partition moves to another member when none of its records is being processed.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Protocol, Self
from uuid import UUID

from holdfast.bus.assignment import TopicPartition, assign
from holdfast.bus.feed_options import FeedOptions, Listen
from holdfast.bus.members import Group, Membership, group_channel
from holdfast.bus.notifications import Notifications, until
from holdfast.bus.positions import OwnedPartition, Positions
from holdfast.core.errors import HoldfastError
from holdfast.postgres.database import Database

HANDOVER = 60.0  # seconds after which a partition moves even while its owner processes a record
PAUSE = 0.04  # maximum seconds of a random delay: it spreads the reactions of members and merges several changes

log = logging.getLogger(__name__)


class Reader(Protocol):
    """Reads the owned partitions."""

    async def begin(self, partitions: Sequence[OwnedPartition]) -> None:
        """Read these partitions from their positions on."""
        ...

    def end(self, slots: Collection[TopicPartition]) -> None:
        """Stop reading these partitions."""
        ...

    def rewind(self, partition: OwnedPartition, wait: float) -> None:
        """Deliver again from the partition's position, after `wait` seconds."""
        ...

    async def on_renewed(self) -> None:
        """Do periodic work: called after each renewal of the lease."""
        ...


class OwnedPartitions:
    """The partitions of one member. `unlisted`: partitions of its topics that PostgreSQL may not know."""

    def __init__(
        self,
        database: Database,
        positions: Positions,
        options: FeedOptions,
        listen: Listen,
        notifications: Notifications,
        reader: Reader,
    ) -> None:
        self._database = database
        self._positions = positions
        self._options = options
        self._listen = listen
        self._notifications = notifications
        self._reader = reader
        self._members = Membership(database, positions.group, positions.member, options.topics, options.lease)
        self._held: dict[TopicPartition, OwnedPartition] = {}
        self._in_process: set[TopicPartition] = set()
        self._leaving: dict[TopicPartition, float] = {}  # partitions to give up, and since when
        self._renewed_at = 0.0
        self._changed = asyncio.Event()  # the group has changed, or what is being processed
        self._stack = AsyncExitStack()
        self.unlisted: Collection[TopicPartition] = ()

    async def __aenter__(self) -> Self:
        self._channel = group_channel(await self._database.tenant(), self._positions.group)
        async with AsyncExitStack() as stack:
            self._changed = await stack.enter_async_context(self._listen(self._channel))
            claimed = await self._rebalance()
            self._stack = stack.pop_all()
        self._rebalancing_task = asyncio.create_task(self._keep_rebalanced(claimed), name="holdfast group member")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._rebalancing_task.cancel()
        try:
            await asyncio.wait([self._rebalancing_task])
            with contextlib.suppress(HoldfastError):  # the others wait until the lease expires
                await self._members.leave()
                self._notifications.send(self._channel)
        finally:
            self._held.clear()
            await self._stack.aclose()

    @property
    def held(self) -> Mapping[TopicPartition, OwnedPartition]:
        """The partitions that are read."""
        return self._held

    def rebalance_soon(self) -> None:
        """Rebalance soon."""
        self._changed.set()

    def lose(self, partition: OwnedPartition) -> None:
        """Stop reading a partition that another consumer may own."""
        if self._held.get(partition.slot) is partition:
            self._end([partition.slot])
            self._changed.set()

    def mark_in_process(self, slots: set[TopicPartition]) -> None:
        """Set the partitions whose records are being processed."""
        self._in_process = slots
        if not slots and self._leaving:
            self._changed.set()

    async def _keep_rebalanced(self, claimed: Sequence[OwnedPartition]) -> None:
        """Renew the lease, and take and give up partitions as members join and leave."""
        lease = self._options.lease.total_seconds()
        while True:
            try:
                await self._begin(claimed)
                await self._reader.on_renewed()
                claimed = ()
                await until(self._changed, lease / 3)
                await asyncio.sleep(random.uniform(0, PAUSE))
                self._changed.clear()
                claimed = await self._rebalance()
            except HoldfastError as error:
                log.warning("a consumer of the group %s is interrupted; retrying: %s", self._positions.group, error)
                if asyncio.get_running_loop().time() > self._renewed_at + lease:
                    self._end(list(self._held))  # the lease has expired: others may own them
                claimed = ()  # partitions that are not read are claimed again
                await asyncio.sleep(min(lease / 10, 1))
                self._changed.set()

    async def _rebalance(self) -> list[OwnedPartition]:
        """Release partitions that other members should have, and claim this member's. Return the claimed ones."""
        started = asyncio.get_running_loop().time()
        async with self._database.transaction() as tx:
            group = await self._members.beat(tx, self.unlisted)
            wanted = self._assigned(group)
            own = {slot: group.epochs[slot] for slot, owner in group.owners.items() if owner == self._positions.member}
            self._end([slot for slot, p in self._held.items() if own.get(slot) != p.epoch])
            self._end(self._releasable(wanted))
            # Includes partitions that we own but do not read: an earlier beat may have failed, or its commit
            # may have succeeded unnoticed.
            unwanted = {slot: epoch for slot, epoch in own.items() if slot not in wanted and slot not in self._held}
            await self._positions.release(unwanted, tx=tx)
            missing = [slot for slot in wanted if slot not in self._held]
            claimed = await self._positions.claim(missing, start=self._options.start, tx=tx)
        for partition in claimed:
            partition.retry_at += started
        self._renewed_at = started
        if unwanted or group.changed:
            self._notifications.send(self._channel)
        return claimed

    async def _begin(self, claimed: Sequence[OwnedPartition]) -> None:
        if claimed:
            await self._reader.begin(claimed)
            self._held.update((partition.slot, partition) for partition in claimed)

    def _end(self, slots: Collection[TopicPartition]) -> None:
        for slot in slots:
            del self._held[slot]
        if slots:
            self._reader.end(slots)

    def _assigned(self, group: Group) -> set[TopicPartition]:
        owners: dict[TopicPartition, UUID] = {slot: owner for slot, owner in group.owners.items() if owner is not None}
        shared = assign(group.members, list(group.owners), owners)
        return {slot for slot, owner in shared.items() if owner == self._positions.member}

    def _releasable(self, wanted: set[TopicPartition]) -> list[TopicPartition]:
        """Return partitions to release: none of their records is being processed, or HANDOVER has passed."""
        now = asyncio.get_running_loop().time()
        self._leaving = {slot: self._leaving.get(slot, now) for slot in self._held if slot not in wanted}
        for slot, partition in self._held.items():
            if partition.leaving and slot not in self._leaving and slot not in self._in_process:
                # It stays: deliver the skipped records.
                self._reader.rewind(partition, max(partition.retry_at - now, 0))
            partition.leaving = slot in self._leaving
        free = [slot for slot, since in self._leaving.items() if slot not in self._in_process or now > since + HANDOVER]
        for slot in free:
            del self._leaving[slot]
        return free
