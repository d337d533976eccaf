"""The program of a reader process: reads one file after the other, as its standard input says.

It is started in the sandbox, and sets the limits that hold for a file. What libraries print goes to standard error.
"""

import os
import resource
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Self

from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.reader.file_chunks import read
from holdfast.knowledge.reader.protocol import (
    SIZE,
    Acknowledge,
    End,
    Failure,
    Read,
    Ready,
    Reply,
    Request,
    Start,
    frame,
    request_decoder,
)
from holdfast.knowledge.tokenizer import Tokenizer

GRACE = 5  # seconds of CPU time beyond which the kernel ends a read, if the engine does not
MEGABYTE = 1024 * 1024


def main() -> None:
    """Serve requests until there are no more."""
    connection = EngineConnection.take_standard_streams()
    start = connection.receive()
    assert isinstance(start, Start)
    limit_memory(start.memory_mb)
    tokenizer = Tokenizer.load(None if start.tokenizer is None else Path(start.tokenizer))
    connection.send(Ready(os.getpid()))
    while True:
        request = connection.receive()
        if isinstance(request, Read):
            connection.expect_acknowledgements()
            limit_time(request.seconds)
            connection.send(serve(request, tokenizer, start, connection))


class EngineConnection:
    """What the engine sends and gets."""

    def __init__(self, requests: BinaryIO, replies: int) -> None:
        self._input = requests
        self._output = replies
        self._unacknowledged = 0

    @classmethod
    def take_standard_streams(cls) -> Self:
        """Return a connection over the standard streams of this process, which nothing else can write to any more."""
        connection = cls(os.fdopen(os.dup(0), "rb"), os.dup(1))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return connection

    def receive(self) -> Request:
        """Return the next request. The process ends when there is none."""
        header = self._input.read(SIZE.size)
        body = self._input.read(SIZE.unpack(header)[0]) if len(header) == SIZE.size else b""
        if not body:
            sys.exit(0)
        return request_decoder.decode(body)

    def send(self, reply: Reply) -> None:
        """Send a reply."""
        left = memoryview(frame(reply))
        while left:
            left = left[os.write(self._output, left) :]

    def expect_acknowledgements(self) -> None:
        """Begin a read, none of whose parts is sent yet."""
        self._unacknowledged = 0

    def send_part(self, reply: Reply, window: int) -> None:
        """Send a part. If `window` parts are not acknowledged, wait."""
        while self._unacknowledged >= window:
            if isinstance(self.receive(), Acknowledge):
                self._unacknowledged -= 1
        self.send(reply)
        self._unacknowledged += 1

    def finish_parts(self) -> None:
        """Wait until all parts are acknowledged."""
        while self._unacknowledged:
            if isinstance(self.receive(), Acknowledge):
                self._unacknowledged -= 1


def serve(request: Read, tokenizer: Tokenizer, start: Start, connection: EngineConnection) -> Reply:
    """Read a file and send its parts. Return how it ended."""
    reply = _read(request, tokenizer, start, connection)
    connection.finish_parts()
    return reply


def _read(request: Read, tokenizer: Tokenizer, start: Start, connection: EngineConnection) -> Reply:
    name = Path(request.path).name
    what = f"{name} cannot be read"
    try:
        parsers: Mapping[str, str] = start.parsers
        for part in read(request, tokenizer, parsers):
            connection.send_part(part, request.window)
    except ParseError as error:
        # Parsers that know only a file's content say "the file".
        return Failure(error.code, error.what.replace("the file ", f"{name} ", 1), error.why, error.next)
    except MemoryError:
        return out_of_memory(what, start.memory_mb)
    except RecursionError:
        return Failure("too_deep", what, "it is nested too deep", "Save it in another format, or divide it.")
    except Exception as error:  # noqa: BLE001 - a file can have any fault
        why = f"{type(error).__name__}: {error}".partition("\n")[0][:300]
        return Failure("damaged", what, why, "Open it in its program, and save it again.", traceback.format_exc())
    return End(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def out_of_memory(what: str, memory_mb: int) -> Failure:
    """Return the failure of a file that needs too much memory."""
    return Failure(
        "too_large",
        what,
        f"it needed more than {memory_mb:,} MB of memory",
        "Divide the file, or raise memory.knowledge.parse_memory_mb.",
    )


def limit_memory(memory_mb: int) -> None:
    """Limit the memory of this process, and let it write no file."""
    for limit, value in (
        (resource.RLIMIT_DATA, memory_mb * MEGABYTE),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        allowed = _allowed(limit, value)
        resource.setrlimit(limit, (allowed, allowed))


def limit_time(seconds: float) -> None:
    """Let the kernel end this process if it takes more CPU time than a read may take."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime + seconds) + GRACE
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (_allowed(resource.RLIMIT_CPU, until), most))


def _allowed(limit: int, value: int) -> int:
    most = resource.getrlimit(limit)[1]
    return value if most == resource.RLIM_INFINITY else min(value, most)


if __name__ == "__main__":
    main()
