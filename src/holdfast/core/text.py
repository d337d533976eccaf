"""Text and JSON that PostgreSQL can hold, and that come back as they were.

PostgreSQL's text has no NUL and no lone surrogate; its jsonb has no NaN and no infinity, and forgets that a whole
number was a float. What it cannot hold is written with an escape, a code point that Unicode reserves for such use:

    NUL, lone surrogate, the escape itself    ESCAPE + four hex digits
    NaN, Infinity, -Infinity in JSON          the string ESCAPE + "nan", "inf" or "-inf"
    a float of 1e16 or more in JSON           all its digits, and ".0"

`store` and `restore` are for text columns, `dumps` and `loads` for jsonb, `parse` and `render` for the wire.
"""

import json
import math
import re
from typing import Any, NoReturn, cast

import msgspec

from holdfast.core.errors import InvalidInput, TooLarge

MAX_TEXT_BYTES = 8 * 1024 * 1024
MAX_JSON_DEPTH = 128
MAX_INTEGER_DIGITS = 4300  # what Python and msgspec convert

ESCAPE = "\U0010fffe"

_UNSTORABLE = re.compile("[\0\ud800-\udfff\U0010fffe]")
_ESCAPED = re.compile(ESCAPE + "(0000|d[89a-f][0-9a-f]{2}|fffe)")
_ESCAPE_BYTES = ESCAPE.encode()
_NON_FINITE = {ESCAPE + "nan": math.nan, ESCAPE + "inf": math.inf, ESCAPE + "-inf": -math.inf}

# msgspec writes a float with an exponent from 1e16 on; text that looks like one only costs the slower way.
_MAY_BE_BIG_FLOAT = re.compile(rb"e\d\d\d?(?:[,\]}]|\Z)")
_BIG_FLOAT = 1e16
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_BYTE_OFFSET = re.compile(r"\s*\(byte (\d+)\)$")


def store(text: str) -> str:
    """`text` as PostgreSQL can hold it; `restore` gives it back."""
    try:
        size = len(text) if text.isascii() else len(text.encode())
        clean = "\0" not in text and ESCAPE not in text
    except UnicodeEncodeError:
        size, clean = 0, False
    if not clean:
        text = _escaped_text(text)
        size = len(text.encode())
    _refuse_larger("the text", size, MAX_TEXT_BYTES)
    return text


def restore(text: str) -> str:
    """What `store` was given."""
    return _ESCAPED.sub(_unescape, text) if ESCAPE in text else text


def dumps(value: object) -> str:
    """JSON for jsonb; `loads` gives the same value back.

    Takes what msgspec takes: JSON's types, and UUID, datetime, structs, dataclasses and the like as their JSON form.
    Numbers as keys become text; an integer has at most 4,300 digits; jsonb keeps no negative zero.
    """
    try:
        data = _encoded(value)
        _refuse_larger("the JSON value", len(data), MAX_TEXT_BYTES)
        # Only what has many brackets can be deep, and only then is it worth a look.
        if _brackets(data) > MAX_JSON_DEPTH:
            _refuse_deeper(msgspec.json.decode(data))
    except RecursionError:
        _refuse_depth()
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            "the value cannot be written as JSON",
            why=_one_line(error),
            next=f"Use text, numbers of at most {MAX_INTEGER_DIGITS} digits, lists, and mappings with text as keys.",
        ) from None
    return data.decode()


def loads(data: str | bytes) -> Any:
    """The value that `dumps` was given."""
    try:
        try:
            value = msgspec.json.decode(data)
        except msgspec.ValidationError:
            # msgspec writes a longer negative integer than it reads: it counts the sign as a digit.
            value = json.loads(data)
        escaped = ESCAPE in data if isinstance(data, str) else _ESCAPE_BYTES in data
        return _restored(value) if escaped else value
    except RecursionError:
        _refuse_depth()
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidInput("the stored JSON cannot be read", why=_one_line(error)) from None


def parse(data: bytes, *, limit: int = MAX_TEXT_BYTES) -> Any:
    """A JSON value from the wire, or InvalidInput that says where it is wrong.

    A lone surrogate written as `\\ud83d` is kept; NaN and numbers beyond a float are refused. Of two equal names in an
    object the last one counts.
    """
    _refuse_larger("the JSON text", len(data), limit)
    try:
        try:
            value = msgspec.json.decode(data)
        except msgspec.DecodeError:
            if not _SURROGATE_ESCAPE.search(data):
                raise
            value = _parse_with_surrogates(data)
        if _brackets(data) > MAX_JSON_DEPTH:
            _refuse_deeper(value)
    except RecursionError:
        _refuse_depth()
    except UnicodeDecodeError:
        _refuse_encoding(data)
    except (msgspec.DecodeError, ValueError) as error:
        why = _one_line(error)
        offset = _BYTE_OFFSET.search(why)
        details = {"offset": int(offset[1])} if offset else {}
        raise InvalidInput("this is not JSON", why=why, next="Send one JSON value in UTF-8.", **details) from None
    return value


def render(value: object) -> bytes:
    """JSON for the wire; a lone surrogate is written as its `\\u` escape, NaN and infinity as null."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(_finite(msgspec.to_builtins(value, str_keys=True)), separators=(",", ":")).encode()


def _encoded(value: object) -> bytes:
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        pass
    else:
        # msgspec writes NaN as null: only a walk through the value can tell one from the other.
        suspect = b"null" in data or b"\\u0000" in data or _ESCAPE_BYTES in data or _MAY_BE_BIG_FLOAT.search(data)
        if not suspect:
            return data
    return msgspec.json.encode(_escaped(msgspec.to_builtins(value, str_keys=True)))


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return _escaped_text(value)
    if isinstance(value, float):
        return _escaped_float(value)
    if isinstance(value, dict):
        return {_escaped_text(key): _escaped(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in cast(list[Any], value)]
    return value


def _escaped_text(text: str) -> str:
    return _UNSTORABLE.sub(lambda found: f"{ESCAPE}{ord(found[0]) & 0xFFFF:04x}", text)


def _escaped_float(number: float) -> object:
    if not math.isfinite(number):
        return f"{ESCAPE}{number}"
    # jsonb is numeric: without a fraction it would come back as an integer, and not as the equal one.
    return msgspec.Raw(f"{number:.1f}".encode()) if abs(number) >= _BIG_FLOAT else number


def _restored(value: Any) -> Any:
    if isinstance(value, str):
        return _NON_FINITE[value] if value in _NON_FINITE else restore(value)
    if isinstance(value, dict):
        return {restore(key): _restored(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_restored(item) for item in cast(list[Any], value)]
    return value


def _unescape(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return ESCAPE if code == 0xFFFE else chr(code)


def _parse_with_surrogates(data: bytes) -> Any:
    # msgspec refuses lone surrogates; clients that cut an emoji in two send them.
    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    def finite(digits: str) -> float:
        number = float(digits)
        return number if math.isfinite(number) else constant(digits)

    return json.loads(data.decode(), parse_constant=constant, parse_float=finite)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast(list[Any], value)]
    return value


def _brackets(data: bytes) -> int:
    return data.count(b"[") + data.count(b"{")


def _refuse_deeper(value: object) -> None:
    level = _containers([value])
    for _ in range(MAX_JSON_DEPTH):
        level = [inner for outer in level for inner in _containers(outer)]
        if not level:
            return
    _refuse_depth()


def _containers(outer: dict[str, Any] | list[Any]) -> list[dict[str, Any] | list[Any]]:
    items = outer.values() if isinstance(outer, dict) else outer
    return [item for item in items if isinstance(item, dict | list)]


def _refuse_depth() -> NoReturn:
    raise InvalidInput(
        "the JSON value is nested too deep",
        why=f"at most {MAX_JSON_DEPTH} levels are taken",
        next="Flatten it, or send the inner part as text.",
        limit=MAX_JSON_DEPTH,
    ) from None


def _refuse_larger(what: str, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(
            f"{what} is too large",
            why=f"it has {size} bytes, at most {limit} are taken",
            next="Send it in parts.",
            size=size,
            limit=limit,
        )


def _refuse_encoding(data: bytes) -> NoReturn:
    try:
        data.decode()
        offset = 0
    except UnicodeDecodeError as error:
        offset = error.start
    raise InvalidInput(
        "this is not JSON",
        why=f"it is not UTF-8 (byte {offset})",
        next="Send one JSON value in UTF-8.",
        offset=offset,
    ) from None


def _one_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
