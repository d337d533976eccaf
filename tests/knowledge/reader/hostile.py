"""Parsers that do what no parser may do. A reader process runs them."""

import ctypes
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.units import Unit


def _unit(text: str, number: int = 1) -> Unit:
    return Unit(number, text, [])


def crash(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    yield _unit("Before the crash.")
    ctypes.string_at(0)


def leave(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    yield _unit("Before the end.")
    os._exit(3)


def fail(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    raise ZeroDivisionError("nobody has foreseen this")


def loop(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    yield _unit("Before the loop.")
    while True:
        pass


def allocate(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    kept: list[bytearray] = []
    while True:
        kept.append(bytearray(32 * 1024 * 1024))
        yield _unit("More.", len(kept))


def nest(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    yield from nest(path, first=first, limits=limits)


def chatter(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    print("not a frame" * 1000)  # noqa: T201
    os.write(1, b"\xff" * 1000)
    yield _unit("The text.")


def wait(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    """Yield the process id, and then nothing more for a long time."""
    for number in range(1, 100):
        yield _unit(f"Process {os.getpid()}. " * 40, number)
    time.sleep(600)


def process(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    yield _unit(str(os.getpid()))


def modules(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    yield _unit("\n".join(sorted(sys.modules)))


def intrude(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    """Yield what the process may do, a line for each attempt."""
    attempts = {
        "read its input": path.read_bytes,
        "read other files": Path("/etc/passwd").read_text,
        "write its input": lambda: path.write_text("changed"),
        "write elsewhere": lambda: Path("/tmp/holdfast-intruder").write_text("here"),
        "connect": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
        "signal its parent": lambda: os.kill(os.getppid(), 0),
    }
    lines: list[str] = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError as error:
            lines.append(f"{name}: {type(error).__name__}")
        else:
            lines.append(f"{name}: done")
    yield _unit("\n".join(lines))


def endless(path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]:
    number = first
    while True:
        yield _unit(f"Unit {number}. " + "This is a sentence of a text without an end. " * 400, number)
        number += 1


PARSERS = {
    f"application/x-{each.__name__}": f"{__name__}:{each.__name__}"
    for each in (crash, leave, fail, loop, allocate, nest, chatter, wait, process, modules, intrude, endless)
}
