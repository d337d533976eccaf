"""Lossless storage of text and JSON in PostgreSQL.

PostgreSQL's text cannot contain NUL or lone surrogates. Its jsonb cannot contain NaN or infinity, and does not keep
whether a whole number was a float. Such values are stored with an escape, a code point that Unicode reserves for
internal use:

    NUL, lone surrogate, the escape itself    ESCAPE + four hex digits
    NaN, Infinity, -Infinity in JSON          the string ESCAPE + "nan", "inf" or "-inf"
    a float of 1e16 or more in JSON           all its digits, and ".0"

`store` and `restore` are for text columns, `dumps` and `loads` for jsonb, `parse` and `render` for the wire.
"""

import json
import math
import re
from functools import partial
from typing import Any, NoReturn, cast

import msgspec

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.json_limits import MAX_VALUES, check_work, decode
from holdfast.core.threads import run_in_worker

MAX_TEXT_BYTES = 8 * 1024 * 1024
MAX_JSON_DEPTH = 128
MAX_STORED_VALUES = 1_000_000  # in a stored JSON value
LARGE_JSON = 256 * 1024  # bytes; decoding more may take over 30 ms
MAX_INTEGER_DIGITS = 4300  # the limit of Python and msgspec
MAX_SURROGATES = 100_000  # surrogates in a text with a lone one: each is escaped separately

ESCAPE = "\U0010fffe"

_ESCAPES = ((ESCAPE, ESCAPE + "fffe"), ("\0", ESCAPE + "0000"))  # the escape first
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(ESCAPE + "(0000|d[89a-f][0-9a-f]{2}|fffe)")
_ESCAPE_BYTES = ESCAPE.encode()
_NON_FINITE = {ESCAPE + "nan": math.nan, ESCAPE + "inf": math.inf, ESCAPE + "-inf": -math.inf}

# msgspec writes floats of 1e16 and more with an exponent. A string that looks like one only takes the slower path.
_MAY_BE_BIG_FLOAT = re.compile(rb"e\d\d\d?(?:[,\]}]|\Z)")
_BIG_FLOAT = 1e16
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
TRUNCATED = "truncated"  # in the message of the decoder, which then names no position
_BYTE_OFFSET = re.compile(r"\s*\(byte (\d+)\)$")


def store(text: str) -> str:
    """Return `text` in a form that PostgreSQL can store; `restore` reverses it."""
    try:
        size = len(text) if text.isascii() else len(text.encode())
        clean = "\0" not in text and ESCAPE not in text
    except UnicodeEncodeError:
        size, clean = 0, False
    if not clean:
        text = _escape_text(text)
        size = len(text.encode())
    _check_size("the text", size, MAX_TEXT_BYTES)
    return text


def restore(text: str) -> str:
    """Return the original of a text that `store` returned."""
    return _ESCAPED.sub(_unescape, text) if ESCAPE in text else text


def dumps(value: object) -> str:
    """Encode a value as JSON for jsonb; `loads` returns the same value.

    Accepts the types of msgspec: JSON's types, and UUID, datetime, structs, dataclasses and others as their JSON form.
    Numeric keys become strings. An integer can have at most 4,300 digits. jsonb does not keep a negative zero.
    """
    try:
        data = _encode(value)
        _check_size("the JSON value", len(data), MAX_TEXT_BYTES)
        check_work(data, most=MAX_STORED_VALUES)
        # Only a value with many brackets can be deep; others are not checked.
        if _count_brackets(data) > MAX_JSON_DEPTH:
            _check_depth(decode(data))
    except RecursionError:
        _raise_too_deep()
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            "the value cannot be encoded as JSON",
            why=_one_line(error),
            next=f"Use text, numbers of at most {MAX_INTEGER_DIGITS} digits, lists, and mappings with text as keys.",
        ) from None
    return data.decode()


def loads(data: str | bytes) -> Any:
    """Decode JSON that `dumps` wrote."""
    try:
        try:
            # A tenant may have written it by plain SQL.
            if len(data) > MAX_STORED_VALUES:
                check_work(data.encode() if isinstance(data, str) else data, most=MAX_STORED_VALUES)
            value = decode(data)
        except msgspec.ValidationError:
            # msgspec writes longer negative integers than it reads: it counts the sign as a digit.
            value = json.loads(data)
        escaped = ESCAPE in data if isinstance(data, str) else _ESCAPE_BYTES in data
        return _restore_value(value) if escaped else value
    except RecursionError:
        _raise_too_deep()
    except (msgspec.MsgspecError, ValueError, TooLarge) as error:
        raise InvalidInput("the stored JSON is invalid", why=_one_line(error)) from None


def parse(data: bytes, *, limit: int = MAX_TEXT_BYTES, most_values: int = MAX_VALUES) -> Any:
    """Decode JSON from a client. Raises InvalidInput with the position of the error, or TooLarge.

    A lone surrogate such as `\\ud83d` is kept. NaN and numbers out of the range of a float are rejected. If an object
    has a key twice, the last one counts. Nothing else runs in the process meanwhile: call it in another process for
    large texts with a `most_values` above the default.
    """
    _check_size("the JSON text", len(data), limit)
    check_work(data, most=most_values)
    try:
        try:
            value = decode(data)
        except msgspec.DecodeError:
            if not _SURROGATE_ESCAPE.search(data):
                raise
            if data.count(b"\\ud") + data.count(b"\\uD") > MAX_SURROGATES:
                _raise_too_many_surrogates()
            value = _parse_with_surrogates(data)
        if _count_brackets(data) > MAX_JSON_DEPTH:
            _check_depth(value)
    except RecursionError:
        _raise_too_deep()
    except UnicodeDecodeError:
        _raise_not_utf8(data)
    except (msgspec.DecodeError, ValueError) as error:
        why = _one_line(error)
        found = _BYTE_OFFSET.search(why)
        details = {"offset": int(found[1])} if found else {"offset": len(data)} if TRUNCATED in why else {}
        raise InvalidInput(
            "the text is not valid JSON", why=why, next="Send one JSON value in UTF-8.", **details
        ) from None
    return value


async def parse_large(data: bytes, *, limit: int = MAX_TEXT_BYTES, most_values: int = MAX_VALUES) -> Any:
    """Decode JSON like `parse`; a large text is decoded in a thread."""
    if len(data) <= LARGE_JSON:
        return parse(data, limit=limit, most_values=most_values)
    return await run_in_worker(partial(parse, data, limit=limit, most_values=most_values))


def render(value: object) -> bytes:
    """Encode JSON for a client. Writes a lone surrogate as its `\\u` escape, NaN and infinity as null."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(
            _replace_non_finite(msgspec.to_builtins(value, str_keys=True)), separators=(",", ":")
        ).encode()


def _encode(value: object) -> bytes:
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        pass
    else:
        # msgspec writes NaN as null: only a traversal of the value can tell them apart.
        suspect = b"null" in data or b"\\u0000" in data or _ESCAPE_BYTES in data or _MAY_BE_BIG_FLOAT.search(data)
        if not suspect:
            return data
    return msgspec.json.encode(_Escaper().value(msgspec.to_builtins(value, str_keys=True)))


class _Escaper:
    """Escapes one JSON value."""

    def __init__(self) -> None:
        self._digits = 0  # of big floats

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return _escape_text(value)
        if isinstance(value, float):
            return self._float(value)
        if isinstance(value, dict):
            return {_escape_text(key): self.value(item) for key, item in cast(dict[str, Any], value).items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in cast(list[Any], value)]
        return value

    def _float(self, number: float) -> object:
        if not math.isfinite(number):
            return f"{ESCAPE}{number}"
        if abs(number) < _BIG_FLOAT:
            return number
        # jsonb is numeric: without a fraction, the value would come back as an integer, and not as an equal one.
        data = f"{int(number)}.0".encode()
        self._digits += len(data)
        _check_size("the JSON value", self._digits, MAX_TEXT_BYTES)
        return msgspec.Raw(data)


def _escape_text(text: str) -> str:
    for character, escaped in _ESCAPES:
        text = text.replace(character, escaped)
    return _SURROGATE.sub(lambda found: f"{ESCAPE}{ord(found[0]):04x}", text)


def _restore_value(value: Any) -> Any:
    if isinstance(value, str):
        return _NON_FINITE[value] if value in _NON_FINITE else restore(value)
    if isinstance(value, dict):
        return {restore(key): _restore_value(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_restore_value(item) for item in cast(list[Any], value)]
    return value


def _unescape(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return ESCAPE if code == 0xFFFE else chr(code)


def _parse_with_surrogates(data: bytes) -> Any:
    # msgspec rejects lone surrogates. Clients that cut an emoji in two send them.
    def reject_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    def parse_finite(digits: str) -> float:
        number = float(digits)
        return number if math.isfinite(number) else reject_constant(digits)

    return json.loads(data.decode(), parse_constant=reject_constant, parse_float=parse_finite)


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _replace_non_finite(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(item) for item in cast(list[Any], value)]
    return value


def _count_brackets(data: bytes) -> int:
    return data.count(b"[") + data.count(b"{")


def _check_depth(value: object) -> None:
    level = _containers([value])
    for _ in range(MAX_JSON_DEPTH):
        level = [inner for outer in level for inner in _containers(outer)]
        if not level:
            return
    _raise_too_deep()


def _containers(outer: dict[str, Any] | list[Any]) -> list[dict[str, Any] | list[Any]]:
    items = outer.values() if isinstance(outer, dict) else outer
    return [item for item in items if isinstance(item, dict | list)]


def _raise_too_deep() -> NoReturn:
    raise InvalidInput(
        "the JSON value is nested too deeply",
        why=f"the limit is {MAX_JSON_DEPTH} levels",
        next="Flatten it, or send the inner part as text.",
        limit=MAX_JSON_DEPTH,
    ) from None


def _check_size(what: str, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(
            f"{what} is too large",
            why=f"it has {size} bytes, the limit is {limit}",
            next="Send it in parts.",
            size=size,
            limit=limit,
        )


def _raise_too_many_surrogates() -> NoReturn:
    raise TooLarge(
        "the JSON text takes too long to decode",
        why=f"it has a lone surrogate, and more than {MAX_SURROGATES:,} surrogates in total",
        next="Send surrogates in pairs.",
        limit=MAX_SURROGATES,
    ) from None


def _raise_not_utf8(data: bytes) -> NoReturn:
    try:
        data.decode()
        offset = 0
    except UnicodeDecodeError as error:
        offset = error.start
    raise InvalidInput(
        "the text is not valid JSON",
        why=f"it is not UTF-8 (byte {offset})",
        next="Send one JSON value in UTF-8.",
        offset=offset,
    ) from None


def _one_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
