"""Consuming: stored records, read and decoded."""

import itertools

from measure.flows import Flow, Meter, in_turns
from measure.rounds import Server
from peers.queue_skip_locked import Queue
from peers.records import PARTITIONS, Bare, filling

from holdfast.engine import Engine
from parts import SUBSCRIBE, Case, Found

READ = "the bare statement, by offset"
CLAIM = "skip locked queue: claim and delete 500"
SPARE = 2000  # records more than are asked for: what comes while a group is joined is not measured

_groups = itertools.count()


def subscribing(engine: Engine, topic: str) -> Flow:
    """A new group reads and commits, batch by batch; joining it is not measured."""

    async def flow(meter: Meter, records: int) -> int:
        done = 0
        async with engine.log.subscribe([topic], group=f"reader-{next(_groups)}") as subscription:
            await subscription.commit(*await subscription.batch())
            with meter:
                while done < records:
                    batch = await subscription.batch()
                    await subscription.commit(*batch)
                    done += len(batch)
        return done

    return flow


async def consuming(engine: Engine, floor: Bare, peer: Queue, *, records: int, rounds: int, server: Server) -> Found:
    """Stored records, decoded."""
    await engine.log.create("stored", partitions=PARTITIONS)
    async with filling(engine, "stored", records + SPARE):
        pass
    async with engine.postgres.owner() as owner:
        await owner.script("analyze public.record")
    ways = {READ: floor.reading("stored"), SUBSCRIBE: subscribing(engine, "stored"), CLAIM: peer.taking()}
    cases = {Case("consume", f"{records:,} records"): ways}
    return Found(await in_turns(cases, rounds=rounds, records=records, meter=Meter(server)))
