"""Remembers many texts at once, over and over: `rememberer.py COUNT`, so many in each call; the environment says where.

It says `begins NUMBER` before a call, and `done NUMBER` when it has returned.
"""

import asyncio
import sys
from itertools import count

from holdfast.engine import open_engine
from holdfast.memory import user


async def main(size: int) -> None:
    """Remember batch after batch, until killed."""
    async with open_engine() as engine:
        for number in count():
            sys.stdout.write(f"begins {number}\n")
            sys.stdout.flush()
            await engine.memory.remember_many(user("ann"), [f"batch {number} text {n}" for n in range(size)])
            sys.stdout.write(f"done {number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
