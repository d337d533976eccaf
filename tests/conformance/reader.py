"""Reads a topic that is far behind: `reader.py TOPIC COUNT`; says how many bytes of memory it needed at most."""

import asyncio
import sys
from pathlib import Path

from holdfast.engine import open_engine


async def main(topic: str, count: int) -> None:
    """Commit record by record, as a slow consumer does."""
    async with open_engine() as engine, engine.log.subscribe([topic], group="far-behind") as records:
        for number in range(count):
            record = await anext(records)
            if number % 50 == 0 or number >= count - 50:
                await records.commit(record)
    sys.stdout.write(f"{peak()}\n")


def peak() -> int:
    """The most memory that this program has had; what getrusage tells begins with its parent's."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
