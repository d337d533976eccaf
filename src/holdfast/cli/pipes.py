"""Pipes: standard input and output of a process that speaks a protocol over them, one message a line.

What the process prints otherwise goes to standard error, and what it starts reads nothing: the protocol has both alone.
Each is served by a thread, since either may be a pipe, a terminal or a file, and whoever is at its other end may not
read.
"""

import asyncio
import os
import queue
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

PIECE = 64 * 1024  # bytes that are read at once
WAITING = 16  # lines that wait on either side


def claim() -> tuple[int, int]:
    """Standard input and output of this process, which nobody else has from now on."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


class Pipes:
    """Reads lines, of at most `longest` bytes, and writes them."""

    def __init__(self, incoming: int, outgoing: int, *, longest: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._longest = longest
        self._loop = asyncio.get_running_loop()
        self._come: asyncio.Queue[bytes | None] = asyncio.Queue()  # None: there are no more
        self._room_to_come = threading.Semaphore(WAITING)
        self._going: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._room_to_go = asyncio.Semaphore(WAITING)
        self._written = asyncio.Event()
        self._ended = False
        for work in (self._read, self._write):
            threading.Thread(target=work, name=f"holdfast pipe {work.__name__}", daemon=True).start()

    async def lines(self) -> AsyncGenerator[bytes]:
        """The lines that come, until there are no more; of one that is too long, so much that this can be seen."""
        while (line := await self._come.get()) is not None:
            self._room_to_come.release()
            yield line

    async def write(self, line: bytes) -> None:
        """Write a line, when there is room for it; nothing, once it was ended."""
        await self._room_to_go.acquire()
        if self._ended:
            self._room_to_go.release()
        else:
            self._going.put(line + b"\n")

    def end(self) -> None:
        """Take and write no more lines: somebody wants it to end, or nobody reads."""
        self._ended = True
        self._room_to_go.release()  # whoever waits for room lets the next one know
        self._come.put_nowait(None)

    async def close(self, *, grace: float) -> None:
        """Wait until everything is written, but not longer than the grace."""
        self._going.put(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._written.wait()

    def _read(self) -> None:
        line = bytearray()
        while piece := self._piece():
            *ends, rest = piece.split(b"\n")
            for end in ends:
                self._take(self._longer(line, end))
                line = bytearray()
            line = self._longer(line, rest)
        if line:
            self._take(line)
        self._tell(self._come.put_nowait, None)

    def _longer(self, line: bytearray, more: bytes) -> bytearray:
        line += more[: self._longest + 1 - len(line)]
        return line

    def _piece(self) -> bytes:
        try:
            return os.read(self._incoming, PIECE)
        except OSError:  # the other end is gone
            return b""

    def _take(self, line: bytearray) -> None:
        self._room_to_come.acquire()
        self._tell(self._come.put_nowait, bytes(line))

    def _write(self) -> None:
        while (line := self._going.get()) is not None:
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[os.write(self._outgoing, rest) :]
            except OSError:  # nobody reads, and what follows is lost as well
                self._tell(self.end)
            self._tell(self._room_to_go.release)
        self._tell(self._written.set)

    def _tell(self, what: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(what, *args)
