"""A queue in a table, as people write it: `for update skip locked`, and what is done is deleted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
from measure.flows import Flow, Meter

from peers.records import PAGE, VALUE, Connections, connections, encoded

TABLES = ("queue", "sent", "stored")  # to send and take, only to send, and to take many at once from

CREATE = """
create table {} (
  id bigint generated always as identity primary key,
  payload json not null,
  created_at timestamptz not null default now()
)
"""
SEND = "insert into {} (payload) values ($1)"
CLAIM = """
delete from queue where id = (select id from queue order by id for update skip locked limit 1) returning payload
"""
CLAIM_MANY = """
delete from stored where id in (select id from stored order by id for update skip locked limit $1) returning payload
"""
FILL = "insert into stored (payload) select $1::json from generate_series(1, $2::bigint)"


@dataclass(frozen=True, slots=True)
class Queue:
    """A table of payloads."""

    free: Connections

    async def send(self, table: str = "sent") -> None:
        """One payload, one commit."""
        await self.free.fetch(SEND.format(table), msgspec.json.encode(VALUE).decode())

    async def carry(self) -> None:
        """Send one, and take one: two commits."""
        await self.send("queue")
        for row in await self.free.fetch(CLAIM):
            msgspec.json.decode(row["payload"])

    def taking(self) -> Flow:
        """Take what is stored, a page and a commit at a time."""

        async def flow(meter: Meter, records: int) -> int:
            await self.free.fetch("truncate stored")
            await self.free.fetch(FILL, encoded().decode(), records)
            await self.free.fetch("analyze stored")
            with meter:
                while page := await self.free.fetch(CLAIM_MANY, PAGE):
                    for row in page:
                        msgspec.json.decode(row["payload"])
            return records

        return flow


@asynccontextmanager
async def queue(url: str) -> AsyncGenerator[Queue]:
    """An empty one in this database."""
    async with connections(url) as free:
        for table in TABLES:
            await free.fetch(CREATE.format(table))
        yield Queue(free)
