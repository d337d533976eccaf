"""Opens an engine, which relays records, until it is killed: `relays.py [stop]`; the environment says where.

With `stop` it stops itself, as a machine does that hangs, when it has read records and not yet sent them; when it goes
on, it says `moved` after it has tried to move its positions.
"""

import asyncio
import os
import signal
import sys

from holdfast.bus.kafka.relay import Relay
from holdfast.engine import open_engine

step, produce = Relay._step, Relay._produce  # pyright: ignore[reportPrivateUsage]


async def hang(relay: Relay, *arguments: object) -> object:
    """Stop before the first record is sent."""
    Relay._produce = produce  # pyright: ignore[reportPrivateUsage]
    os.kill(os.getpid(), signal.SIGSTOP)
    return await produce(relay, *arguments)  # pyright: ignore[reportArgumentType]


async def tell(relay: Relay) -> bool:
    """Say when a step is done."""
    sent = await step(relay)
    if sent:
        sys.stdout.write("moved\n")
        sys.stdout.flush()
    return sent


async def main(how: str = "") -> None:
    """Relay for ever."""
    Relay._step = tell  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    if how == "stop":
        Relay._produce = hang  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    async with open_engine():
        sys.stdout.write("open\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
