"""The records of a group, read from PostgreSQL: partitions by lease, records by offset."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Self
from uuid import UUID

from holdfast.bus.members import Group, Membership, group_channel
from holdfast.bus.news import News
from holdfast.bus.positions import Holding, Positions
from holdfast.bus.records import Record, record_of
from holdfast.bus.sharing import Slot, share
from holdfast.bus.wakes import Wakes, channel, until
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import TenantId, uuid7
from holdfast.postgres.database import Database, Row
from holdfast.postgres.listener import Wake
from holdfast.postgres.sql import statements

Start = Literal["start", "end"]
Listen = Callable[..., AbstractAsyncContextManager[Wake]]

HANDOVER = 60.0  # seconds that a partition waits for the record its owner has in hand

sql = statements(__name__)
log = logging.getLogger(__name__)


def topic_channel(tenant: TenantId, topic: str) -> str:
    """Where those who read a topic are woken."""
    return channel("topic", tenant, topic)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a feed reads: topics, where a new group starts, and how much it holds at once.

    `told`: whoever reads is told by other means what this process announces so.
    """

    topics: tuple[str, ...]
    start: Start
    batch: int
    batch_bytes: int
    lease: timedelta
    told: bool = False


async def fetch(database: Database, starts: Mapping[Slot, int], *, most: int, most_bytes: int) -> list[Row]:
    """The stored records of partitions, each from an offset on: a bounded number, shared among those that have any."""
    if len(starts) == 1:
        ((slot, start),) = starts.items()
        return await database.all(sql("fetch_one"), *slot, start, most, most_bytes)
    columns = [slot.topic for slot in starts], [slot.partition for slot in starts], list(starts.values())
    return await database.all(sql("fetch"), *columns, most, most_bytes)


class Pages:
    """Reads the next records of partitions, a bounded number at once."""

    def __init__(self, database: Database, reading: Reading) -> None:
        self._database = database
        self._reading = reading
        self.read_all = False  # there was nothing behind the last page

    async def next(self, holdings: Sequence[Holding]) -> list[tuple[Holding, Record]]:
        """The next records of these partitions."""
        now = asyncio.get_running_loop().time()
        ready = {h.slot: h for h in holdings if not h.leaving and h.retry_at <= now}
        if not ready:
            self.read_all = True
            return []
        self.read_all = False
        generations = {slot: h.generation for slot, h in ready.items()}
        reading, starts = self._reading, {slot: h.next for slot, h in ready.items()}
        rows = await fetch(self._database, starts, most=reading.batch, most_bytes=reading.batch_bytes)
        for slot, holding in ready.items():
            if holding.generation == generations[slot]:
                holding.retry_at = 0.0
        records: list[tuple[Holding, Record]] = []
        for row in rows:
            holding = ready[Slot(row["topic"], row["partition"])]
            if holding.generation == generations[holding.slot]:
                records.append((holding, record_of(row, epoch=holding.epoch)))
                holding.next = row["offset"] + 1
        ends = {Slot(row["topic"], row["partition"]): row["ends"] for row in rows}
        self.read_all = (
            len(rows) < reading.batch
            and sum(row["bytes"] for row in rows) < reading.batch_bytes
            and all(ready[slot].next >= end for slot, end in ends.items())
        )
        return records


class Looking:
    """Reads what is new in partitions, those of them that may have something."""

    def __init__(self, database: Database, reading: Reading, listen: Listen, *, process: str) -> None:
        self._database = database
        self._pages = Pages(database, reading)
        self._reading = reading
        self._listen = listen
        self._teller = process if reading.told else ""

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Self]:
        """Hear of news meanwhile."""
        tenant = await self._database.tenant()
        channels = {topic_channel(tenant, topic): topic for topic in self._reading.topics}
        async with self._listen(*channels) as wake:
            self._news = News(wake, channels, teller=self._teller)
            yield self

    def again(self) -> None:
        """Look at all of them, and do not wait."""
        self._pages.read_all = False
        self._news.look()

    async def take(self, held: Mapping[Slot, Holding], wait: float) -> list[tuple[Holding, Record]]:
        """The next records; none when there are none for so many seconds."""
        news: Collection[Slot] | None = None
        if self._pages.read_all:
            now = asyncio.get_running_loop().time()
            due = [max(h.retry_at - now, 0) for h in held.values() if h.retry_at and not h.leaving]
            news = await self._news.come(min([wait, *due]))
        else:
            self._news.looked()
        return await self._pages.next([h for h in held.values() if news is None or h.retry_at or h.slot in news])


class PostgresFeed:
    """The partitions that one member of a group owns, and their records."""

    def __init__(self, database: Database, group: str, reading: Reading, listen: Listen, wakes: Wakes) -> None:
        self.member: UUID = uuid7()
        self.positions = Positions(database, group, self.member)
        self._database = database
        self._reading = reading
        self._members = Membership(database, group, self.member, reading.topics, reading.lease)
        self._looking = Looking(database, reading, listen, process=wakes.name)
        self._listen = listen
        self._wakes = wakes
        self._held: dict[Slot, Holding] = {}
        self._in_hand: set[Slot] = set()
        self._leaving: dict[Slot, float] = {}  # since when
        self._renewed = 0.0
        self._changed = asyncio.Event()  # of the group, or of what is in hand
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        tenant = await self._database.tenant()
        self._group_channel = group_channel(tenant, self.positions.group)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._looking.listening())
            self._changed = await stack.enter_async_context(self._listen(self._group_channel))
            await self._beat()
            self._stack = stack.pop_all()
        self._keeping = asyncio.create_task(self._keep(), name="holdfast group member")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._keeping.cancel()
        try:
            await asyncio.wait([self._keeping])
            with contextlib.suppress(HoldfastError):  # whoever cannot be told waits for the lease to run out
                await self._members.leave()
                self._wakes.send(self._group_channel)
        finally:
            self._held.clear()
            await self._stack.aclose()

    @property
    def holdings(self) -> Mapping[Slot, Holding]:
        """The partitions it owns."""
        return self._held

    async def take(self, wait: float) -> list[tuple[Holding, Record]]:
        """The next records; none when there are none for so many seconds."""
        return await self._looking.take(self._held, wait)

    def rewind(self, holding: Holding, wait: float) -> None:
        """Deliver again from the holding's position, after so many seconds."""
        holding.generation += 1
        holding.next = holding.position
        holding.retry_at = asyncio.get_running_loop().time() + wait
        self._looking.again()

    def lose(self, holding: Holding) -> None:
        """The partition turned out to be another's."""
        if self._held.get(holding.slot) is holding:
            del self._held[holding.slot]
            self._changed.set()

    def hold(self, slots: set[Slot]) -> None:
        """Records of these partitions, and of no other, are in hand."""
        self._in_hand = slots
        if not slots and self._leaving:
            self._changed.set()

    async def _keep(self) -> None:
        """Renew the lease, and take and give partitions as members come and go."""
        lease = self._reading.lease.total_seconds()
        while True:
            await until(self._changed, lease / 3)
            try:
                await self._beat()
            except HoldfastError as error:
                log.warning("the group %s cannot be told that this consumer lives: %s", self.positions.group, error)
                if asyncio.get_running_loop().time() > self._renewed + lease:
                    self._held.clear()  # others may have them by now
                await asyncio.sleep(min(lease / 10, 1))

    async def _beat(self) -> None:
        started = asyncio.get_running_loop().time()
        async with self._database.transaction() as tx:
            group = await self._members.beat(tx)
            wanted = self._wanted(group)
            own = {slot: group.epochs[slot] for slot, owner in group.owners.items() if owner == self.member}
            for slot in [slot for slot, h in self._held.items() if own.get(slot) != h.epoch]:
                del self._held[slot]
            free = self._free(wanted)
            for slot in free:
                del self._held[slot]
            # Also what is ours and not held: a beat before this one may have failed, or a commit been unheard of.
            unwanted = {slot: epoch for slot, epoch in own.items() if slot not in wanted and slot not in self._held}
            await self.positions.release(unwanted, tx=tx)
            missing = [slot for slot in wanted if slot not in self._held]
            taken = await self.positions.claim(missing, start=self._reading.start, tx=tx)
        for holding in taken:
            holding.retry_at += started
            self._held[holding.slot] = holding
        self._renewed = started
        if taken:
            self._looking.again()
        if unwanted or group.changed:
            self._wakes.send(self._group_channel)

    def _wanted(self, group: Group) -> set[Slot]:
        owners = {slot: owner for slot, owner in group.owners.items() if owner is not None}
        shared = share(group.members, list(group.owners), owners)
        return {slot for slot, owner in shared.items() if owner == self.member}

    def _free(self, wanted: set[Slot]) -> list[Slot]:
        """What another shall have, and nothing of it is in hand, or has been for too long."""
        now = asyncio.get_running_loop().time()
        self._leaving = {slot: self._leaving.get(slot, now) for slot in self._held if slot not in wanted}
        for slot, holding in self._held.items():
            if holding.leaving and slot not in self._leaving and slot not in self._in_hand:
                self.rewind(holding, max(holding.retry_at - now, 0))  # it stays, and what was left out is read again
            holding.leaving = slot in self._leaving
        free = [slot for slot, since in self._leaving.items() if slot not in self._in_hand or now > since + HANDOVER]
        for slot in free:
            del self._leaving[slot]
        return free


class OpenFeed:
    """Everything of some topics from now on, without a group: every reader has all of it, and keeps no position."""

    def __init__(self, database: Database, reading: Reading, listen: Listen, wakes: Wakes) -> None:
        self._database = database
        self._reading = reading
        self._looking = Looking(database, reading, listen, process=wakes.name)
        self._stack = AsyncExitStack()
        self._held: dict[Slot, Holding] = {}

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._looking.listening())
            for row in await self._database.all(sql("ends"), list(self._reading.topics)):
                slot = Slot(row["topic"], row["partition"])
                start = row["next_offset"] if self._reading.start == "end" else 0
                self._held[slot] = Holding(slot, 0, start, start, None, 0, None)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def holdings(self) -> Mapping[Slot, Holding]:
        """All partitions."""
        return self._held

    async def take(self, wait: float) -> list[tuple[Holding, Record]]:
        """The next records; none when there are none for so many seconds."""
        return await self._looking.take(self._held, wait)

    def rewind(self, holding: Holding, wait: float) -> None:
        """Nothing is delivered again."""

    def lose(self, holding: Holding) -> None:
        """Nothing is lost."""

    def hold(self, slots: set[Slot]) -> None:
        """Nobody waits for what is in hand."""
