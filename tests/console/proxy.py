"""A reverse proxy that serves an engine under a path, as people put one before it."""

import re
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import cast

CHUNK = 65_536
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Proxy(ThreadingTCPServer):
    """Passes requests on, each on a connection of its own, with the path prefix left in or taken off."""

    request_queue_size = 128  # pages ask for much at once

    def __init__(self, port: int, prefix: str, *, strips: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.upstream = port
        self.prefix = prefix
        self.strips = strips
        self.open: set[socket.socket] = set()

    def server_close(self) -> None:
        """End what is still open, so that nobody waits for it."""
        for end in list(self.open):
            _end(end)
        super().server_close()


class _Passing(StreamRequestHandler):
    def handle(self) -> None:
        proxy = cast(Proxy, self.server)
        head = self._head()
        if not head:
            return  # a browser connects before it knows what to ask for
        method, path, rest = head.split(" ", 2)
        if path != proxy.prefix and not path.startswith((f"{proxy.prefix}/", f"{proxy.prefix}?")):
            self.wfile.write(NOT_FOUND)
            return
        if proxy.strips:
            path = path.removeprefix(proxy.prefix) or "/"
        if "\r\nupgrade: websocket" not in rest.lower():
            rest = re.sub(r"(?im)^connection: .*$", "Connection: close\r", rest)
        with socket.create_connection(("127.0.0.1", proxy.upstream)) as upstream:
            proxy.open |= {self.connection, upstream}
            upstream.sendall(f"{method} {path} {rest}\r\n".encode("latin-1"))
            there = Thread(target=self._pass_on, args=(upstream,))
            there.start()
            with suppress(OSError):
                while data := upstream.recv(CHUNK):
                    self.connection.sendall(data)
            _end(self.connection)
            there.join()
            proxy.open -= {self.connection, upstream}

    def _head(self) -> str:
        """The request without its body. A connection may end before its empty line."""
        lines = list[bytes]()
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            lines.append(line)
        return b"".join(lines).decode("latin-1")

    def _pass_on(self, upstream: socket.socket) -> None:
        with suppress(OSError, ValueError):
            while data := self.rfile.read1(CHUNK):
                upstream.sendall(data)
        _end(upstream)


@contextmanager
def proxied(port: int, prefix: str, *, strips: bool) -> Generator[str]:
    """The address of the engine behind a proxy, with the prefix."""
    with Proxy(port, prefix, strips=strips) as proxy:
        thread = Thread(target=proxy.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}{prefix}"
        proxy.shutdown()
        thread.join()


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
