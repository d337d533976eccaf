"""Subscribers in a process of their own: how long each record took from its publishing into a consumer's hands.

    subscriber.py DATA TOPIC SUBSCRIBERS

Says `ready`, then a line of JSON for every line that it is given: so many records are awaited by each subscriber.
"""

import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop
from peers import our_engine

from holdfast.bus import Subscription


async def follow(records: Subscription, number: int) -> list[float]:
    """The seconds that each of so many records took."""
    took: list[float] = []
    while len(took) < number:
        batch = await records.batch()
        now = time.monotonic()  # one clock for all processes
        took += [now - record.value["at"] for record in batch]
        for record in {record.partition: record for record in batch}.values():
            await records.commit(record)
    return took


async def main(data: Path, topic: str, subscribers: int) -> None:
    """Serve until there are no more lines."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(our_engine(data))
        groups = [f"{topic}-{number}" for number in range(subscribers)]
        every = [await stack.enter_async_context(engine.log.subscribe([topic], group=group)) for group in groups]
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            took = await asyncio.gather(*(follow(records, int(line)) for records in every))
            print(json.dumps([seconds for one in took for seconds in one]), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
