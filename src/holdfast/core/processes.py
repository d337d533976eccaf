"""Runs a function in a process of its own: for work that would hold the interpreter lock for long.

A decoder in C never releases the lock, so a thread is no help: the event loop waits until the decoder is done.

The input may be hostile. So each process has limits of time and memory, and a tenant can take half of the places.
"""

import asyncio
import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.core.errors import Overloaded, TimedOut, TooLarge, Unavailable
from holdfast.core.shares import Shares, current_holder
from holdfast.core.threads import run_in_thread

MAX_RUNNING = 2  # processes at a time; further calls wait
TENANT_SHARE = 0.5  # of them: one tenant's slow calls do not delay those of others
WAIT = 120.0  # seconds for which a call waits for a place
SECONDS = 90.0  # that a process may take
MEMORY = 2_000_000_000  # bytes of address space of a process
MAX_RESULT_BYTES = 250_000_000
_SMALLER = "Make the input smaller, or divide it."


class ProcessCalls:
    """Calls functions in processes, a few at a time. The holder of the task (`core.shares`) holds a place."""

    def __init__(
        self, most: int = MAX_RUNNING, *, wait: float = WAIT, seconds: float = SECONDS, memory: int = MEMORY
    ) -> None:
        self._places = Shares("processes for large tasks", most, setting="", tenant_share=TENANT_SHARE)
        self._wait = wait
        self._seconds = seconds
        self._memory = memory

    async def call(self, function: Callable[..., Iterable[Any]], *arguments: object) -> list[Any]:
        """Call a function of a module, and return the items of its result. Raises what it raises.

        Each item is pickled by itself, so that reading a large result lets other threads run. If the caller is
        cancelled, the process is killed.
        """
        if not self._places.try_acquire(holder := current_holder()):
            try:
                await self._places.wait(holder, self._wait)
            except Overloaded as error:
                raise Overloaded(error.what, why=error.why, retry_after=self._wait) from None  # no setting raises it
        try:
            call = await run_in_thread(lambda: pickle.dumps((function, arguments, self._limits)), name="pickle")
            written = await _run(call, self._seconds)
        finally:
            self._places.release(holder)
        error, items = await run_in_thread(lambda: _read(written), name="unpickle")
        if isinstance(error, MemoryError):
            why = f"it needs more than {self._memory:,} bytes of memory"
            raise TooLarge("the task is too large", why=why, next=_SMALLER)
        if error is not None:
            raise error
        return items

    @property
    def _limits(self) -> tuple[int, int]:
        return int(self._seconds) + 1, self._memory


async def _run(call: bytes, seconds: float) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C is for its caller
    )
    try:
        async with asyncio.timeout(seconds):
            written, _ = await process.communicate(call)
    except TimeoutError:
        raise _too_slow(seconds) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == -signal.SIGXCPU:
        raise _too_slow(seconds)
    if process.returncode:
        raise Unavailable(
            "the process for a large task ended before its result",
            why=f"its exit code is {process.returncode}",
            next=f"Try again. If it fails again, it needs too much memory. {_SMALLER}",
        )
    return written


def _too_slow(seconds: float) -> TimedOut:
    return TimedOut("the large task was stopped", why=f"it took more than {seconds:g} seconds", next=_SMALLER)


def _read(written: bytes) -> tuple[Exception | None, list[Any]]:
    error, pieces = pickle.loads(written)  # noqa: S301 - our own process wrote it
    return error, [pickle.loads(piece) for piece in pieces]  # noqa: S301


def _main() -> None:
    function, arguments, limits = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - our own process wrote it
    _limit(*limits)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a function prints is no result
    error: Exception | None = None
    pieces: list[bytes] = []
    try:
        pieces = _pickled(function(*arguments))
    except Exception as raised:  # noqa: BLE001 - the caller gets every exception
        error = raised
    with output:
        output.write(pickle.dumps((error, pieces)))


def _limit(seconds: int, memory: int) -> None:
    """Limit this process. The time holds, too, if its parent dies before it could end it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    if sys.platform == "linux":  # others do not count address space, or refuse the limit
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _pickled(items: Iterable[Any]) -> list[bytes]:
    pieces: list[bytes] = []
    size = 0
    for item in items:
        pieces.append(pickle.dumps(item))
        size += len(pieces[-1])
        if size > MAX_RESULT_BYTES:
            raise TooLarge("the result is too large", why=f"it has more than {MAX_RESULT_BYTES:,} bytes", next=_SMALLER)
    return pieces


if __name__ == "__main__":
    _main()
