"""Reads files in processes of their own."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Self, cast

from holdfast.core.errors import Unavailable
from holdfast.core.threads import run_in_thread
from holdfast.execution.sandbox import SandboxProcesses
from holdfast.knowledge.parsing.errors import ParseError, ParseErrorCode
from holdfast.knowledge.reader import folder as files
from holdfast.knowledge.reader.folder import ReadersFolder
from holdfast.knowledge.reader.process import ReaderEnding, ReaderProcess, reader_process
from holdfast.knowledge.reader.program import out_of_memory
from holdfast.knowledge.reader.protocol import (
    Acknowledge,
    End,
    Failure,
    Read,
    ReadOptions,
    ReadPart,
    Ready,
    Reply,
    Start,
)

WINDOW = 4  # parts that a process may be ahead
IDLE = 30.0  # seconds after which a process without work ends
FAT_MB = 400  # memory after which a process is replaced
START_SECONDS = 60.0  # that a process may take to start
NICE = 5  # the engine's own work goes first
SILENT_SHARE = 0.25  # of the time for a file: that it may take from one sign of progress to the next

_log = logging.getLogger(__name__)


class Readers:
    """Reads files in at most `processes` processes, which are reused. 0: half as many as there are cores.

    A process has limits of memory and time, no network, and no files but its code and its input. Only the time counts
    for which the engine waits. If a file makes its process fail, it fails alone: the next one is read by a new process.
    `parsers` adds parse functions by media type, as `module:function`.
    """

    def __init__(
        self,
        sandbox: SandboxProcesses,
        *,
        processes: int = 0,
        memory_mb: int = 1024,
        seconds: float = 600.0,
        folder: Path | None = None,
        parsers: Mapping[str, str] | None = None,
        idle: float = IDLE,
    ) -> None:
        self._sandbox = sandbox
        self._places = asyncio.Semaphore(processes or max(1, (os.cpu_count() or 1) // 2))
        self._memory_mb = memory_mb
        self._seconds = seconds
        self._folder = ReadersFolder(folder)
        self._parsers = dict(parsers or {})
        self._idle_seconds = idle
        self._idle: list[_RunningReader] = []
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def folder(self) -> Path:
        """A private folder for files that are to be read. A file that is elsewhere may have to be copied.

        It is removed with the readers, and after a crash when the next engine starts.
        """
        return self._folder.files

    async def __aenter__(self) -> Self:
        await run_in_thread(self._folder.open, name="readers folder")
        return self

    async def __aexit__(self, *_: object) -> None:
        idle, self._idle = self._idle, []
        for reader in idle:
            reader.cancel_timer()
        await asyncio.gather(*(reader.close() for reader in idle), *self._closing, return_exceptions=True)
        await run_in_thread(self._folder.close, name="readers folder")

    async def read(
        self,
        path: Path,
        *,
        name: str,
        media_type: str | None = None,
        title: str | None = None,
        position: bytes | None = None,
        options: ReadOptions | None = None,
    ) -> AsyncGenerator[ReadPart]:
        """Read a file, from a `position` on that an earlier part has; `options` have to be those of that read.

        Use it inside `contextlib.aclosing`. The process reads a few parts ahead, and no more until they are used.
        Raises ParseError if the file cannot be read, and Unavailable if it may succeed later.
        """
        options = options or ReadOptions()
        name = _sendable(name)
        async with self._places:
            reader = await self._take(options.tokenizer)
            whole = False
            try:
                place = await run_in_thread(partial(files.put, path, reader.folder, name), name="readers folder")
                reader.process.send(
                    Read(
                        path=str(place),
                        name=name,
                        media_type=None if media_type is None else _sendable(media_type),
                        title=None if title is None else _sendable(title),
                        position=position,
                        chunk_size=options.chunk_size,
                        overlap=options.overlap,
                        limits=options.limits,
                        seconds=self._seconds,
                        window=WINDOW,
                    )
                )
                left = self._seconds
                reply, left = await self._wait(reader, name, left)
                while isinstance(reply, ReadPart) and not reply.last:
                    yield reply
                    reader.process.send(Acknowledge())
                    reply, left = await self._wait(reader, name, left)
                if isinstance(reply, Failure):
                    whole = reply.code != "too_large"  # its memory may be in pieces
                    raise _parse_error(reply, name)
                if not isinstance(reply, ReadPart):
                    raise Unavailable(f"{name} was not read", why="its process answered something else")
                reader.process.send(Acknowledge())
                end, _ = await self._wait(reader, name, left)
                whole = isinstance(end, End) and end.peak_mb < FAT_MB
                yield reply
            finally:
                await asyncio.shield(self._give_back(reader, reusable=whole))

    async def _wait(self, reader: "_RunningReader", name: str, left: float) -> tuple[Reply, float]:
        """Return the next reply, and the time that is left. Raises what the end of the process means."""
        begun = time.monotonic()
        silent = max(SILENT_SHARE * self._seconds, 1.0)
        try:
            async with asyncio.timeout(max(0.0, min(left, silent))):
                reply = await reader.process.receive()
        except TimeoutError:
            raise self._too_slow(name, silent if silent < left else self._seconds, whole=silent >= left) from None
        if reply is None:
            raise self._failure(name, await reader.process.end())
        return reply, left - (time.monotonic() - begun)

    async def _take(self, tokenizer: Path | None) -> "_RunningReader":
        while self._idle:
            reader = self._idle.pop()
            reader.cancel_timer()
            if reader.tokenizer == tokenizer and reader.is_alive:
                return reader
            await reader.close()
        return await self._start(tokenizer)

    async def _start(self, tokenizer: Path | None) -> "_RunningReader":
        async with AsyncExitStack() as stack:
            folder = self._folder.make_input()
            stack.callback(folder.rmdir)
            stack.callback(files.take, folder)
            readable = [folder, *([tokenizer] if tokenizer else [])]
            process = await stack.enter_async_context(
                reader_process(self._sandbox, memory_mb=self._memory_mb, readable=readable, parsers=self._parsers)
            )
            process.send(Start(self._memory_mb, None if tokenizer is None else str(tokenizer), self._parsers))
            try:
                async with asyncio.timeout(START_SECONDS):
                    ready = await process.receive()
            except TimeoutError:
                ready = None
            if not isinstance(ready, Ready):
                ending = await process.end()
                raise Unavailable(
                    "a process that parses files did not start",
                    why=ending.errors.rpartition("\n")[2] or f"its exit code is {ending.exit_code}",
                    next="Try again. If it fails again, reinstall the engine.",
                )
            with contextlib.suppress(OSError):  # its own filter of system calls refuses this
                os.setpriority(os.PRIO_PROCESS, ready.pid, NICE)
            return _RunningReader(process, folder, tokenizer, stack.pop_all())

    async def _give_back(self, reader: "_RunningReader", *, reusable: bool) -> None:
        files.take(reader.folder)
        if not reusable or not reader.is_alive:
            await reader.close()
            return
        self._idle.append(reader)
        reader.start_timer(self._idle_seconds, partial(self._end_idle, reader))

    def _end_idle(self, reader: "_RunningReader") -> None:
        if reader in self._idle:
            self._idle.remove(reader)
            task = asyncio.create_task(reader.close(), name="holdfast reader end")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _too_slow(self, name: str, seconds: float, *, whole: bool) -> ParseError:
        return ParseError(
            f"{name} cannot be read",
            code="too_slow",
            why=f"it took longer than {seconds:g} seconds{'' if whole else ' for one part'}",
            next="Divide the file, or raise memory.knowledge.parse_seconds.",
        )

    def _failure(self, name: str, ending: ReaderEnding) -> Exception:
        """Return what the end of a process means for its file."""
        what = f"{name} cannot be read"
        code = ending.exit_code
        if ending.reason == "memory":
            return _parse_error(out_of_memory(what, self._memory_mb), name)
        if code == -signal.SIGXCPU:
            return self._too_slow(name, self._seconds, whole=True)
        if code == -signal.SIGKILL:  # it has done nothing wrong
            return Unavailable(
                what, why="its process was killed, perhaps because the machine has too little memory", next="Try again."
            )
        _log.warning("the parser of %s ended with the exit code %d: %s", name, code, ending.errors)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ParseError(
            what,
            code="crashed",
            why=f"its parser crashed ({how})",
            next="Open it in its program and save it again, or convert it to another format.",
        )


class _RunningReader:
    """A process with its folder."""

    def __init__(self, process: ReaderProcess, folder: Path, tokenizer: Path | None, stack: AsyncExitStack) -> None:
        self.process = process
        self.folder = folder
        self.tokenizer = tokenizer
        self._stack = stack
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive

    def start_timer(self, seconds: float, call: "partial[None]") -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, call)

    def cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        await self._stack.aclose()


def _sendable(text: str) -> str:
    """Replace lone surrogates, which no message can contain."""
    return text.encode(errors="replace").decode()


def _parse_error(failure: Failure, name: str) -> ParseError:
    if failure.traceback:
        _log.warning("an unforeseen error while parsing %s:\n%s", name, failure.traceback)
    return ParseError(failure.what, code=cast(ParseErrorCode, failure.code), why=failure.why, next=failure.next)
