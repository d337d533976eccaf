"""Clients of an HTTP server, in a process of their own: each sends the same bytes again as soon as it has the answer.

    loader.py

Says `ready`. A line is a load as JSON: `port`, `request`, `clients`, `seconds`, and `expect`, which every answer
contains at least so many `times`. It says `open` when all clients are connected, begins at the next line, and says as
JSON what came of it.
"""

import asyncio
import json
import re
import sys
import time
from dataclasses import dataclass, field
from typing import Any, cast

import uvloop

CONNECTING = 32  # at once
PATIENCE = 60.0  # seconds for the last answers
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
LAST_CHUNK = b"\r\n0\r\n\r\n"


@dataclass(slots=True)
class Load:
    """What is sent for how long, and what came back: the seconds that each answer took, and what was wrong."""

    request: bytes
    expect: bytes
    least: int
    end: float = 0.0
    waiting: int = 0
    times: list[float] = field(default_factory=list[float])
    wrong: list[str] = field(default_factory=list[str])
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Client(asyncio.Protocol):
    """Sends, and waits for the answer."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._data = bytearray()
        self._whole = 0  # bytes of the answer, when they are known
        self._waits = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self) -> None:
        """Send the request."""
        self._waits = True
        self._began = time.perf_counter()
        self._transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._is_whole():
            return
        load, now = self._load, time.perf_counter()
        is_right = self._data.startswith(b"HTTP/1.1 200 ") and self._data.count(load.expect) >= load.least
        if is_right:
            load.times.append(now - self._began)
        else:
            load.wrong.append(self._data[:2000].decode(errors="replace"))
        self._data.clear()
        self._whole = 0
        if now < load.end and is_right:
            self.send()
        else:
            self._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waits:
            self._load.wrong.append(f"the connection was closed: {exc}")
            self._leave()

    def close(self) -> None:
        """Close the connection."""
        self._waits = False
        self._transport.close()

    def _is_whole(self) -> bool:
        if not self._whole:
            head = self._data.find(b"\r\n\r\n")
            if head < 0:
                return False
            length = LENGTH.search(self._data, 0, head)
            if length is None:  # in chunks
                return self._data.endswith(LAST_CHUNK)
            self._whole = head + 4 + int(length[1])
        return len(self._data) >= self._whole

    def _leave(self) -> None:
        self._waits = False
        self._load.waiting -= 1
        if not self._load.waiting:
            self._load.done.set()


async def carry(asked: dict[str, Any]) -> None:
    """Open, wait for the word, send until the time is over, tell."""
    load = Load(asked["request"].encode("latin-1"), asked["expect"].encode(), asked["times"])
    loop, room, clients = asyncio.get_running_loop(), asyncio.Semaphore(CONNECTING), list[Client]()

    async def connect() -> None:
        async with room:
            _, client = await loop.create_connection(lambda: Client(load), "127.0.0.1", asked["port"])
            clients.append(client)

    await asyncio.gather(*(connect() for _ in range(asked["clients"])))
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    began, load.waiting = time.perf_counter(), len(clients)
    load.end = began + asked["seconds"]
    for client in clients:
        client.send()
    try:
        async with asyncio.timeout(asked["seconds"] + PATIENCE):
            await load.done.wait()
    except TimeoutError:
        load.wrong += [f"no answer within {PATIENCE:g} s"] * load.waiting
    wall = time.perf_counter() - began
    for client in clients:
        client.close()
    times = sorted(load.times)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    slow = {name: times[int(share * len(times))] if times else PATIENCE for name, share in shares.items()}
    told = {"calls": len(times), "seconds": wall, **slow}
    print(json.dumps({**told, "wrong": len(load.wrong), "said": (load.wrong or [""])[0]}), flush=True)


async def main() -> None:
    """Carry one load after the other until the standard input ends."""
    print("ready", flush=True)
    while asked := await asyncio.to_thread(sys.stdin.readline):
        await carry(json.loads(asked))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
