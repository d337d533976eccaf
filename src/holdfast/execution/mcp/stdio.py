"""Programs that are MCP servers: they read messages on their standard input, and write messages on their output."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

from holdfast.core.background import end_task
from holdfast.core.errors import TooLarge, Unavailable
from holdfast.core.text import render
from holdfast.execution.mcp.channel import Channel
from holdfast.execution.mcp.messages import Message, messages_of

STOP_SECONDS = 2.0  # from the end of a program's input until it is killed
CHUNK = 2**16  # bytes
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")  # variables that a program gets from this process
MAX_COMPLAINT = 2000  # characters of the error output that are remembered
SHOWN_COMPLAINT = 300

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Program:
    """A program to start: its command line and its environment, which can contain secrets."""

    command: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)


class ProgramChannel(Channel):
    """The pipes of a running program. `limit` is the most bytes of a message."""

    def __init__(self, process: asyncio.subprocess.Process, *, name: str, limit: int) -> None:
        self._process = process
        self._name = name
        self._limit = limit
        self._complaint = ""
        self._writing = asyncio.Lock()
        self._errors = asyncio.create_task(self._read_errors(), name=f"error output of {name}")

    async def send(self, message: Message) -> None:
        """Write a message as a line."""
        assert self._process.stdin is not None
        try:
            async with self._writing:
                self._process.stdin.write(render(message) + b"\n")
                await self._process.stdin.drain()
        except (OSError, RuntimeError) as error:
            raise Unavailable(f"the program {self._name} does not read its input", why=str(error)) from None

    async def messages(self) -> AsyncIterator[Message]:
        """Yield the messages. A line that is not JSON, such as a greeting, is skipped."""
        assert self._process.stdout is not None
        buffer = bytearray()
        while chunk := await self._process.stdout.read(CHUNK):
            buffer += chunk
            if b"\n" not in chunk:
                if len(buffer) > self._limit:
                    raise TooLarge(f"a message of {self._name} has more than {self._limit:,} bytes")
                continue
            *lines, rest = buffer.split(b"\n")
            buffer = bytearray(rest)
            for line in lines:
                if not line.strip():
                    continue
                try:
                    found = await messages_of(bytes(line))
                except Unavailable:
                    log.warning("%s wrote a line to its output that is not a message: %.200r", self._name, line)
                    continue
                for message in found:
                    yield message

    async def close(self) -> str:
        """Close the input of the program, and kill it with its children if that does not end it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not await self._has_ended():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # it has a process group of its own
            await self._has_ended()
        await end_task(self._errors)
        code, said = self._process.returncode, self._complaint.strip()[-SHOWN_COMPLAINT:]
        return f"the program {self._name} ended with {code}" + (f": {said}" if said else "")

    async def _has_ended(self) -> bool:
        """Wait for the end of the program. It only ends once what it has written is read."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(STOP_SECONDS):
                while await self._process.stdout.read(CHUNK):
                    pass
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(CHUNK):
            text = chunk.decode(errors="replace")
            log.debug("%s: %s", self._name, text)
            self._complaint = (self._complaint + text)[-MAX_COMPLAINT:]


def inherited_environment() -> dict[str, str]:
    """Return the variables that every program gets. All others may be secrets."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


async def start(program: Program, *, limit: int) -> ProgramChannel:
    """Start a program. Raise Unavailable if it cannot be started."""
    name = program.command[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *program.command,
            env=program.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Unavailable(
            f"the program {name} cannot be started", why=why, next="Install it on the server, or correct the command."
        ) from None
    return ProgramChannel(process, name=name, limit=limit)
