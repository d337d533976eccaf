"""A server that sends bytes just as a test wants them: cut, slow, broken off; and keeps what it was asked."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WIRE = Path(__file__).parent / "wire"


def recorded(name: str) -> bytes:
    """A body as a provider sends it."""
    return (WIRE / f"{name}.txt").read_bytes()


def error(message: str, **fields: object) -> bytes:
    """A refusal as OpenAI words it."""
    return json.dumps({"error": {"message": message, **fields}}).encode()


@dataclass(frozen=True)
class Sent:
    """An answer: its pieces, each sent by itself; `breaks` ends the connection without an end of the body."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    kind: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    breaks: bool = False
    hangs: bool = False  # after the last piece, until the other side goes


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Wire:
    """Answers every POST with the next of `answers`; the last one is given for ever."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.answers: deque[Sent] = deque()
        self.arrived = asyncio.Event()
        self.left = asyncio.Event()  # somebody went away before the answer ended
        self.open = 0
        self.most_open = 0

    def will_send(self, *answers: Sent | bytes) -> None:
        """What to answer, in order."""
        self.answers = deque(answer if isinstance(answer, Sent) else Sent([answer]) for answer in answers)

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Listen as long as it lasts."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                self.asked.append(await _read(reader))
                self.open += 1
                self.most_open = max(self.most_open, self.open)
                self.arrived.set()
                answer = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
                await self._answer(answer, reader, writer)
                self.open -= 1
                if answer.breaks:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, answer: Sent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        headers = {"Content-Type": answer.kind, "Transfer-Encoding": "chunked", **answer.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {answer.status} Said\r\n{head}\r\n".encode())
        for piece in answer.pieces:
            if piece:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
                await asyncio.sleep(0)
        if answer.hangs:
            if await reader.read(1) == b"":
                self.left.set()
                raise ConnectionError
        elif not answer.breaks:
            writer.write(b"0\r\n\r\n")
            await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(head[0].split()[1], headers, json.loads(body))
