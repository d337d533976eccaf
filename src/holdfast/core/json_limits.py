"""Limits to the work of reading a JSON text.

A limit of bytes does not limit the time: eight megabytes of text are read in 10 ms, eight megabytes of empty lists in
seconds, and while they are read nothing else in the process runs. So a text also has a limit of values, which is
checked by counting bytes before anything is decoded. A text that is too short to exceed it is not looked at.

Numbers need care of their own. msgspec takes 15 to 25 µs for a float near 1e308; `DECODER` has Python read floats,
which takes less than 1 µs whatever they are. Converting an integer takes time that grows with the square of its
digits, so the digits in long numbers are limited too.
"""

import gc
import math
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from holdfast.core.errors import TooLarge

MAX_VALUES = 100_000  # numbers, texts, lists, objects …; reading and checking them takes less than 100 ms
SLICE_BYTES = 64 * 1024  # of what `decode_in_slices` decodes at once
PIECE_BYTES = 1024 * 1024  # of what is counted at once

MAX_LONG_DIGITS = 500_000  # in numbers of LONG digits and more
LONG = 256

UNCHECKED_BYTES = 2 * MAX_VALUES  # a value and the comma behind it have two bytes
COLLECTED_BYTES = 20_000  # longer texts are decoded without looking for garbage, of which a JSON value has none

_START = re.compile(rb"[ \t\r\n]*([\[{])")
_DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isfinite(number):
        return number
    raise ValueError("Number out of range")


DECODER = msgspec.json.Decoder(float_hook=_finite)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


def decode(data: bytes | str) -> Any:
    """The value of a JSON text whose work is limited already."""
    if len(data) <= COLLECTED_BYTES:
        return DECODER.decode(data)
    with uncollected():
        return DECODER.decode(data)


def decode_in_slices(data: bytes) -> Any:
    """The same value, for a thread: others can run between two slices. Takes longer in all."""
    with uncollected():
        try:
            return _decode_slice(data)
        except msgspec.DecodeError:
            return DECODER.decode(data)  # whose error says where it is in the whole


def _decode_slice(data: bytes) -> Any:
    start = _START.match(data) if len(data) > SLICE_BYTES else None
    if start is None:
        return DECODER.decode(data)
    if start[1] == b"{":
        return {name: _decode_slice(bytes(part)) for name, part in _OBJECT.decode(data).items()}
    return [_decode_slice(bytes(part)) for part in _LIST.decode(data)]


@contextmanager
def uncollected() -> Generator[None]:
    """Work without the garbage collector, which would look through a growing value again and again."""
    # Another thread may do the same meanwhile: whoever found it enabled enables it again.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def check_work(data: bytes, *, most: int = MAX_VALUES) -> None:
    """Refuse a JSON text with too many values, or with too many digits in long numbers: TooLarge.

    What is no JSON may be let through or refused; it is not decoded for long.
    """
    if len(data) <= 2 * most or (_values(data, most) <= most and _long_digits(data) <= MAX_LONG_DIGITS):
        return
    # What stands in texts does not count.
    data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if data.count(b'"') // 2 > 2 * most:  # names of members and values
        _refuse(most)
    data = b"".join(data.split(b'"')[::2])
    if _values(data, most) > most:
        _refuse(most)
    if (digits := _long_digits(data)) > MAX_LONG_DIGITS:
        raise TooLarge(
            "the JSON text takes too long to read",
            why=f"it has {digits:,} digits in long numbers, at most {MAX_LONG_DIGITS:,} are taken",
            next="Send long numbers as text.",
            limit=MAX_LONG_DIGITS,
        )


def _values(data: bytes, most: int) -> int:
    """How many values there are at most: each but the last in a list or an object is followed by a comma.

    It is counted until there are more than `most`.
    """
    found = 1
    for start in range(0, len(data), PIECE_BYTES):
        for mark in (b",", b"[", b"{"):
            found += data.count(mark, start, start + PIECE_BYTES)
        if found > most:
            break
    return found


def _long_digits(data: bytes) -> int:
    """How many digits long numbers have; where a piece ends in one, some of them may be left out."""
    pieces = (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))
    return LONG * sum(piece.translate(_DIGITS_AS_ZEROS).count(b"0" * LONG) for piece in pieces)


def _refuse(most: int) -> None:
    raise TooLarge(
        "the JSON text takes too long to read",
        why=f"it has more than {most:,} values",
        next="Send it in parts.",
        limit=most,
    )
