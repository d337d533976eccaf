"""A parser for server-sent events that arrive in pieces, with a limit on their size."""

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.core.errors import TooLarge

MAX_EVENT_BYTES = 4 * 1024 * 1024

_MARK = b"\xef\xbb\xbf"  # a byte order mark may precede the stream


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event: its kind, if it has one, and its data."""

    kind: str
    data: bytes


class EventParser:
    """Parses bytes into events. An event without its final empty line is dropped: it may be incomplete."""

    def __init__(self, *, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._line = bytearray()
        self._begun = False
        self._after_return = False
        self._kind = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that end in `data`."""
        if not data:
            return
        if self._after_return:
            data = data.removeprefix(b"\n")
        for part in data.splitlines(keepends=True):  # bytes are split only at \n, \r and \r\n
            content = part.rstrip(b"\r\n")
            self._bound(len(content))
            self._line += content
            if len(content) < len(part):
                line = bytes(self._line)
                self._line.clear()
                event = self._take(line)
                if event is not None:
                    yield event
        self._after_return = data.endswith(b"\r")

    def _take(self, line: bytes) -> ServerSentEvent | None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_MARK)
        if not line:
            return self._whole()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + 1
            self._data.append(value)
        elif name == b"event":
            self._kind = value.decode(errors="replace")
        return None

    def _whole(self) -> ServerSentEvent | None:
        event = ServerSentEvent(self._kind, b"\n".join(self._data)) if self._data else None
        self._kind, self._data, self._size = "", [], 0
        return event

    def _bound(self, more: int) -> None:
        size = self._size + len(self._line) + more
        if size > self._limit:
            raise TooLarge("an event is too large", why=f"it has more than {self._limit} bytes", limit=self._limit)
