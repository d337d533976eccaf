"""Programs of ours that run beside a benchmark: they say `ready`, and end when their standard input does."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from measure.flows import Program

BENCH = Path(__file__).parents[1]


class Helper(Program):
    """A program that answers line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__(process.pid)
        self._started = process

    def ask(self, line: str) -> None:
        """Give it a line."""
        assert self._started.stdin is not None
        self._started.stdin.write(f"{line}\n".encode())

    async def answer(self) -> str:
        """What it says next."""
        assert self._started.stdout is not None
        return (await self._started.stdout.readline()).decode().strip()

    def pause(self) -> None:
        """Let it take no part, and no time."""
        self._started.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._started.send_signal(signal.SIGCONT)


@asynccontextmanager
async def helper(program: str, *arguments: str, python: Path | None = None) -> AsyncGenerator[Helper]:
    """A program of bench/programs, ready; run by this Python, if not by another."""
    path = os.pathsep.join([str(BENCH), os.environ.get("PYTHONPATH", "")])
    process = await asyncio.create_subprocess_exec(
        str(python or sys.executable),
        str(BENCH / "programs" / f"{program}.py"),
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        limit=2**24,
        env={**os.environ, "PYTHONPATH": path},
    )
    found = Helper(process)
    said = await found.answer()
    assert said == "ready", f"{program} {' '.join(arguments)} said {said!r} instead of `ready`"
    try:
        yield found
    finally:
        assert process.stdin is not None
        found.resume()
        process.stdin.close()
        code = await process.wait()
    assert code == 0, f"{program} {' '.join(arguments)} ended with {code}"
