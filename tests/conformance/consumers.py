"""Consumers that come, go and die, and what they leave behind."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any, Protocol, Self

from holdfast.bus import Log, Record, Subscription
from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import Row, Transaction

PATIENCE = 60.0  # seconds that anything may take on a busy machine

TABLE = """
create table effect (
  number bigserial primary key, tenant_id uuid not null, topic text not null, partition int not null,
  "offset" bigint not null, key text, value jsonb not null, by text not null);
grant select, insert on effect to holdfast_app;
grant usage on sequence effect_number_seq to holdfast_app;
"""
ADD = """
insert into effect (tenant_id, topic, partition, "offset", key, value, by) values ($1, $2, $3, $4, $5, $6, $7)
"""
ALL = "select * from effect where tenant_id = $1 order by number"


class Effects:
    """What consumers did, in the order they did it: nothing keeps them from doing it twice but the log."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    async def create(cls, engine: Engine) -> Self:
        """Make the table."""
        async with engine.postgres.owner() as owner:
            await owner.script(TABLE)
        return cls(engine)

    @staticmethod
    async def add(tx: Transaction, record: Record, by: str = "") -> None:
        """Do something about a record."""
        await tx.run(ADD, record.topic, record.partition, record.offset, record.key, record.value, by)

    async def all(self) -> list[Row]:
        """Everything that was done."""
        return await self._engine.database.all(ALL)

    async def values(self) -> list[Any]:
        """The values it was done for."""
        return [row["value"] for row in await self.all()]


class Consumer:
    """One of a group, with an engine of its own, as another process has it."""

    def __init__(self, engine: Engine, records: Subscription, stack: AsyncExitStack) -> None:
        self.engine = engine
        self.records = records
        self._stack = stack

    @classmethod
    async def join(cls, config: Config, *topics: str, group: str) -> Self:
        """Open an engine, and join."""
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(open_engine(config=config))
            records = await stack.enter_async_context(engine.log.subscribe(topics, group=group))
            return cls(engine, records, stack.pop_all())

    async def leave(self) -> None:
        """Go, and say so."""
        await self._stack.aclose()

    async def crash(self) -> None:
        """Die: the group is not told, and what was in hand is not committed."""
        await self.engine.postgres.close()
        await self._stack.aclose()


class Join(Protocol):
    """Joins a group."""

    def __call__(self, *topics: str, group: str) -> Awaitable[Consumer]: ...


async def publish(log: Log, topic: str, values: Iterable[object], *, key: str | None = None) -> list[Record]:
    """Publish one after the other."""
    return [await log.publish(topic, key=key, value=value) for value in values]


async def take(records: Subscription, count: int) -> list[Record]:
    """The next records, so many."""
    taken: list[Record] = []
    async with asyncio.timeout(PATIENCE):
        while len(taken) < count:
            taken += await records.batch(count - len(taken))
    return taken


async def done(records: Subscription, count: int) -> list[Record]:
    """The next records, each committed."""
    taken: list[Record] = []
    async with asyncio.timeout(PATIENCE):
        while len(taken) < count:
            record = await anext(records)
            await records.commit(record)
            taken.append(record)
    return taken


async def handle_until(
    records: Subscription, work: Callable[[Record, Transaction], Awaitable[None]], enough: Callable[[], Awaitable[bool]]
) -> None:
    """Handle what comes, until it is enough."""

    async def go_on() -> None:
        async for record in records:
            async with records.handle(record) as tx:
                await work(record, tx)

    await while_working(go_on(), enough)


async def while_working(work: Awaitable[None], enough: Callable[[], Awaitable[bool]]) -> None:
    """Let it work until it is enough; what it raises is raised here."""
    task = asyncio.ensure_future(work)
    try:
        await until(enough, unless=task)
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(
    happened: Callable[[], Awaitable[bool]], *, unless: asyncio.Future[None] | None = None, within: float = PATIENCE
) -> None:
    """Wait until it has happened."""
    async with asyncio.timeout(within):
        while not await happened():
            if unless is not None and unless.done():
                unless.result()
            await asyncio.sleep(0.01)


async def positions(log: Log, group: str) -> dict[tuple[str, int], int]:
    """How far a group has read."""
    return {(lag.topic, lag.partition): lag.position for lag in await log.lag(group)}


def values(records: Iterable[Record]) -> list[Any]:
    """Their values."""
    return [record.value for record in records]
