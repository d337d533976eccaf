"""Starts programs in the sandbox and connects their standard streams."""

import asyncio
import contextlib
import ctypes
import marshal
import os
import platform
import signal
import socket
import struct
import sys
import time
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from holdfast.core.errors import Unavailable
from holdfast.core.threads import run_in_thread
from holdfast.execution.sandbox import launcher
from holdfast.execution.sandbox.limits import MEGABYTE, SandboxLimits
from holdfast.execution.sandbox.seccomp import syscall_filter
from holdfast.execution.sandbox.user_ids import UserIds
from holdfast.execution.sandbox.work_folder import WorkFolder

Reason = Literal["time", "cpu", "memory", "processes", "files", "disk", "output", "stopped"]

PATH = "/usr/local/bin:/usr/bin:/bin"
LINE = 64 * 1024  # bytes of a line that a reader holds
_LANDLOCK_CREATE_RULESET = 444
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/openssl.cnf",
)
_NETWORK = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ssl/certs",  # never the folders above: they have private keys, too
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust",
    "/etc/ca-certificates",
)
_SOURCES = ("/dev/zero", "/dev/random", "/dev/urandom")  # what is written to /dev/zero can be shared memory
_DEVICES = ("/dev/null", "/dev/full")
_LEFT_SECONDS = 1.0  # that orphans get to disappear
_SIZE = struct.Struct("=I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a program has of its own.

    `files` are put into its work folder, by path; `executable` names those that can be run. `readable` and `writable`
    are further places of this machine. The system's programs and libraries, and the program's own installation, are
    always readable. `environment` is complete but for PATH, HOME, TMPDIR and LANG. `network`: it may open connections.
    """

    files: Mapping[str, bytes] | None = None
    executable: frozenset[str] = frozenset()
    environment: Mapping[str, str] | None = None
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    network: bool = False


@dataclass(frozen=True, slots=True)
class ProcessEnding:
    """How a program ended. `exit_code` is negative if a signal ended it. `reason`: why it was killed."""

    exit_code: int
    reason: Reason | None
    seconds: float
    cpu_seconds: float
    memory_bytes: int


class SandboxedProcess:
    """A program that runs in the sandbox. Its streams are pipes."""

    def __init__(self, process: Process, control: "tuple[asyncio.StreamReader, asyncio.StreamWriter]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.stderr = process.stderr
        self._reports, self._control = control
        self._ending: asyncio.Task[ProcessEnding] | None = None

    async def wait(self) -> ProcessEnding:
        """Wait until the program and all that it has started are gone."""
        assert self._ending is not None, "the program has not begun"
        return await asyncio.shield(self._ending)

    def kill(self) -> None:
        """Kill the program and all that it has started."""
        self._control.write(b"k")

    async def started(self) -> None:
        """Wait until the program has begun. Raises an Unavailable if it cannot be started."""
        report = await self._report()
        self._ending = asyncio.ensure_future(self._read_ending(report["pid"]))

    async def close(self) -> None:
        """Stop waiting, and close the connection to the launcher, which then kills the program."""
        if self._ending is not None:
            self._ending.cancel()
            await asyncio.gather(self._ending, return_exceptions=True)
        self._control.close()

    async def _read_ending(self, pid: int) -> ProcessEnding:
        try:
            report = await self._report()
        except Unavailable:
            await _kill_group(pid)
            raise
        memory = int(report["memory"])
        return ProcessEnding(report["status"], report["reason"], report["seconds"], report["cpu"], memory)

    async def _report(self) -> dict[str, Any]:
        try:
            (size,) = _SIZE.unpack(await self._reports.readexactly(_SIZE.size))
            report = marshal.loads(await self._reports.readexactly(size))  # noqa: S302 - our own launcher wrote it
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Unavailable(
                "the launcher of the sandbox has ended without a report",
                why="it was killed, or the machine has too little memory",
                next="Try again.",
            ) from None
        if "error" in report:
            raise Unavailable(
                "the sandbox cannot run the program",
                why=report["error"],
                next="`holdfast doctor` shows what the sandbox can do on this machine.",
            )
        return report


async def _kill_group(pid: int) -> None:
    """Kill what a program has left after its launcher was killed, and wait until it is gone.

    The kernel kills the program itself with its launcher, but not its children. They hold its output open.
    """
    until = time.monotonic() + _LEFT_SECONDS  # nobody may take notice of the end of orphans
    with contextlib.suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < until:
            os.killpg(pid, signal.SIGKILL)
            await asyncio.sleep(0.01)


class SandboxProcesses:
    """Starts programs in the sandbox. `folder` holds their work folders; None: the system's folder for such files.

    If the engine runs as root, each program has a user id of its own.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._users = UserIds() if os.geteuid() == 0 else None

    @asynccontextmanager
    async def open(
        self, command: Sequence[str], limits: SandboxLimits, surroundings: Surroundings, *, line: int = LINE
    ) -> AsyncGenerator[SandboxedProcess]:
        """Start a program. Its first word is an absolute path. Leaving the block kills it and removes its work folder.

        `line` is the most that the readers of its output hold, and so the longest line that `readline` returns.
        """
        with contextlib.nullcontext() if self._users is None else self._users.lend() as user:
            async with self._started(command, limits, surroundings, user, line) as sandboxed:
                yield sandboxed

    @asynccontextmanager
    async def _started(
        self, command: Sequence[str], limits: SandboxLimits, surroundings: Surroundings, user: int | None, line: int
    ) -> AsyncGenerator[SandboxedProcess]:
        files = surroundings.files or {}
        folder = WorkFolder(self._folder, files, executable=surroundings.executable, user=user)
        try:
            await run_in_thread(folder.make, name="sandbox folder")
            ours, theirs = socket.socketpair()
            try:
                request = marshal.dumps(_request(command, limits, surroundings, folder, user))
                loop = asyncio.get_running_loop()
                transport, protocol = await loop.subprocess_exec(
                    lambda: SubprocessStreamProtocol(line, loop),
                    *(sys.executable, "-I", "-S", launcher.__file__, str(theirs.fileno())),
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    pass_fds=(theirs.fileno(),),
                    env={},
                    start_new_session=True,  # Ctrl-C is for the engine
                )
                control = await asyncio.open_unix_connection(sock=ours)
            except BaseException:
                ours.close()
                raise
            finally:
                theirs.close()
            process = Process(transport, protocol, loop)
            sandboxed = SandboxedProcess(process, control)
            try:
                control[1].write(_SIZE.pack(len(request)) + request)
                await sandboxed.started()
                yield sandboxed
            finally:
                await sandboxed.close()
                await process.wait()
                transport.close()
        finally:
            if folder.is_left:  # the launcher was killed, or was never started
                await run_in_thread(folder.remove, name="sandbox folder")


def _request(
    command: Sequence[str], limits: SandboxLimits, surroundings: Surroundings, folder: WorkFolder, user: int | None
) -> dict[str, Any]:
    network = surroundings.network
    program = Path(command[0])
    own = (*installation_of(program), *installation_of(program.resolve()))
    readable = [*_SYSTEM, *(_NETWORK if network else ()), *map(str, (*own, *surroundings.readable))]
    home = {"PATH": PATH, "HOME": str(folder.path), "TMPDIR": str(folder.temporary), "LANG": "C.UTF-8"}
    return {
        "command": list(command),
        "environment": home | dict(surroundings.environment or {}),
        "folder": str(folder.path),
        "readable": [*readable, *_SOURCES],
        "writable": [str(folder.path), *map(str, surroundings.writable)],
        "devices": list(_DEVICES),
        "network": network,
        "uid": user,
        "landlock": landlock_version(),
        "filter": _filter(network=network, own_user=user is not None, scoped=landlock_version() >= 6),
        "rlimits": limits.rlimits,
        "seconds": limits.seconds,
        "memory": limits.memory_mb * MEGABYTE,
        "processes": limits.processes,
        "files": limits.files,
        "space": None if limits.disk_mb is None else limits.disk_mb * MEGABYTE,
    }


@cache
def _filter(*, network: bool, own_user: bool, scoped: bool) -> bytes:
    return syscall_filter(platform.machine(), network=network, own_user=own_user, scoped=scoped)


@cache
def landlock_version() -> int:
    """Return the version of Landlock that the kernel has; 0: none."""
    found: int = launcher.libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    return max(0, found)


def installation_of(program: Path) -> list[Path]:
    """Return what a program in a folder `bin` needs of its installation: programs and libraries, never its data."""
    places = [program]
    if program.parent.name == "bin":
        prefix = program.parent.parent
        places += [prefix / each for each in ("bin", "lib", "lib64", "pyvenv.cfg")]
    return [place for place in places if place.exists()]
