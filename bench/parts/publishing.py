"""Publishing: acknowledged records, by number of producers."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from measure.rounds import Operation, Server, in_rounds
from peers.queue_skip_locked import Queue
from peers.records import PARTITIONS, VALUE, Bare

from holdfast.engine import Engine
from parts import FLOOR, Case, Found

PRODUCERS = (1, 16, 256)

PUBLISH = "log.publish"
PROCESSED = "log.publish, and a group commits it"
SEND = "skip locked queue: send"
CARRY = "skip locked queue: send, claim, delete"


@asynccontextmanager
async def consumer(engine: Engine, topic: str) -> AsyncGenerator[None]:
    """A group that takes what is published meanwhile; in the end it has taken all."""

    async def consume() -> None:
        async with engine.log.subscribe([topic], group="bench") as records:
            while True:
                await records.commit(*await records.batch())

    consuming = asyncio.create_task(consume())
    yield
    async with asyncio.timeout(60):
        while sum(lag.lag for lag in await engine.log.lag("bench")):  # noqa: ASYNC110 - no event tells of a position
            await asyncio.sleep(0.1)
    consuming.cancel()
    await asyncio.wait([consuming])


async def publishing(engine: Engine, floor: Bare, peer: Queue, *, rounds: int, seconds: float, server: Server) -> Found:
    """Acknowledged records, by number of producers; each has a key of its own."""
    for topic in ("floor", "published", "processed"):
        await engine.log.create(topic, partitions=PARTITIONS)
    keys = [f"key-{number}" for number in range(max(PRODUCERS))]
    ways: Mapping[str, list[Operation]] = {
        FLOOR: [lambda key=key: floor.publish("floor", key) for key in keys],
        PUBLISH: [lambda key=key: engine.log.publish("published", key=key, value=VALUE) for key in keys],
        PROCESSED: [lambda key=key: engine.log.publish("processed", key=key, value=VALUE) for key in keys],
        SEND: [peer.send for _ in keys],
        CARRY: [peer.carry for _ in keys],
    }
    cases = {
        Case("publish", f"{count} producers"): {way: every[:count] for way, every in ways.items()}
        for count in PRODUCERS
    }
    async with consumer(engine, "processed"):
        return Found(await in_rounds(cases, rounds=rounds, seconds=seconds, server=server))
