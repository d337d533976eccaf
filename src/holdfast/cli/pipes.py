"""Pipes: standard input and output of a process that speaks a protocol over them, one message per line.

Only the protocol uses them. Other output of the process goes to standard error, and child processes read nothing. A
thread serves each of them, because either may be a pipe, a terminal or a file, and the other end may not read.
"""

import asyncio
import os
import queue
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

PIECE = 64 * 1024  # bytes per read
WAITING = 16  # lines that are queued in each direction


def claim() -> tuple[int, int]:
    """Take over standard input and output of this process, and return their new file descriptors."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


class Pipes:
    """Reads lines of at most `longest` bytes, and writes lines."""

    def __init__(self, incoming: int, outgoing: int, *, longest: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._longest = longest
        self._loop = asyncio.get_running_loop()
        self._incoming_lines: asyncio.Queue[bytes | None] = asyncio.Queue()  # None: the end
        self._incoming_room = threading.Semaphore(WAITING)
        self._outgoing_lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._outgoing_room = asyncio.Semaphore(WAITING)
        self._written = asyncio.Event()
        self._ended = False
        for work in (self._read, self._write):
            threading.Thread(target=work, name=f"holdfast pipe {work.__name__}", daemon=True).start()

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield incoming lines until the end. A line that is too long is cut to `longest` + 1 bytes."""
        while (line := await self._incoming_lines.get()) is not None:
            self._incoming_room.release()
            yield line

    async def write(self, line: bytes) -> None:
        """Write a line when the queue has room; nothing after `end`."""
        await self._outgoing_room.acquire()
        if self._ended:
            self._outgoing_room.release()
        else:
            self._outgoing_lines.put(line + b"\n")

    def end(self) -> None:
        """Stop reading and writing lines: on request, or because the reader is gone."""
        self._ended = True
        self._outgoing_room.release()  # each waiting writer wakes the next one
        self._incoming_lines.put_nowait(None)

    async def close(self, *, grace: float) -> None:
        """Wait until all lines are written, at most `grace` seconds."""
        self._outgoing_lines.put(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._written.wait()

    def _read(self) -> None:
        line = bytearray()
        while piece := self._read_piece():
            *ends, rest = piece.split(b"\n")
            for end in ends:
                self._take(self._extend(line, end))
                line = bytearray()
            line = self._extend(line, rest)
        if line:
            self._take(line)
        self._call_in_loop(self._incoming_lines.put_nowait, None)

    def _extend(self, line: bytearray, more: bytes) -> bytearray:
        line += more[: self._longest + 1 - len(line)]
        return line

    def _read_piece(self) -> bytes:
        try:
            return os.read(self._incoming, PIECE)
        except OSError:  # the other end is gone
            return b""

    def _take(self, line: bytearray) -> None:
        self._incoming_room.acquire()
        self._call_in_loop(self._incoming_lines.put_nowait, bytes(line))

    def _write(self) -> None:
        while (line := self._outgoing_lines.get()) is not None:
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[os.write(self._outgoing, rest) :]
            except OSError:  # the reader is gone: the lines that follow are lost, too
                self._call_in_loop(self.end)
            self._call_in_loop(self._outgoing_room.release)
        self._call_in_loop(self._written.set)

    def _call_in_loop(self, callback: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nothing waits any more
            self._loop.call_soon_threadsafe(callback, *args)
