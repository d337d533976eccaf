"""The attacks that the sandbox has to withstand, and a run of them against a target that is set up for it."""

import asyncio
import fcntl
import json
import os
import platform
import re
import secrets
import socket
import stat
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from holdfast.core.errors import Unavailable
from holdfast.execution.sandbox.attack_result import AttackResult
from holdfast.execution.sandbox.languages import Interpreter
from holdfast.execution.sandbox.launcher import remove_folder
from holdfast.execution.sandbox.limits import MEGABYTE, SandboxLimits
from holdfast.execution.sandbox.processes import Reason, Surroundings
from holdfast.execution.sandbox.sandbox import Sandbox, SandboxResult
from holdfast.execution.sandbox.seccomp import numbers_of

_PROGRAMS = Path(__file__).parent / "attack_programs"
_FILES = {"python": "attack.py", "javascript": "attack.js", "bash": "attack.sh"}
_CALLS = (
    "ptrace",
    "unshare",
    "memfd_create",
    "io_uring_setup",
    "mount",
    "mmap",
    "read",
    "inotify_init1",
    "inotify_add_watch",
)
_DESCRIPTOR = 100  # the lowest number of the planted descriptor
_TOGETHER = 4  # attacks at a time

# Attacks on one thing each. A program makes them one after another.
QUICK: dict[str, tuple[str, ...]] = {
    "files": (
        "read a system file",
        "read a secret file",
        "list a folder",
        "watch a folder",
        "create a file",
        "overwrite a file",
        "truncate a file",
        "truncate a file by reading",
        "open a file without a mode",
        "truncate a file without a mode",
        "delete a file",
        "move a file",
        "create a folder",
        "change permissions",
        "escape by a symbolic link",
        "escape by a hard link",
        "escape by a relative path",
        "write to shared memory",
        "write to the temporary folder",
        "read devices",
    ),
    "environment": (
        "read its own environment",
        "read the environment of the engine",
        "read the environment of all processes",
    ),
    "/proc": (
        "read the commands of all processes",
        "read the memory of the engine",
        "reach files through /proc",
        "change a kernel setting",
    ),
    "network": (
        "connect by TCP",
        "send by UDP",
        "connect to a Unix socket",
        "send to a Unix socket by a pair",
        "connect to an abstract socket",
        "listen on a port",
    ),
    "signals": ("signal the engine", "signal the engine by a pipe", "slow the engine down", "limit the engine"),
    "ptrace": ("trace the engine", "copy the memory of the engine"),
    "descriptors": ("use inherited descriptors",),
    "privileges": (
        "become root",
        "make a namespace",
        "mount a file system",
        "keep memory without a file",
        "share memory by a device",
        "submit calls to io_uring",
    ),
}
# Attacks on what the machine has. Each is made by a program of its own, with an amount that is beyond the limits.
HEAVY: dict[str, tuple[tuple[str, int], ...]] = {
    "memory": (("allocate memory", 1024), ("allocate memory in many processes", 1024)),
    "forks": (("fork without end", 200), ("leave a process behind", 0)),
    "disk": (
        ("write a large file", 16),
        ("write many files", 2000),
        ("write deleted files", 100),
        ("write deleted files by memory", 100),
        ("write deleted files by children", 100),
        ("write into deep folders", 2000),
        ("write into a folder that cannot be listed", 2000),
    ),
    "time": (("compute without end", 0), ("wait without end", 0)),
    "output": (("print without end", 64),),
}
LIMITS = SandboxLimits(
    seconds=5, cpu_seconds=4, memory_mb=256, processes=64, files=200, disk_mb=4, output_bytes=MEGABYTE
)
_ENDLESS = replace(LIMITS, seconds=1, cpu_seconds=1)
# What ends an attack on what the machine has: the launcher, or the kernel, which the program then complains about.
_REASONS: dict[str, tuple[Reason, ...]] = {
    "memory": ("memory",),
    "forks": ("processes", "memory"),
    "disk": ("disk", "files"),
    "time": ("time", "cpu"),
    "output": ("output",),
}
_COMPLAINTS = {
    "memory": "memory|alloc",
    "forks": "temporarily unavailable|EAGAIN",
    "disk": "too large|EFBIG|size limit",
    "time": "$^",
    "output": "$^",
}
_BY_STATE = frozenset({"change permissions"})  # the call may succeed and do nothing


@dataclass(frozen=True, slots=True)
class _Target:
    """What the attacks are made on: files, sockets and a process, as the engine has them."""

    folder: Path
    secret: Path
    mark: str
    victim: psutil.Popen
    received: list[str]
    environment: Mapping[str, str]
    before: Mapping[str, object]

    def state(self) -> dict[str, object]:
        """Return all that an attack could change, by the attack that would."""
        return _state(self.folder, self.secret, self.victim)


async def run_attacks(sandbox: Sandbox, interpreter: Interpreter) -> list[AttackResult]:
    """Make all attacks in one language, and return how each ended. Raises an Unavailable if none can be made."""
    async with _target() as target:
        results = await _quick(sandbox, interpreter, target)
        places = asyncio.Semaphore(_TOGETHER)

        async def heavy(group: str, attack: str, amount: int) -> AttackResult:
            async with places:
                return await _heavy(sandbox, interpreter, target, group, attack, amount)

        made = await asyncio.gather(*(heavy(group, *each) for group, attacks in HEAVY.items() for each in attacks))
        amounts = {attack: amount for attacks in HEAVY.values() for attack, amount in attacks}
        return results + [
            # Attacks at one time can be in each other's way: as an ordinary user, they share the number of processes.
            each
            if each.made
            else await _heavy(sandbox, interpreter, target, each.group, each.attack, amounts[each.attack])
            for each in made
        ]


async def _quick(sandbox: Sandbox, interpreter: Interpreter, target: _Target) -> list[AttackResult]:
    ended = await _run(sandbox, interpreter, target, replace(LIMITS, seconds=60, cpu_seconds=30))
    lines = [line.split("\t") for line in ended.stdout.decode(errors="replace").splitlines()]
    said = {line[0]: (line[1] == "blocked", line[2], line[1] != "missing") for line in lines if len(line) == 3}
    missing = [attack for attacks in QUICK.values() for attack in attacks if attack not in said]
    if missing:
        error = ended.stderr.decode(errors="replace").strip()[-300:]
        raise Unavailable(
            f"scripts in {interpreter.language} do not run in the sandbox",
            why=f"the attack {missing[0]!r} was not made; {error or ended.ending}",
            next=f"Check that {interpreter.program} works for other users of this machine.",
        )
    said |= {attack: (True, *said[attack][1:]) for attack in _BY_STATE}
    changed = {attack: now for attack, now in target.state().items() if now != target.before[attack]}
    said |= {attack: (False, f"it is {now} now", True) for attack, now in changed.items()}
    said |= dict.fromkeys(target.received, (False, "data arrived", True))
    return [AttackResult(group, attack, *said[attack]) for group, attacks in QUICK.items() for attack in attacks]


async def _heavy(
    sandbox: Sandbox, interpreter: Interpreter, target: _Target, group: str, attack: str, amount: int
) -> AttackResult:
    limits = _ENDLESS if group == "time" else LIMITS
    ended = await _run(sandbox, interpreter, target, limits, attack, str(amount))
    reason = ended.reason or f"exit code {ended.ending.exit_code}"
    complaint = ended.stderr.decode(errors="replace")
    is_done = f"{attack}\tdone".encode() in ended.stdout
    if attack == "leave a process behind":
        left = [each for each in psutil.process_iter(["cmdline"]) if target.mark in (each.info["cmdline"] or ())]
        for each in left:
            each.kill()
        detail = f"{len(left)} processes are left" if left else "none is left"
        return AttackResult(group, attack, not left, detail, made=is_done or bool(left))
    if is_done:
        return AttackResult(group, attack, False, reason)
    if ended.reason in _REASONS[group] or re.search(_COMPLAINTS[group], complaint, re.IGNORECASE):
        return AttackResult(group, attack, True, reason)
    return AttackResult(group, attack, False, f"{reason} {complaint.strip()[-200:]}", made=False)


async def _run(
    sandbox: Sandbox, interpreter: Interpreter, target: _Target, limits: SandboxLimits, *words: str
) -> SandboxResult:
    file = _FILES[interpreter.language]
    surroundings = Surroundings(
        files={file: (_PROGRAMS / f"attacks.{interpreter.language}").read_bytes()}, environment=target.environment
    )
    command = [*interpreter.command(file, memory_mb=limits.memory_mb), *words]
    return await sandbox.run(command, limits=limits, surroundings=surroundings)


@asynccontextmanager
async def _target() -> AsyncGenerator[_Target]:
    """Set up what the attacks are made on. Other users may reach it: only the sandbox protects it."""
    mark, received = f"31415.{secrets.randbits(40)}", list[str]()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-target-"))
    secret = folder / "secret"
    victim = psutil.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"], env={"SECRET": mark})
    servers: list[asyncio.AbstractServer] = []
    transports: list[asyncio.BaseTransport] = []
    planted = None
    try:
        folder.chmod(0o777)
        secret.write_text(f"planted-secret-{mark}")
        secret.chmod(0o666)
        with secret.open() as file:  # a descriptor that programs would inherit
            planted = fcntl.fcntl(file, fcntl.F_DUPFD, _DESCRIPTOR)

        def server(attack: str) -> asyncio.Protocol:
            return _Stream(attack, received)

        loop = asyncio.get_running_loop()
        path, abstract = folder / "socket", f"holdfast-{mark}"
        tcp = await loop.create_server(lambda: server("connect by TCP"), "127.0.0.1", 0)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("\0" + abstract)
        servers += [
            tcp,
            await loop.create_unix_server(lambda: server("connect to a Unix socket"), str(path)),
            await loop.create_unix_server(lambda: server("connect to an abstract socket"), sock=listener),
        ]
        path.chmod(0o777)
        udp, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams("send by UDP", received), local_addr=("127.0.0.1", 0)
        )
        transports.append(udp)
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagrams.bind(str(folder / "datagrams"))
        (folder / "datagrams").chmod(0o777)
        unix, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams("send to a Unix socket by a pair", received), sock=datagrams
        )
        transports.append(unix)
        environment = {
            "TARGET": str(folder),
            "PID": str(victim.pid),
            "TCP": str(tcp.sockets[0].getsockname()[1]),
            "UDP": str(udp.get_extra_info("sockname")[1]),
            "SOCKET": str(path),
            "DATAGRAMS": str(folder / "datagrams"),
            "ABSTRACT": abstract,
            "MARK": mark,
            "ADDRESS": f"0x{Path(f'/proc/{victim.pid}/maps').read_text().partition('-')[0]}",
            "NUMBERS": json.dumps(numbers_of(platform.machine(), _CALLS)),
        }
        environment["EXPECTED"] = " ".join((*environment, "EXPECTED", "PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE"))
        yield _Target(folder, secret, mark, victim, received, environment, _state(folder, secret, victim))
    finally:
        if planted is not None:
            os.close(planted)
        for each in transports:
            each.close()
        for each in servers:
            each.close()
        victim.kill()
        victim.wait()
        remove_folder(str(folder))
        for place in _planted(mark):
            place.unlink(missing_ok=True)


class _Stream(asyncio.Protocol):
    """Notes that data has arrived on a connection."""

    def __init__(self, attack: str, received: list[str]) -> None:
        self._attack = attack
        self._received = received

    def data_received(self, data: bytes) -> None:
        """Note it."""
        self._received.append(self._attack)


class _Datagrams(asyncio.DatagramProtocol):
    """Notes that a datagram has arrived."""

    def __init__(self, attack: str, received: list[str]) -> None:
        self._attack = attack
        self._received = received

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Note it."""
        self._received.append(self._attack)


def _planted(mark: str) -> list[Path]:
    return [folder / f"holdfast-planted-{mark}" for folder in (Path("/dev/shm"), Path("/tmp"))]  # noqa: S108


def _state(folder: Path, secret: Path, victim: psutil.Popen) -> dict[str, object]:
    is_there = secret.exists()
    runs = victim.is_running() and victim.status() != psutil.STATUS_ZOMBIE
    return {
        "create a file": tuple(sorted(each.name for each in folder.iterdir())),
        "overwrite a file": secret.read_text() if is_there else None,
        "change permissions": stat.S_IMODE(secret.stat().st_mode) if is_there else None,
        "signal the engine": runs,
        "slow the engine down": victim.nice() if runs else None,
        "limit the engine": victim.rlimit(psutil.RLIMIT_NOFILE) if runs else None,
        "trace the engine": victim.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP),
    }
