"""With Kafka behind the log: to a real broker and from it, beside its own client."""

import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path

from measure.flows import Flow, Meter, Program, in_turns
from measure.rounds import Server
from peers import ROOT, our_engine
from peers.records import PARTITIONS, VALUE, filling

from holdfast.engine import Engine
from holdfast.postgres.folder import DataFolder
from parts import SUBSCRIBE, Case, Found
from parts.consuming import SPARE, subscribing

PRODUCERS = 256

CLIENT = "Kafka's own client"
RELAYED = "log.publish, then the relay"
RELAY = "the relay alone"


async def relayed(engine: Engine, topic: str, records: int) -> None:
    """Wait until the broker has acknowledged so many in all."""

    async def sent() -> int:
        return sum(lag.position for lag in await engine.log.lag(".relay") if lag.topic == topic)

    async with asyncio.timeout(120):
        while await sent() < records:  # noqa: ASYNC110 - no event tells of a position
            await asyncio.sleep(0.02)


def publishing_to_kafka(engine: Engine, topic: str) -> Flow:
    """Many producers publish; it is over when the broker has acknowledged all."""
    published = 0

    async def flow(meter: Meter, records: int) -> int:
        nonlocal published
        left = iter(range(records))

        async def produce(key: str) -> None:
            for step in left:
                await engine.log.publish(topic, key=key, value={**VALUE, "step": step})

        with meter:
            await asyncio.gather(*(produce(f"key-{number}") for number in range(PRODUCERS)))
            published += records
            await relayed(engine, topic, published)
        return records

    return flow


def relaying(engine: Engine, topic: str) -> Flow:
    """Many records are there at once; it is over when the broker has acknowledged all."""
    stored = 0

    async def flow(meter: Meter, records: int) -> int:
        nonlocal stored
        with ExitStack() as measured:
            async with filling(engine, topic, records) as added:
                measured.enter_context(meter)
            await engine.log.announce(topic)
            stored += added
            await relayed(engine, topic, stored)
        return added

    return flow


async def with_kafka(folder: Path, *, records: int, rounds: int) -> Found:
    """To a real broker and from it; the server's CPU is PostgreSQL's and the broker's."""
    sys.path.append(str(ROOT))
    from tests.kafka.broker import Broker, missing

    if lack := missing():
        return Found(left_out=f"KAFKA NOT MEASURED: {lack} not found; install what is missing")
    from peers.bare_kafka import consuming, make_topic, producing

    with Broker.start(folder / "broker", optimize=True) as broker:
        async with our_engine(folder / "data", url=f"kafka://{broker.address}") as engine:
            for topic in ("relayed", "relay", "stored"):
                await engine.log.create(topic, partitions=PARTITIONS)
            make_topic(broker.address, "bare")
            async with filling(engine, "stored", records + SPARE) as stored:
                pass
            await engine.log.announce("stored")
            await relayed(engine, "stored", stored)
            cases = {
                Case("publish to Kafka", f"{records:,} records"): {
                    CLIENT: producing(broker.address, "bare"),
                    RELAYED: publishing_to_kafka(engine, "relayed"),
                    RELAY: relaying(engine, "relay"),
                },
                Case("consume from Kafka", f"{records:,} records"): {
                    CLIENT: consuming(broker.address, "stored"),
                    SUBSCRIBE: subscribing(engine, "stored"),
                },
            }
            meter = Meter(Server(DataFolder(folder / "data").cluster), Program(broker.pid))
            return Found(await in_turns(cases, rounds=rounds, records=records, meter=meter))
