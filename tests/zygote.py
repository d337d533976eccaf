"""Starts Python programs without their imports: it has loaded what they load, and forks a process for each of them.

Such a process differs from one that an interpreter was started for in what was loaded before it began and in nothing
else: words, environment, folder and streams are its own, and it ends as every interpreter does. What modules read while
they are loaded is the zygote's, though; a program whose environment could make a difference there is not for it
(`suits`).
"""

import atexit
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from io import FileIO, TextIOWrapper
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import psutil

COMMANDS = "holdfast.cli.main"
LATE = ("HOLDFAST_", "PG", "PYTEST_", "XDG_", "EDITOR", "HOME", "SHELL", "TMPDIR", "VISUAL")  # no import uses these
ON_DEMAND = (  # loaded by programs that come to need them
    *("holdfast.adapters.engine_thread", "holdfast.default", "holdfast.engine", "holdfast.llm.scripted"),
    *("holdfast.postgres.backup", "holdfast.server.serving", "pydantic.type_adapter", "rich.console", "rich.table"),
)
NUMBER = struct.Struct("i")


class Fork:
    """A process that was forked; as `subprocess.Popen` has it, as far as tests need that."""

    def __init__(self, news: socket.socket, stdout: int, stderr: int) -> None:
        self._news = news
        self.stdout = os.fdopen(stdout, "rb")
        self.stderr = os.fdopen(stderr, "rb")
        self.pid = self._number()
        self.returncode: int | None = None  # negative: the signal that killed it

    def send_signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it without a chance to say goodbye."""
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended."""
        if self.returncode is None:
            self._news.settimeout(timeout)
            try:
                self.returncode = self._number()
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0) from None
            self._news.close()
        return self.returncode

    def _number(self) -> int:
        number = self._news.recv(NUMBER.size)
        assert number, "the zygote has ended; stderr tells why"
        return NUMBER.unpack(number)[0]


class Zygote:
    """The process that programs are forked from, as tests see it."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._door, theirs = socket.socketpair()
        with theirs:
            self._popen = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def close(self) -> None:
        """End it; what it has forked goes on."""
        self._door.close()
        self._popen.wait()

    def suits(self, program: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Whether it can fork a program: a script or `-m MODULE`, with modules loaded as this environment has them."""
        known = bool(program) and (program[0] == "-m" or program[0].endswith(".py"))
        return known and all(name.startswith(LATE) for name, _ in environment.items() ^ self._environment.items())

    def start(
        self, program: Sequence[str], environment: Mapping[str, str], folder: Path, *, stdin: int | None = None
    ) -> Fork:
        """Start a program; it reads what `stdin` gives, or nothing."""
        given = os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin
        (out, stdout), (err, stderr) = os.pipe(), os.pipe()
        news, channel = socket.socketpair()
        socket.send_fds(self._door, [b"."], [given, stdout, stderr, channel.fileno()])
        for end in (given, stdout, stderr):
            os.close(end)
        channel.close()
        news.sendall(
            json.dumps({"program": list(program), "environment": dict(environment), "folder": str(folder)}).encode()
        )
        news.shutdown(socket.SHUT_WR)
        return Fork(news, out, err)

    def run(
        self, program: Sequence[str], environment: Mapping[str, str], folder: Path, typed: bytes, *, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Run a program to its end: its exit code (negative: the signal that killed it), and what it wrote."""
        stdin, keys = os.pipe()
        fork = self.start(program, environment, folder, stdin=stdin)
        threading.Thread(target=_type, args=(keys, typed), daemon=True).start()
        said, complained = _Voice(fork.stdout), _Voice(fork.stderr)
        try:
            code = fork.wait(timeout)
        except subprocess.TimeoutExpired:
            fork.kill()
            raise
        return code, said.all(timeout), complained.all(timeout)


@cache
def zygote() -> Zygote:
    """The zygote of this test process, which ends with it."""
    made = Zygote()
    atexit.register(made.close)
    return made


class _Voice(threading.Thread):
    """Reads a pipe until nobody is left who could write to it."""

    def __init__(self, stream: Any) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._said = b""
        self.start()

    def run(self) -> None:
        with self._stream:
            self._said = self._stream.read()

    def all(self, timeout: float) -> bytes:
        self.join(timeout)
        assert not self.is_alive(), "the program has ended, and something that it started keeps its pipes open"
        return self._said


def _type(keys: int, typed: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(keys, "wb") as stream:  # nobody need read it
        stream.write(typed)


# The process itself


def load() -> None:
    """Load what programs load; they themselves are left to be run by each process."""
    commands = iter_modules(import_module("holdfast.cli").__path__, "holdfast.cli.")
    for module in (*(command.name for command in commands), *ON_DEMAND):
        if module != COMMANDS:
            import_module(module)
    assert psutil.Process().num_threads() == 1, "a thread would be missing in what is forked"
    gc.freeze()  # pages that no collection touches stay shared


def serve(door: socket.socket) -> dict[str, Any]:
    """Fork processes for as long as somebody may want one; returns in each of them, with what it is to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is pressed to end the tests is for them
    with selectors.DefaultSelector() as selector:
        selector.register(door, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not door:
                    selector.unregister(key.fileobj)
                    os.close(key.fd)
                    _end(*key.data)
                    continue
                _, streams, _, _ = socket.recv_fds(door, 1, 4, socket.MSG_CMSG_CLOEXEC)
                if not streams:
                    sys.exit()
                channel = socket.socket(fileno=streams.pop())
                with channel.makefile("rb") as order:
                    wanted = json.load(order)
                if not (pid := os.fork()):
                    for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                        _renew(name, stream)
                    return wanted
                for stream in streams:
                    os.close(stream)
                _tell(channel, pid)
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, channel))


def become(program: list[str], environment: dict[str, str], folder: str) -> None:
    """Run a program as this process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if program[0] == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv[1:] = program[2:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(program[0]).resolve().parent)
        sys.argv[:] = program
        runpy.run_path(program[0], run_name="__main__")


def _renew(name: str, stream: int) -> None:
    """Put a stream in the place of one of the interpreter's own, opened as the interpreter opens it."""
    old = getattr(sys, name)
    os.dup2(stream, old.fileno())
    os.close(stream)
    binary: Any = FileIO(old.fileno(), old.buffer.mode, closefd=False)
    if not isinstance(old.buffer, FileIO):
        binary = type(old.buffer)(binary)
    new = TextIOWrapper(binary, old.encoding, old.errors, "\n", old.line_buffering, old.write_through)
    setattr(sys, name, new)
    setattr(sys, f"__{name}__", new)


def _end(pid: int, channel: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    with channel:
        _tell(channel, os.waitstatus_to_exitcode(status))


def _tell(channel: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits for it any more
        channel.sendall(NUMBER.pack(number))


if __name__ == "__main__":
    load()
    become(**serve(socket.socket(fileno=int(sys.argv[1]))))
