"""Consumes records: `consumer.py TOPIC GROUP [HOLD]`, each effect a row, committed with the position.

The environment says where. With HOLD it says `holds NUMBER` of each record, waits for SIGUSR1 before the effect, and
says what became of it. SIGTERM ends it.
"""

import asyncio
import signal
import sys
from contextlib import suppress

from holdfast.bus import Record, Subscription
from holdfast.core.errors import Busy, HoldfastError, Overloaded, Unavailable
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import Transaction

ADD = """
insert into effect (tenant_id, topic, partition, "offset", key, value, by) values ($1, $2, $3, $4, $5, $6, $7)
"""


async def effect(tx: Transaction, record: Record) -> None:
    """Do what is to be done about a record."""
    await tx.run(ADD, record.topic, record.partition, record.offset, record.key, record.value, "")


async def consume(engine: Engine, records: Subscription, go_on: asyncio.Event | None) -> None:
    """One record after the other, for ever."""
    async for record in records:
        if go_on is None:
            async with records.handle(record) as tx:
                await effect(tx, record)
            continue
        sys.stdout.write(f"holds {record.value}\n")
        sys.stdout.flush()
        await go_on.wait()
        go_on.clear()
        try:
            async with engine.transaction() as tx:
                await effect(tx, record)
                await records.commit(record, tx=tx)
            outcome = "done"
        except Busy as refused:
            outcome = f"{refused.code}: {refused}"
        sys.stdout.write(f"{outcome}\n")
        sys.stdout.flush()


async def main(topic: str, group: str, hold: str = "") -> None:
    """Open the engine, and consume until told to end."""
    loop = asyncio.get_running_loop()
    go_on = asyncio.Event() if hold else None
    async with open_engine() as engine, engine.log.subscribe([topic], group=group) as records:
        consuming = asyncio.ensure_future(consume(engine, records, go_on))
        loop.add_signal_handler(signal.SIGTERM, consuming.cancel)
        if go_on is not None:
            loop.add_signal_handler(signal.SIGUSR1, go_on.set)
        with suppress(asyncio.CancelledError):
            await consuming


if __name__ == "__main__":
    while True:
        try:
            asyncio.run(main(*sys.argv[1:]))
        except HoldfastError as error:
            if isinstance(error, Unavailable | Overloaded):
                continue
            raise
        break
