"""Programs that are MCP servers: they read messages on their standard input, and write messages on their output.

They run in the sandbox, with a folder of their own, the network, and the variables of their source.
"""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.core.background import end_task
from holdfast.core.errors import TooLarge, Unavailable
from holdfast.core.text import render
from holdfast.execution.mcp.channel import MessageChannel
from holdfast.execution.mcp.messages import Message, messages_of
from holdfast.execution.sandbox.limits import SandboxLimits
from holdfast.execution.sandbox.processes import ProcessEnding, SandboxedProcess, SandboxProcesses, Surroundings

STOP_SECONDS = 2.0  # from the end of a program's input until it is killed
CHUNK = 2**16  # bytes
LIMITS = SandboxLimits(seconds=None, cpu_seconds=None, memory_mb=2048, processes=128, files=100_000, disk_mb=None)
MAX_COMPLAINT = 2000  # characters of the error output that are remembered
SHOWN_COMPLAINT = 300
MAX_LOGGED = 10  # lines of a program that are no messages
NO_MESSAGE: Message = {}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A program to start: its command line and its environment, which can contain secrets."""

    command: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)


class ProgramChannel(MessageChannel):
    """The pipes of a running program. `limit` is the most bytes of a message."""

    def __init__(self, process: SandboxedProcess, stack: AsyncExitStack, *, name: str, limit: int) -> None:
        self._process = process
        self._stack = stack
        self._name = name
        self._limit = limit
        self._complaint = ""
        self._writing = asyncio.Lock()
        self._errors = asyncio.create_task(self._read_errors(), name=f"error output of {name}")

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Write a message as a line."""
        try:
            async with self._writing:
                self._process.stdin.write(render(message) + b"\n")
                await self._process.stdin.drain()
        except (OSError, RuntimeError) as error:
            raise Unavailable(f"the program {self._name} does not read its input", why=str(error)) from None

    async def messages(self) -> AsyncIterator[Message]:
        """Yield the messages. A line that is none, such as a greeting, is an empty message: it counts, like others."""
        buffer, logged = bytearray(), 0
        while chunk := await self._process.stdout.read(CHUNK):
            buffer += chunk
            if b"\n" not in chunk:
                if len(buffer) > self._limit:
                    raise TooLarge(f"a message of {self._name} has more than {self._limit:,} bytes")
                continue
            *lines, rest = buffer.split(b"\n")
            buffer = bytearray(rest)
            for line in lines:
                try:
                    found = await messages_of(bytes(line)) if line.strip() else [NO_MESSAGE]
                except Unavailable:
                    found = [NO_MESSAGE]
                    logged += 1
                    if logged <= MAX_LOGGED:
                        log.warning("%s wrote a line to its output that is not a message: %.200r", self._name, line)
                for message in found:
                    yield message

    async def close(self) -> str:
        """Close the input of the program, and kill it with its children if that does not end it."""
        self._process.stdin.close()
        ending = await self._ending()
        if ending is None:
            self._process.kill()
            ending = await self._ending()
        await end_task(self._errors)
        await self._stack.aclose()
        said = self._complaint.strip()[-SHOWN_COMPLAINT:]
        how = "was killed" if ending is None or ending.exit_code < 0 else f"ended with {ending.exit_code}"
        why = f" ({ending.reason})" if ending is not None and ending.reason not in (None, "stopped") else ""
        return f"the program {self._name} {how}{why}" + (f": {said}" if said else "")

    async def _ending(self) -> ProcessEnding | None:
        """Wait for the end of the program. What it still writes is dropped."""
        try:
            async with asyncio.timeout(STOP_SECONDS):
                while await self._process.stdout.read(CHUNK):
                    pass
                return await self._process.wait()
        except TimeoutError:
            return None

    async def _read_errors(self) -> None:
        while chunk := await self._process.stderr.read(CHUNK):
            text = chunk.decode(errors="replace")
            log.debug("%s: %s", self._name, text)
            self._complaint = (self._complaint + text)[-MAX_COMPLAINT:]


class Programs:
    """Starts programs in the sandbox. `readable` and `writable`: their folders besides their own."""

    def __init__(self, processes: SandboxProcesses, readable: Sequence[Path], writable: Sequence[Path]) -> None:
        self._processes = processes
        self._readable = readable
        self._writable = writable

    async def start(self, program: ServerProgram, *, limit: int) -> ProgramChannel:
        """Start a program. Raise Unavailable if it cannot be started. `limit` is the most bytes of a message."""
        name, *words = program.command
        path = shutil.which(name)
        if path is None:
            raise Unavailable(
                f"the program {name} cannot be started", why="it is not there", next="Install it on the server."
            )
        surroundings = Surroundings(
            environment=program.environment, readable=self._readable, writable=self._writable, network=True
        )
        async with AsyncExitStack() as stack:
            process = await stack.enter_async_context(
                self._processes.open((str(Path(path).absolute()), *words), LIMITS, surroundings, line=CHUNK)
            )
            return ProgramChannel(process, stack.pop_all(), name=name, limit=limit)
