"""Publishes records: `producer.py LEDGER TOPIC WRITERS`, one task and one key for each writer.

The environment says where. Each line of the ledger is a record that was acknowledged: its key, number, partition,
offset and id. A writer that does not know whether its record was stored publishes it again with the same number;
SIGTERM ends it.
"""

import asyncio
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from holdfast.bus import Record
from holdfast.core.errors import HoldfastError, Overloaded, Unavailable
from holdfast.engine import Engine, open_engine

AWAY = (Unavailable, Overloaded)


async def write(engine: Engine, ledger: Path, topic: str) -> None:
    """Publish one record after the other for ever, all with one key."""
    key = uuid4().hex
    number = 0
    with ledger.open("ab", buffering=0) as acknowledged:
        while True:
            record = await published(engine, topic, key, number)
            acknowledged.write(f"{key} {number} {record.partition} {record.offset} {record.id}\n".encode())
            number += 1


async def published(engine: Engine, topic: str, key: str, number: int) -> Record:
    """Publish it until it is known to be stored."""
    while True:
        with suppress(*AWAY):  # not known whether it was: the same number again
            return await publish(engine, topic, key, number)


async def publish(engine: Engine, topic: str, key: str, number: int) -> Record:
    """By a call alone or in a transaction, at times one that comes after another that was rolled back."""
    way = random.randrange(4)
    if way == 0:
        with suppress(KeyError):
            async with engine.transaction() as tx:
                await engine.log.publish(topic, key=key, value=-1, tx=tx)
                raise KeyError
    if way == 1:
        async with engine.transaction() as tx:
            return await engine.log.publish(topic, key=key, value=number, tx=tx)
    return await engine.log.publish(topic, key=key, value=number)


async def main(ledger: str, topic: str, writers: str) -> None:
    """Open the engine, and write until told to end."""
    async with open_engine() as engine:
        writing = asyncio.gather(*(write(engine, Path(ledger), topic) for _ in range(int(writers))))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, writing.cancel)
        with suppress(asyncio.CancelledError):
            await writing


if __name__ == "__main__":
    while True:
        try:
            asyncio.run(main(*sys.argv[1:]))
        except HoldfastError as error:
            if isinstance(error, AWAY):
                continue
            raise
        break
