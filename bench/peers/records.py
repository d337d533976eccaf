"""The records that every log and queue carries, and PostgreSQL's tables of ours without our code: the floor."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import msgspec
from measure.flows import Flow, Meter

from holdfast.bus.records import hash_of
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.postgres.tenancy import ensure_login
from peers import CONNECTIONS

PARTITIONS = 16
PAGE = 500
VALUE = {"text": ("What users must never lose is what was said. " * 22)[:950], "step": 1}  # about a kilobyte
HEADERS = '{"content-type":"application/json"}'

WRITE = """
with counted as (
  update topic_partition set next_offset = next_offset + 1, last_at = greatest(last_at, now())
  where tenant_id = $1 and topic = $2 and partition = $3 returning next_offset - 1 as "offset", last_at
)
insert into record (tenant_id, topic, partition, "offset", at, id, key, headers, value, bytes)
select $1, $2, $3, "offset", last_at, $4, $5, $6, $7, $8 from counted returning "offset", at
"""
READ = """
select "offset", at, id, key, headers, value from record
where tenant_id = $1 and topic = $2 and partition = $3 and "offset" >= $4 order by "offset" limit $5
"""
# Thousands need not be published one by one.
FILL = """
with counted as (
  update public.topic_partition set next_offset = next_offset + $3::bigint
  where tenant_id = $1 and topic = $2 returning partition, next_offset - $3 as first
)
insert into public.record (tenant_id, topic, partition, "offset", at, id, key, headers, value, bytes)
select $1, $2, partition, first + number, now(), holdfast.uuid7(), 'key-' || partition, $4::json, $5::json, 1100
from counted, generate_series(0, $3 - 1) number order by partition, number
"""


def encoded(step: int = 1) -> bytes:
    """A record's value as JSON."""
    return msgspec.json.encode({**VALUE, "step": step})


@asynccontextmanager
async def filling(engine: Engine, topic: str, records: int) -> AsyncGenerator[int]:
    """Publish at least so many in a transaction, which commits in the end; how many they are."""
    each = -(-records // PARTITIONS)
    connection = await cast(Callable[..., Awaitable[Any]], asyncpg.connect)(engine.place.owner_url)
    async with connection.transaction():
        await connection.execute(FILL, await engine.database.tenant(), topic, each, HEADERS, encoded().decode())
        yield each * PARTITIONS
    await connection.close()


class Connections:
    """Plain connections that many share; what a pool would do when one comes back is not done."""

    def __init__(self, free: asyncio.LifoQueue[Any]) -> None:
        self._free = free

    async def fetch(self, statement: str, *arguments: object) -> Any:
        """The rows of a statement that commits by itself, on any connection."""
        connection = await self._free.get()
        try:
            return await connection.fetch(statement, *arguments)
        finally:
            self._free.put_nowait(connection)


@asynccontextmanager
async def connections(url: str, **settings: Any) -> AsyncGenerator[Connections]:
    """As many as our engine's pool has."""
    connect = cast(Callable[..., Awaitable[Any]], asyncpg.connect)
    free: asyncio.LifoQueue[Any] = asyncio.LifoQueue()
    every = [await connect(url, **settings) for _ in range(CONNECTIONS)]
    for connection in every:
        free.put_nowait(connection)
    yield Connections(free)
    for connection in every:
        await connection.close()


@dataclass(frozen=True, slots=True)
class Bare:
    """The tables of our log without our code, as the role and under the security that our own statements have."""

    tenant: UUID
    free: Connections

    async def publish(self, topic: str, key: str, value: object = VALUE) -> None:
        """Write one record and commit."""
        body = msgspec.json.encode(value).decode()
        place = hash_of(key) % PARTITIONS
        await self.free.fetch(WRITE, self.tenant, topic, place, uuid7(), key, HEADERS, body, len(body))

    def reading(self, topic: str) -> Flow:
        """Read by offset and decode, page by page; no position is kept."""

        async def flow(meter: Meter, records: int) -> int:
            done = 0
            with meter:
                for partition in range(PARTITIONS):
                    position = 0
                    while page := await self.free.fetch(READ, self.tenant, topic, partition, position, PAGE):
                        for row in page:
                            msgspec.json.decode(row["headers"])
                            msgspec.json.decode(row["value"])
                        position = page[-1]["offset"] + 1
                        done += len(page)
                        if done >= records:
                            return done
            return done

        return flow


@asynccontextmanager
async def bare(engine: Engine) -> AsyncGenerator[Bare]:
    """The same database, by plain connections."""
    tenant = await engine.database.tenant()
    async with engine.postgres.owner() as owner:
        login = await ensure_login(owner, engine.place.owner_url, by_account=True)
    settings = {"role": "holdfast_app", "holdfast.tenant": str(tenant)}
    async with connections(login, server_settings=settings) as free:
        yield Bare(tenant, free)
