"""Starts a reader process: in the sandbox, or without it where the kernel has none."""

import asyncio
import contextlib
import logging
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from holdfast.core.errors import Unavailable
from holdfast.execution.sandbox import ProcessEnding, SandboxLimits, SandboxProcesses, Surroundings
from holdfast.knowledge.reader import program
from holdfast.knowledge.reader.protocol import MAX_FRAME, SIZE, Reply, Request, frame, reply_decoder

PROCESSES = 16  # processes and threads of a reader: libraries may start threads
KEPT_ERRORS = 4000  # bytes of what a process wrote last to standard error

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReaderEnding:
    """How a reader process ended. `errors` is what it wrote last to standard error."""

    exit_code: int
    reason: str | None
    errors: str


class _Process(Protocol):
    @property
    def stdin(self) -> asyncio.StreamWriter: ...
    @property
    def stdout(self) -> asyncio.StreamReader: ...
    @property
    def stderr(self) -> asyncio.StreamReader: ...
    def kill(self) -> None: ...
    async def wait(self) -> ProcessEnding: ...


class ReaderProcess:
    """A process that reads files. It is used by one read at a time."""

    def __init__(self, process: _Process) -> None:
        self._process = process
        self._errors = bytearray()
        self._reading_errors = asyncio.create_task(self._read_errors(), name="holdfast reader errors")

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, as far as it is known."""
        return not self._process.stdout.at_eof()

    def send(self, request: Request) -> None:
        """Send a request. Requests are small, and the process takes them while it waits."""
        self._process.stdin.write(frame(request))

    async def receive(self) -> Reply | None:
        """Return the next reply, or None if the process has ended, or has sent something that is none."""
        try:
            (size,) = SIZE.unpack(await self._process.stdout.readexactly(SIZE.size))
            if size > MAX_FRAME:
                return None
            return reply_decoder.decode(await self._process.stdout.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            return None

    async def end(self) -> ReaderEnding:
        """Return how the process ended. It is killed if it has not."""
        # The end of its output may be seen before its exit code.
        try:
            async with asyncio.timeout(1):
                ending = await self._process.wait()
        except TimeoutError:
            self._process.kill()
            ending = await self._process.wait()
        await self._reading_errors
        return ReaderEnding(ending.exit_code, ending.reason, bytes(self._errors).decode(errors="replace").strip())

    async def close(self) -> None:
        """Stop to read what it writes."""
        self._reading_errors.cancel()
        await asyncio.wait([self._reading_errors])

    async def _read_errors(self) -> None:
        while piece := await self._process.stderr.read(KEPT_ERRORS):
            self._errors += piece
            del self._errors[:-KEPT_ERRORS]


@asynccontextmanager
async def reader_process(
    sandbox: SandboxProcesses, *, memory_mb: int, readable: Sequence[Path], parsers: Mapping[str, str]
) -> AsyncGenerator[ReaderProcess]:
    """Start a reader process that may read the `readable` places. Leaving the block kills it."""
    limits = SandboxLimits(
        seconds=None,
        cpu_seconds=None,
        memory_mb=memory_mb,
        processes=PROCESSES,
        files=10,
        disk_mb=None,
        output_bytes=MAX_FRAME,
    )
    command = [sys.executable, "-P", "-s", "-m", program.__name__]
    modules = {name.partition(":")[0] for name in parsers.values()}
    surroundings = Surroundings(
        environment=_environment(), readable=[*_installation(modules | {program.__name__}), *readable]
    )
    async with contextlib.AsyncExitStack() as stack:
        try:
            process: _Process = await stack.enter_async_context(
                sandbox.open(command, limits, surroundings, line=1 << 20)
            )
        except Unavailable as error:
            _log.warning("files are parsed without the sandbox, with limits of memory and time only: %s", error)
            process = await stack.enter_async_context(_plain_process(command))
        reader = ReaderProcess(process)
        stack.push_async_callback(reader.close)
        yield reader


def _environment() -> dict[str, str]:
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "RAYON_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
    }


def _installation(modules: set[str]) -> list[Path]:
    """Return the folders of the code that the process runs: those that packages are installed in."""
    found = [Path(place) for place in sys.path if Path(place).name in ("site-packages", "dist-packages", "lib-dynload")]
    for module in {name.partition(".")[0] for name in modules}:
        spec = find_spec(module)
        if spec is not None:
            found += [Path(place).parent for place in spec.submodule_search_locations or ()]
    return found


class _PlainProcess:
    """A process without the sandbox."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    async def wait(self) -> ProcessEnding:
        return ProcessEnding(await self._process.wait(), None, 0.0, 0.0, 0)


@asynccontextmanager
async def _plain_process(command: Sequence[str]) -> AsyncGenerator[_PlainProcess]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=1 << 20,
        env=_environment() | {"PATH": os.defpath, "LANG": "C.UTF-8"},
        start_new_session=True,  # Ctrl-C is for the engine
    )
    plain = _PlainProcess(process)
    try:
        yield plain
    finally:
        plain.kill()
        await process.wait()
