"""Starts commands without their imports: it has loaded what they load, and forks a process for each of them.

Such a process differs from `python -m holdfast.cli.main` in what was loaded before it began and in nothing else: words,
environment, folder and streams are its own, and it ends as every interpreter does. What modules read while they are
loaded is the zygote's, though; a command whose environment could make a difference there is not for it (`suits`).
"""

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
from importlib import import_module
from io import FileIO, TextIOWrapper
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import psutil

PROGRAM = "holdfast.cli.main"
LATE = ("HOLDFAST_", "PG", "PYTEST_", "XDG_", "EDITOR", "HOME", "SHELL", "TMPDIR", "VISUAL")  # no import uses these
ON_DEMAND = ("pydantic.type_adapter", "rich.console", "rich.table")  # loaded by commands that come to need them
NUMBER = struct.Struct("i")


class Zygote:
    """The process that commands are forked from, as tests see it."""

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

    def suits(self, environment: Mapping[str, str]) -> bool:
        """Whether modules that are loaded with this environment are as the zygote has them."""
        return all(name.startswith(LATE) for name, _ in environment.items() ^ self._environment.items())

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path, typed: bytes, *, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Run a command to its end: its exit code (negative: the signal that killed it), and what it wrote."""
        (stdin, keys), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
        news, channel = socket.socketpair()
        socket.send_fds(self._door, [b"."], [stdin, stdout, stderr, channel.fileno()])
        for end in (stdin, stdout, stderr):
            os.close(end)
        channel.close()
        threading.Thread(target=_type, args=(keys, typed), daemon=True).start()
        said, complained = _Voice(out), _Voice(err)
        with news:
            news.sendall(json.dumps({"words": words, "environment": environment, "folder": str(folder)}).encode())
            news.shutdown(socket.SHUT_WR)
            pid = _told(news)
            news.settimeout(timeout)
            try:
                code = _told(news)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
        return code, said.all(timeout), complained.all(timeout)


def _told(news: socket.socket) -> int:
    number = news.recv(NUMBER.size)
    assert number, "the zygote has ended; stderr tells why"
    return NUMBER.unpack(number)[0]


class _Voice(threading.Thread):
    """Reads a pipe until nobody is left who could write to it."""

    def __init__(self, end: int) -> None:
        super().__init__(daemon=True)
        self._end = end
        self._said = b""
        self.start()

    def run(self) -> None:
        with os.fdopen(self._end, "rb") as stream:
            self._said = stream.read()

    def all(self, timeout: float) -> bytes:
        self.join(timeout)
        assert not self.is_alive(), "the command has ended, and something that it started keeps its pipes open"
        return self._said


def _type(keys: int, typed: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(keys, "wb") as stream:  # nobody need read it
        stream.write(typed)


# The process itself


def load() -> None:
    """Load what commands load; the program is left to be run by each of them."""
    commands = iter_modules(import_module("holdfast.cli").__path__, "holdfast.cli.")
    for module in (*(command.name for command in commands), *ON_DEMAND):
        if module != PROGRAM:
            import_module(module)
    assert psutil.Process().num_threads() == 1, "a thread would be missing in what is forked"
    gc.freeze()  # pages that no collection touches stay shared


def serve(door: socket.socket) -> dict[str, Any]:
    """Fork commands for as long as somebody may want one; returns in each of them, with what it is to do."""
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


def become(words: list[str], environment: dict[str, str], folder: str) -> None:
    """Run a command as this process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[0] = str(Path.cwd())
    sys.argv[1:] = words
    runpy.run_module(PROGRAM, run_name="__main__", alter_sys=True)


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
