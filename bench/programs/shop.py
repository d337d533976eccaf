"""A back end of little cost, in a process of its own: every request is answered with the same small JSON.

    shop.py

Says `ready`; to a line, as JSON, the port that it listens on, how many requests came, and how many of them said who
calls.
"""

import asyncio
import json
import re
import sys
from typing import cast

import uvloop
from customer import ANSWER

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(ANSWER),
    ANSWER.encode(),
)
IDENTITY = b"\r\nHoldfast-Identity: ey"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Shop(asyncio.Protocol):
    """Answers whatever comes, in the order in which it comes. All of them count together."""

    requests = identified = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            length = LENGTH.search(self._data, 0, end)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._data) < whole:
                return
            head, body, self._data = self._data[:end], self._data[end + 4 : whole], self._data[whole:]
            self._transport.write(self.answer(head, body))

    def answer(self, head: bytes, body: bytes) -> bytes:
        """Return the response to a request."""
        Shop.requests += 1
        Shop.identified += IDENTITY in head
        return RESPONSE


async def main() -> None:
    """Serve until the standard input ends."""
    server = await asyncio.get_running_loop().create_server(Shop, "127.0.0.1", 0)
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        told = {"port": server.sockets[0].getsockname()[1], "token": None}
        print(json.dumps({**told, "requests": Shop.requests, "identified": Shop.identified}), flush=True)
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
