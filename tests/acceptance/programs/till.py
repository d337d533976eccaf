"""A till in several processes: `till.py serve|work|call`; the environment says where.

`serve` serves an agent whose tool `pay` goes to workers, `work` is such a worker, `call` calls the tool `settle` by
itself. Each use of a tool is a line in the file `used`, with its key and the process; while there is a file `hold` it
comes no further.
"""

import asyncio
import logging
import os
import sys
from pathlib import Path

import holdfast
from holdfast.engine import Engine, open_engine

app = holdfast.App("till")


@app.tool(mode="event")
async def pay(bill: str, run: holdfast.Run) -> dict[str, str]:
    """Pay a bill."""
    return await use("pay", bill, run)


@app.tool
async def settle(bill: str, run: holdfast.Run) -> dict[str, str]:
    """Settle a bill."""
    return await use("settle", bill, run)


app.agent("support", instructions="You help customers of a shop.", tools=[pay, settle])


async def use(tool: str, bill: str, run: holdfast.Run) -> dict[str, str]:
    """Use a tool, and say so."""
    note(f"{tool} {run.key} {os.getpid()}")
    say(f"{tool} begins")
    while Path("hold").exists():  # noqa: ASYNC110 - another process removes it
        await asyncio.sleep(0.01)
    return {tool: bill}


def note(line: str) -> None:
    """Write a line that outlives this process."""
    with Path("used").open("a") as ledger:
        ledger.write(f"{line}\n")


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def play(engine: Engine, part: str) -> None:
    """Do what it is here for, until it is killed."""
    match part:
        case "serve":
            async with engine.serving(app):
                say("serves")
                await asyncio.Event().wait()
        case "work":
            async with engine.worker(app):
                say("works")
                await asyncio.Event().wait()
        case _:
            async with engine.serving(app):
                await engine.executions.call("settle", {"bill": "7"}, user="ann", key="bill-7")


async def main(part: str) -> None:
    """Play a part."""
    logging.basicConfig(level="WARNING")
    async with open_engine() as engine:
        await play(engine, part)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
