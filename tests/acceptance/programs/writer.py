"""Writes rows with growing numbers: `writer.py DATA LEDGERS NAME…`, one task for each name.

Each number goes into the file LEDGERS/NAME as soon as the database has acknowledged its row. A writer that starts again
goes on after the last number in its file; SIGTERM ends it.
"""

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

from holdfast.core.errors import DatabaseAway
from holdfast.engine import Engine, open_engine

INSERT = """
insert into written (tenant_id, writer, number, content) values ($1, $2, $3, $4)
on conflict do nothing
"""
WIDTH = len(b"00000000\n")


async def write(engine: Engine, ledger: Path) -> None:
    """Write one row after the other for ever."""
    with ledger.open("ab", buffering=0) as acknowledged:
        number = acknowledged.tell() // WIDTH + 1
        while True:
            try:
                await insert(engine, ledger.name, number)
            except DatabaseAway:
                continue  # whether it took effect is not known: the same number again
            acknowledged.write(b"%08d\n" % number)
            number += 1


async def insert(engine: Engine, name: str, number: int) -> None:
    """Write one row: odd numbers by a statement alone, even ones in a transaction."""
    content = f"{name} wrote {number}; " * 10
    if number % 2:
        await engine.database.run(INSERT, name, number, content)
        return
    async with engine.transaction() as tx:
        await tx.run(INSERT, name, number, content)


async def main(data: str, ledgers: str, *names: str) -> None:
    """Open the engine, and write until told to end."""
    async with open_engine(data=data) as engine:
        writers = asyncio.gather(*(write(engine, Path(ledgers, name)) for name in names))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, writers.cancel)
        with suppress(asyncio.CancelledError):
            await writers


if __name__ == "__main__":
    while True:
        try:
            asyncio.run(main(*sys.argv[1:]))
        except DatabaseAway:
            continue
        break
