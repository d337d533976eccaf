"""Delivering: from the call of publish to consumers in another process, beside the commit alone."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from measure.flows import Meter
from measure.helpers import helper
from measure.rounds import Server
from peers.records import PARTITIONS, VALUE, Bare

from holdfast.engine import Engine
from parts import FLOOR, Case, Found

SUBSCRIBERS = (1, 10)
RATE = 100  # records a second

ACKNOWLEDGED = "log.publish: acknowledged"
IN_HAND = "log.publish: in a consumer's hands"


async def steadily(number: int, publish: Callable[[float], Awaitable[object]]) -> list[float]:
    """Publish so many at the rate, each with the time it began, whether or not the ones before are done."""

    async def one() -> float:
        start = time.monotonic()
        await publish(start)
        return time.monotonic() - start

    begun = time.monotonic()
    tasks: list[asyncio.Task[float]] = []
    for place in range(number):
        await asyncio.sleep(begun + place / RATE - time.monotonic())
        tasks.append(asyncio.create_task(one()))
    return await asyncio.gather(*tasks)


async def delivering(engine: Engine, floor: Bare, data: Path, *, rounds: int, seconds: float, server: Server) -> Found:
    """How long it takes with one subscriber and with several, each a group of its own."""
    found = Found()
    number = max(10, int(RATE * seconds / rounds / 2 / len(SUBSCRIBERS)))
    await engine.log.create("alone", partitions=PARTITIONS)
    for count in SUBSCRIBERS:
        case, topic = Case(f"deliver {RATE}/s", f"{count} subscribers"), f"delivered-{count}"
        waits = found.waits[case] = {FLOOR: [], ACKNOWLEDGED: [], IN_HAND: []}
        costs = found.costs[case] = {FLOOR: [], IN_HAND: []}
        await engine.log.create(topic, partitions=PARTITIONS)

        def alone(at: float) -> Awaitable[object]:
            return floor.publish("alone", str(at), {**VALUE, "at": at})

        def delivered(at: float, topic: str = topic) -> Awaitable[object]:
            return engine.log.publish(topic, key=str(at), value={**VALUE, "at": at})

        async with helper("subscriber", str(data), topic, str(count)) as reader:
            meter = Meter(server, helpers=[reader])
            for _ in range(rounds):
                with meter:
                    waits[FLOOR] += await steadily(number, alone)
                costs[FLOOR].append(meter.per(number))
                reader.ask(str(number))
                with meter:
                    waits[ACKNOWLEDGED] += await steadily(number, delivered)
                    waits[IN_HAND] += json.loads(await reader.answer())
                costs[IN_HAND].append(meter.per(number))
    return found
