"""Clients of the chat: each has a socket, says something, and notes when each piece of the answer came."""

import asyncio
import json
import re
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

EVENTS = Subprotocol("holdfast.v1+json")
BEHIND, LONGEST = 0.8, 15.0  # of an answer's time a slow reader reads nothing, and seconds: it is to be taken for alive
SLOW = 20  # every so manieth
SMALL_BUFFER = 4096  # bytes that wait in the slow reader's kernel: what is more waits in the server
LONG, SHORT = 4000, 24  # characters of a piece: what is told to those who may be slow would fill all buffers
CONNECTING = 50  # sockets at once
PATIENCE = 60  # seconds longer than the model takes, after which an answer is given up


@dataclass(frozen=True, slots=True)
class Case:
    """So many answers at once, of so many pieces, and the seconds between two; whether some do not read."""

    at_once: int
    pieces: int
    delay: float
    slow: bool = False

    @property
    def seconds(self) -> float:
        """How long an answer takes, as the model tells it."""
        return self.pieces * self.delay


@dataclass(slots=True)
class Heard:
    """What clients heard: seconds that each piece took from the model, and the first from the question."""

    delays: list[float] = field(default_factory=list[float])
    firsts: list[float] = field(default_factory=list[float])
    slow: int = 0  # answers to those who did not read
    errors: list[str] = field(default_factory=list[str])


class Client:
    """Somebody with a socket, in a session of their own; of some the pieces are long, and these are the slow ones."""

    def __init__(self, url: str, number: int) -> None:
        self._host, port = url.removeprefix("http://").split(":")
        self._port = int(port)
        self._number = number
        self._long = number % SLOW == 0
        self._connection: ClientConnection | None = None

    async def open(self) -> ClientConnection:
        """Open the socket, if it is not open."""
        if self._connection is None:
            plug = socket.socket()
            if self._long:
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            plug.setblocking(False)
            await asyncio.get_running_loop().sock_connect(plug, (self._host, self._port))
            address = f"ws://{self._host}:{self._port}/ws/default?session_id=chat-{self._number}"
            self._connection = await connect(
                address, sock=plug, subprotocols=[EVENTS], compression=None, proxy=None, open_timeout=60,
                ping_interval=None, max_size=None,
            )  # fmt: skip
        return self._connection

    async def close(self) -> None:
        """Close it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def ask(self, case: Case, heard: Heard) -> None:
        """Have a story told, whole and once, or note what went wrong."""
        try:
            async with asyncio.timeout(case.seconds + PATIENCE):
                await self._ask(await self.open(), case, heard)
        except (WebSocketException, OSError) as error:
            heard.errors.append(f"{type(error).__name__} {error}")
            await self.close()

    async def _ask(self, connection: ClientConnection, case: Case, heard: Heard) -> None:
        asked = {"pieces": case.pieces, "length": LONG if self._long else SHORT, "delay": case.delay}
        slow = self._long and case.slow
        start, said, delays = time.monotonic(), "", list[float]()
        await connection.send(json.dumps({"type": "message", "text": json.dumps(asked)}))
        while True:
            event = json.loads(await connection.recv())
            now = time.monotonic()
            match event["kind"]:
                case "token":
                    if not said:
                        heard.firsts.append(now - start - case.delay)
                        if slow:
                            pause(connection, min(BEHIND * case.seconds, LONGEST))
                    if event.get("reset"):
                        said, delays = "", []
                    text = event.get("text", "")
                    said += text
                    delays += (now - float(left) for left in re.findall(r"@(\d+\.\d+)", text))
                case "answer":
                    if event["text"] != said or len(delays) != case.pieces:
                        heard.errors.append(f"{len(delays)} of {case.pieces} pieces, or not as they were told")
                case "error" | "refused":
                    heard.errors.append(json.dumps(event))
                    return
                case "done":
                    break
                case _:
                    pass
        if slow:
            heard.slow += 1
        else:
            heard.delays += delays


def pause(connection: ClientConnection, seconds: float) -> None:
    """Read nothing for a while."""
    connection.transport.pause_reading()
    asyncio.get_running_loop().call_later(seconds, connection.transport.resume_reading)


@asynccontextmanager
async def clients(url: str, count: int) -> AsyncGenerator[Sequence[Client]]:
    """So many clients, until they are no more needed."""
    made = [Client(url, number) for number in range(count)]
    room = asyncio.Semaphore(CONNECTING)

    async def open(client: Client) -> None:
        async with room:
            await client.open()

    await asyncio.gather(*map(open, made))
    yield made
    await asyncio.gather(*(client.close() for client in made))


async def chat(clients: Sequence[Client], case: Case, seconds: float, heard: Heard) -> None:
    """So many of the clients at a time have a story told, one after the other, evenly begun."""
    idle = deque(clients)
    end = time.monotonic() + max(seconds, case.seconds)

    async def work(number: int) -> None:
        await asyncio.sleep(case.seconds * number / case.at_once)
        while True:
            client = idle.popleft()
            await client.ask(case, heard)
            idle.append(client)
            if time.monotonic() > end:
                return

    await asyncio.gather(*(work(number) for number in range(case.at_once)))
