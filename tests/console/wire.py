"""A wire between a browser and the server that breaks: real connections, torn off in mid-stream, or none at all."""

import socket
import struct
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

CHUNK = 65536
SPARED = 3  # pieces of a socket that pass before it is torn: its handshake, its greeting, and one more
TORN_OFF = struct.pack("ii", 1, 0)  # closed with a reset, and without what is still to be sent


class Wire:
    """Passes on what both say; `tears` sockets are torn off, each in the middle of a piece, while any are left."""

    def __init__(self, url: str) -> None:
        self._server = (urlsplit(url).hostname, urlsplit(url).port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.tears = 0
        self.torn = 0
        self.is_down = False

    def accept(self) -> None:
        """Take connections until the wire is closed."""
        with suppress(OSError):
            while True:
                browser, _ = self._listening.accept()
                threading.Thread(target=self._join, args=(browser,), daemon=True).start()

    def cut(self) -> None:
        """Tear off all there is, and let nothing through."""
        self.is_down = True
        for end in list(self._open):
            _tear(end)

    def mend(self) -> None:
        """Let through what comes from now on."""
        self.is_down = False

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def _join(self, browser: socket.socket) -> None:
        with browser, suppress(OSError):
            self._open.add(browser)  # a browser connects before it knows what to ask for, and that is cut, too
            request = browser.recv(CHUNK)
            with socket.create_connection(self._server) as server:
                self._open.add(server)
                if self.is_down:  # asked when a cut would find both
                    _tear(browser)
                    return
                server.sendall(request)
                threading.Thread(target=_pass_on, args=(browser, server), daemon=True).start()
                self._tell(server, browser, is_socket=request.startswith(b"GET /ws/"))

    def _tell(self, server: socket.socket, browser: socket.socket, *, is_socket: bool) -> None:
        passed = 0
        while piece := server.recv(CHUNK):
            passed += 1
            if is_socket and self.tears > 0 and passed > SPARED:
                self.tears -= 1
                self.torn += 1
                browser.sendall(piece[: len(piece) // 2])
                break
            browser.sendall(piece)
        _tear(browser)
        _tear(server)


@contextmanager
def wired(url: str) -> Generator[Wire]:
    """A wire to a server."""
    wire = Wire(url)
    accepting = threading.Thread(target=wire.accept, daemon=True)
    accepting.start()
    try:
        yield wire
    finally:
        wire.close()
        accepting.join()


def _pass_on(browser: socket.socket, server: socket.socket) -> None:
    with suppress(OSError):
        while piece := browser.recv(CHUNK):
            server.sendall(piece)
    _tear(server)


def _tear(end: socket.socket) -> None:
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, TORN_OFF)
        end.shutdown(socket.SHUT_RDWR)
    end.close()
