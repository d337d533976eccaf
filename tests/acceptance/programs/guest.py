"""Uses the engine: `guest.py DATA`.

Says `open` when it is, `answered` for each SIGUSR1 when the database did, ends at SIGTERM; an error ends it with the
error's code, text and exit code. A database that goes away in the middle of an answer is asked again.
"""

import asyncio
import signal
import sys
from typing import TextIO

from holdfast.core.errors import DatabaseAway, HoldfastError
from holdfast.core.wires import EXIT_CODE
from holdfast.engine import open_engine


def say(stream: TextIO, line: str) -> None:
    """Say it now: whoever started this waits for it."""
    stream.write(f"{line}\n")
    stream.flush()


async def main(data: str) -> None:
    """Stay until told to go."""
    loop = asyncio.get_running_loop()
    asked, leaving = asyncio.Event(), asyncio.Event()
    async with open_engine(data=data, progress=lambda line: say(sys.stderr, line)) as engine:
        loop.add_signal_handler(signal.SIGUSR1, asked.set)
        loop.add_signal_handler(signal.SIGTERM, lambda: (leaving.set(), asked.set()))
        say(sys.stdout, "open")
        while await asked.wait() and not leaving.is_set():
            asked.clear()
            try:
                await engine.database.now()
            except DatabaseAway:
                asked.set()
            else:
                say(sys.stdout, "answered")


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except HoldfastError as error:
        say(sys.stderr, f"{error.code}: {error}")
        sys.exit(EXIT_CODE[error.code])
