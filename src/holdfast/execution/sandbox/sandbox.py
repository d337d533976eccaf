"""Runs a program to its end in the sandbox, and collects what it prints."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.execution.sandbox.limits import SandboxLimits
from holdfast.execution.sandbox.processes import ProcessEnding, Reason, SandboxedProcess, SandboxProcesses, Surroundings

_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """What a program printed, and how it ended. `reason`: the limit that it passed, if it was killed for one."""

    stdout: bytes
    stderr: bytes
    ending: ProcessEnding
    reason: Reason | None


class _Output:
    """What a program prints, up to a limit for both streams together."""

    def __init__(self, process: SandboxedProcess, most: int) -> None:
        self._process = process
        self._left = most
        self.is_full = False

    async def collect(self, stream: asyncio.StreamReader) -> bytes:
        """Read a stream to its end. At the limit, kill the program and discard the rest."""
        pieces: list[bytes] = []
        while piece := await stream.read(_PIECE):
            if len(piece) > self._left and not self.is_full:
                self.is_full = True
                self._process.kill()
            pieces.append(piece[: self._left])
            self._left -= len(pieces[-1])
        return b"".join(pieces)


class Sandbox:
    """Runs programs, each in a work folder of its own that is removed afterwards."""

    def __init__(self, processes: SandboxProcesses) -> None:
        self._processes = processes

    async def run(
        self, command: Sequence[str], *, limits: SandboxLimits, surroundings: Surroundings, stdin: bytes = b""
    ) -> SandboxResult:
        """Run a program to its end. Cancellation kills it."""
        async with self._processes.open(command, limits, surroundings) as process:
            output = _Output(process, limits.output_bytes)
            feeding = asyncio.ensure_future(_feed(process.stdin, stdin))
            try:
                stdout, stderr = await asyncio.gather(output.collect(process.stdout), output.collect(process.stderr))
                ending = await process.wait()
            finally:
                feeding.cancel()
                await asyncio.wait([feeding])
        return SandboxResult(stdout, stderr, ending, "output" if output.is_full else _reason(ending, limits))


async def _feed(stdin: asyncio.StreamWriter, data: bytes) -> None:
    try:
        stdin.write(data)
        await stdin.drain()
    except ConnectionError:
        pass  # the program has ended, or does not read
    finally:
        stdin.close()


def _reason(ending: ProcessEnding, limits: SandboxLimits) -> Reason | None:
    """Return the limit that a program passed. The kernel kills for CPU time without saying so."""
    cpu = limits.cpu_seconds
    if ending.reason is None and ending.exit_code < 0 and cpu is not None and ending.cpu_seconds >= cpu:
        return "cpu"
    return ending.reason
