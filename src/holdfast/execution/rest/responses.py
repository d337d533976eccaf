"""Responses: reads a back end's answer up to a size limit, and converts it so that a model can act on it."""

import re
import zlib
from collections.abc import AsyncIterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge, Unavailable
from holdfast.core.pace import Pace
from holdfast.core.text import parse
from holdfast.execution.rest.bodies import is_text
from holdfast.execution.rest.redirects import READING, WITH_BODY
from holdfast.execution.rest.styles import is_json
from holdfast.execution.runner import JSON, Result

# Advice to the model by error status.
ADVICE: Mapping[int, str] = {
    400: "The back end rejected the arguments: change them.",
    401: "The back end rejected the credentials: an operator has to check the secrets of the source.",
    403: "The back end denied permission: the same call will fail again.",
    404: "It does not exist: check the names and ids in the arguments.",
    405: "The back end does not support this method: an operator has to check the tool.",
    408: "The back end timed out while it waited for the request: try again.",
    409: "It conflicts with the current state: read that first.",
    410: "It was removed permanently.",
    412: "It has changed since you read it: read it again first.",
    413: "The arguments are too large: send less.",
    415: "The back end does not support this content type: an operator has to check the tool.",
    422: "The back end rejected the arguments: change them.",
    429: "The back end limits the rate of calls: wait before the next call.",
}
FAILS = "The back end failed: try again later."
IN_DOUBT = "The back end failed, and the call may have taken effect: check before you call it again."
NOT_DONE = "The call did not take effect: the back end redirects it to the location."
DONE = "The call took effect; its result is at the location."
SENT_ON = "The call may have taken effect, or may have to be sent to the location: check before you call it again."

_HIDDEN_HEADERS = frozenset({"set-cookie", "set-cookie2"})

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)
MAX_ANSWER_VALUES = 200_000  # of JSON; an answer with more is returned as text
MAX_MEMBERS = 1000  # of gzip; programs that write one per block put 64 KB or more into each
_GZIP = zlib.MAX_WBITS | 16
_SECONDS = re.compile(r"\d{1,9}")


async def read_body(chunks: AsyncIterable[bytes], *, encoding: str, limit: int) -> bytes:
    """Read and decompress a body. Raise TooLarge as soon as it exceeds `limit` bytes, compressed or decompressed."""
    body = bytearray()
    inflater = _inflater(encoding)
    room = limit + limit // 100 + 1000  # compression adds a little to incompressible data
    pace = Pace()
    async for chunk in chunks:
        await pace.rest()
        room -= len(chunk)
        body += inflater.feed(chunk, limit + 1 - len(body)) if inflater is not None else chunk
        if len(body) > limit or room < 0:
            next = "Request less: a page, a filter, fewer fields."
            raise TooLarge(f"the response has more than {limit:,} bytes, and was not read", next=next)
    if inflater is not None:
        inflater.finish()
    return bytes(body)


def to_result(
    status: int, headers: Mapping[str, str], body: bytes, *, method: str = "GET", idempotent: bool = True
) -> Result:
    """Convert an answer to a result. For an error status, it has the status, advice, and the back end's body."""
    kind = headers.get("Content-Type", "")
    if status >= 400:
        return Result(_refusal(status, headers, _value(kind, body), idempotent=idempotent), failed=True)
    if 300 <= status < 400 and status != 304:
        return Result(_describe_redirect(status, headers, method), failed=status != 303)
    if method == "HEAD":
        shown_headers = {name.lower(): value for name, value in headers.items() if name.lower() not in _HIDDEN_HEADERS}
        return Result({"status": status, "headers": shown_headers})
    if not body:
        where = headers.get("Location")
        return Result({"status": status, "location": where} if where else None)
    value = _value(kind, body)
    if isinstance(value, _Bytes):
        return Result(value.describe(), whole=body, content_type=value.kind)
    return Result(value, content_type=JSON if not isinstance(value, str) else kind.partition(";")[0] or "text/plain")


@dataclass(frozen=True, slots=True)
class _Bytes:
    """A placeholder for binary data: its type and size."""

    kind: str
    size: int

    def describe(self) -> dict[str, Any]:
        return {"content_type": self.kind, "bytes": self.size, "note": "Binary data is not shown here."}


def _value(content_type: str, body: bytes) -> Any:
    kind = content_type.partition(";")[0].strip().lower()
    json = is_json(kind)
    if json or kind in ("", "text/plain"):
        bare = body.lstrip(b"\xef\xbb\xbf \t\r\n")
        if json or bare[:1] in (b"{", b"["):
            with suppress(HoldfastError):  # invalid JSON is returned as text
                return parse(bare, limit=len(bare), most_values=MAX_ANSWER_VALUES)
    if json or is_text(kind) or _reads_as_text(kind, body):
        return _text(content_type, body)
    return _Bytes(kind or "an unknown type", len(body))


def _reads_as_text(kind: str, body: bytes) -> bool:
    """Whether a body of an unspecific type is text: binary data is seldom valid UTF-8, and text has no NUL."""
    if kind not in ("", "application/octet-stream", "application/x-www-form-urlencoded") or b"\0" in body:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(content_type: str, body: bytes) -> str:
    found = _CHARSET.search(content_type)
    charset = found[1] if found else "utf-8"
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        charset = "utf-16"
    elif body[:3] == b"\xef\xbb\xbf":
        charset = "utf-8-sig"
    try:
        return body.decode(charset, errors="replace")
    except (LookupError, ValueError):  # an unknown charset, or a codec that is not for text
        return body.decode(errors="replace")


def _refusal(status: int, headers: Mapping[str, str], body: Any, *, idempotent: bool) -> dict[str, Any]:
    try:
        name = HTTPStatus(status).phrase
    except ValueError:
        name = "refused"
    advice = ADVICE.get(status, "The back end rejected the call.")
    if not idempotent and (status >= 500 or status == HTTPStatus.REQUEST_TIMEOUT):
        advice = IN_DOUBT
    elif status >= 500:
        advice = FAILS
    result: dict[str, Any] = {"status": status, "error": f"{name}. {advice}"}
    if again := headers.get("Retry-After", "").strip():
        result["retry_after"] = f"{again} seconds" if _SECONDS.fullmatch(again) else again
    return {**result, "body": body.describe() if isinstance(body, _Bytes) else body}


def _describe_redirect(status: int, headers: Mapping[str, str], method: str) -> dict[str, Any]:
    """Describe a redirect that is not followed. Many back ends report success with a 302."""
    note = NOT_DONE if status in WITH_BODY or method in READING else SENT_ON
    where = headers.get("Location", "")
    return {"status": status, "location": where, "note": DONE if status == HTTPStatus.SEE_OTHER else note}


class _Inflater:
    """Decompresses a stream, and never more than there is room for."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._begun = False
        self._head = b""
        self._members = 1
        self._stream = zlib.decompressobj(_GZIP) if encoding != "deflate" else None

    def feed(self, data: bytes, room: int) -> bytes:
        """Decompress data; return at most `room` bytes."""
        self._begun = True
        if self._stream is None:
            data = self._head = self._head + data
            if len(data) < 2:
                return b""
            # Some servers send `deflate` without the zlib header.
            has_head = data[0] & 15 == zlib.DEFLATED and (data[0] << 8 | data[1]) % 31 == 0
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if has_head else -zlib.MAX_WBITS)
        found = bytearray()
        try:
            while data and len(found) < room:
                if self._stream.eof:
                    data = data.lstrip(b"\0")  # some servers add padding
                    if self._encoding == "deflate" or not data:
                        break
                    self._members += 1
                    if self._members > MAX_MEMBERS:
                        what = f"the response of the back end has more than {MAX_MEMBERS:,} gzip members"
                        raise TooLarge(
                            what, why="each takes time to decompress, however small it is", limit=MAX_MEMBERS
                        )
                    self._stream = zlib.decompressobj(_GZIP)  # gzip may have several members
                found += self._stream.decompress(data, room - len(found))
                data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        except zlib.error as error:
            what = f"the response of the back end is not valid {self._encoding}"
            raise Unavailable(what, why=str(error)) from None
        return bytes(found)

    def finish(self) -> None:
        """Raise Unavailable if the stream is incomplete."""
        if self._begun and (self._stream is None or not self._stream.eof):
            raise Unavailable("the back end broke off its response", why=f"its {self._encoding} stream is incomplete")


def _inflater(encoding: str) -> _Inflater | None:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Inflater(encoding)
    raise InvalidInput(f"the response is compressed as {encoding!r}", why="only gzip and deflate were accepted")
