"""Runs a function in a process of its own: for work that would hold the interpreter lock for long.

A decoder in C never releases the lock, so a thread is no help: the event loop waits until the decoder is done.
"""

import asyncio
import os
import pickle
import sys
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.core.errors import Unavailable
from holdfast.core.threads import run_in_thread

MAX_RUNNING = 2  # processes at a time; further calls wait


class ProcessCalls:
    """Calls functions in processes, a few at a time."""

    def __init__(self, most: int = MAX_RUNNING) -> None:
        self._places = asyncio.Semaphore(most)

    async def call(self, function: Callable[..., Iterable[Any]], *arguments: object) -> list[Any]:
        """Call a function of a module, and return the items of its result. Raises what it raises.

        Each item is pickled by itself, so that reading a large result lets other threads run. If the caller is
        cancelled, the process is killed.
        """
        async with self._places:
            written = await _run(await run_in_thread(lambda: pickle.dumps((function, arguments)), name="pickle"))
        error, items = await run_in_thread(lambda: _read(written), name="unpickle")
        if error is not None:
            raise error
        return items


async def _run(call: bytes) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C is for its caller
    )
    try:
        written, _ = await process.communicate(call)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Unavailable(
            "the process for a large task ended before its result",
            why=f"its exit code is {process.returncode}",
            next="Try again; if it fails again, the machine may have too little memory.",
        )
    return written


def _read(written: bytes) -> tuple[Exception | None, list[Any]]:
    error, pieces = pickle.loads(written)  # noqa: S301 - our own process wrote it
    return error, [pickle.loads(piece) for piece in pieces]  # noqa: S301


def _main() -> None:
    function, arguments = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - our own process wrote it
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a function prints is no result
    error: Exception | None = None
    pieces: list[bytes] = []
    try:
        pieces = [pickle.dumps(item) for item in function(*arguments)]
    except Exception as raised:  # noqa: BLE001 - the caller gets every exception
        error = raised
    with output:
        output.write(pickle.dumps((error, pieces)))


if __name__ == "__main__":
    _main()
