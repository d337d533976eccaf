"""Reads a topic that is far behind: `reader.py TOPIC COUNT`; says how many bytes of memory it needed at most."""

import asyncio
import resource
import sys

from holdfast.engine import open_engine


async def main(topic: str, count: int) -> None:
    """Commit record by record, as a slow consumer does."""
    async with open_engine() as engine, engine.log.subscribe([topic], group="far-behind") as records:
        for number in range(count):
            record = await anext(records)
            if number % 50 == 0 or number >= count - 50:
                await records.commit(record)
    sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
