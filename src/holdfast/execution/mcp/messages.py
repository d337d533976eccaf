"""Messages: JSON-RPC messages and event streams of MCP servers, read within limits. Pure, but for a thread."""

import sys
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from holdfast.core.errors import HoldfastError, TooLarge, Unavailable
from holdfast.core.text import parse
from holdfast.core.threads import run_in_worker
from holdfast.mcp.protocol import INTERNAL_ERROR, METHOD_NOT_FOUND, McpError

Message = Mapping[str, Any]

MAX_VALUES = 200_000  # of JSON in one message
THREAD = 2**18  # bytes above which a message is parsed in a thread, so that it does not block the event loop
MAX_TEXT = 2000  # characters of a server's error message
MAX_RETRY = 60.0  # seconds that a server can have its client wait before it comes back


@dataclass(slots=True)
class StreamPlace:
    """Where a stream of events was cut: its last event, and how long to wait before it goes on."""

    last: str = ""
    retry: float = 1.0


async def messages_of(data: bytes) -> list[Message]:
    """Parse a message, or a batch of messages. Raise Unavailable if it is neither."""
    try:
        if len(data) <= THREAD:
            found: object = parse(data, limit=len(data), most_values=MAX_VALUES)
        else:
            found = await run_in_worker(lambda: parse(data, limit=len(data), most_values=MAX_VALUES))
    except TooLarge:
        raise
    except HoldfastError as error:
        raise Unavailable("the server sent a message that is not valid JSON", why=error.why) from None
    batch = cast(list[Any], found) if isinstance(found, list) else [found]
    if not batch or not all(isinstance(each, dict) and cast(Message, each).get("jsonrpc") == "2.0" for each in batch):
        raise Unavailable("the server sent something that is not a JSON-RPC message")
    return cast(list[Message], batch)


def is_response(message: Message, id: object) -> bool:
    """Whether a message is the response to a request. An error without an id is, too: the request was not read."""
    if "method" in message:
        return False
    return message.get("id") == id or ("error" in message and message.get("id") is None)


def result_of(message: Message, *, status: int = 200) -> dict[str, Any]:
    """Return the result in a response. Raise McpError if it is an error. `status`: that of HTTP."""
    error: object = message.get("error")
    if isinstance(error, dict):
        fields = cast(dict[str, Any], error)
        code, data = fields.get("code"), fields.get("data")
        number = code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR
        text = str(fields.get("message") or "the server gives no reason")[:MAX_TEXT]
        raise McpError(number, text, cast(dict[str, Any], data) if isinstance(data, dict) else None, status=status)
    result: object = message.get("result")
    if not isinstance(result, dict):
        raise Unavailable("the server sent a response without a result")
    return cast(dict[str, Any], result)


def params_of(message: Message) -> dict[str, Any]:
    """Return the params of a request or notification; empty if they are no object."""
    params: object = message.get("params")
    return cast(dict[str, Any], params) if isinstance(params, dict) else {}


def refusal(id: object, code: int = METHOD_NOT_FOUND, message: str = "this client cannot do this") -> dict[str, Any]:
    """Return the response that refuses a request of a server."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message[:MAX_TEXT]}}


class _Events:
    """Collects the lines of a stream into events. `place` says how to continue the stream."""

    def __init__(self, place: StreamPlace, most: int) -> None:
        self._place = place
        self._most = most
        self._data: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> bytes | None:
        """Add a line. Return the data of the event that it ends, if it ends one; without data it only marks a place."""
        if not line:
            found, self._data, self._size = b"\n".join(self._data), [], 0
            return found or None
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
            _check_event(self._size, self._most)
        elif name == b"id" and b"\0" not in value:
            self._place.last = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit():
            self._place.retry = min(int(value[:9]) / 1000, MAX_RETRY)
        return None


async def events_of(
    chunks: AsyncIterable[bytes], place: StreamPlace, *, limit: int, event_limit: int = sys.maxsize
) -> AsyncIterator[bytes]:
    """Yield the data of the events of a stream, and note in `place` how to continue it.

    Raises TooLarge above `limit` bytes: a stream ends with the response, and a server that never ends it is cut off.
    An event has at most `event_limit` bytes.
    """
    events, buffer, size = _Events(place, event_limit), bytearray(), 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"the stream of the server has more than {limit:,} bytes, and was not read to its end")
        buffer += chunk
        if b"\n" not in chunk:  # a long line is searched once
            _check_event(len(buffer), event_limit)
            continue
        *lines, rest = buffer.replace(b"\r\n", b"\n").split(b"\n")
        buffer = bytearray(rest)
        for line in lines:
            if (data := events.add(bytes(line))) is not None:
                yield data
    if (data := events.add(b"")) is not None:
        yield data


def _check_event(size: int, most: int) -> None:
    if size > most:
        raise TooLarge(f"a message of the server has more than {most:,} bytes, and was not read")
