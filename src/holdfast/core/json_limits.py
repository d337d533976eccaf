"""Limits on the time to decode JSON.

A limit on bytes does not limit the time. Eight megabytes of text take 10 ms, eight megabytes of empty lists take
seconds, and nothing else in the process runs meanwhile. So there is also a limit on the number of values. It is
checked before decoding, by counting bytes. A text that is too short to exceed the limit is not checked.

Numbers need two more rules. msgspec takes 15 to 25 µs for a float near 1e308, so `DECODER` lets Python convert floats,
which always takes less than 1 µs. The time to convert an integer grows with the square of its digits, so the number of
digits in long numbers is limited, too.
"""

import gc
import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from holdfast.core.errors import TooLarge

MAX_VALUES = 100_000  # numbers, strings, lists, objects …; decoding and checking them takes less than 100 ms
PIECE_BYTES = 1024 * 1024  # that are counted at once

MAX_LONG_DIGITS = 500_000  # in numbers of LONG digits and more
LONG = 256

UNCHECKED_BYTES = 2 * MAX_VALUES  # a value and its comma have at least two bytes
COLLECTED_BYTES = 20_000  # longer texts are decoded without garbage collection: a JSON value has no garbage

_DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if math.isfinite(number):
        return number
    raise ValueError("Number out of range")


DECODER = msgspec.json.Decoder(float_hook=_parse_finite)


def decode(data: bytes | str) -> Any:
    """Decode a JSON text that `check_work` has accepted."""
    if len(data) <= COLLECTED_BYTES:
        return DECODER.decode(data)
    with garbage_collection_disabled():
        return DECODER.decode(data)


@contextmanager
def garbage_collection_disabled() -> Generator[None]:
    """Disable the garbage collector, which would traverse a growing value again and again."""
    # Another thread may do the same: the one that found the collector enabled enables it again.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def check_work(data: bytes, *, most: int = MAX_VALUES) -> None:
    """Raise TooLarge if a JSON text has too many values, or too many digits in long numbers.

    Invalid JSON may pass or fail. Decoding it takes little time.
    """
    if len(data) <= 2 * most or (_count_values(data, most) <= most and _count_long_digits(data) <= MAX_LONG_DIGITS):
        return
    # The content of strings does not count.
    data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if data.count(b'"') // 2 > 2 * most:  # keys and values
        _raise_too_many_values(most)
    data = b"".join(data.split(b'"')[::2])
    if _count_values(data, most) > most:
        _raise_too_many_values(most)
    if (digits := _count_long_digits(data)) > MAX_LONG_DIGITS:
        raise TooLarge(
            "the JSON text takes too long to decode",
            why=f"it has {digits:,} digits in long numbers, the limit is {MAX_LONG_DIGITS:,}",
            next="Send long numbers as text.",
            limit=MAX_LONG_DIGITS,
        )


def _count_values(data: bytes, most: int) -> int:
    """Return an upper bound of the number of values. A comma follows each value but the last of a list or an object.

    Stops counting above `most`.
    """
    found = 1
    for start in range(0, len(data), PIECE_BYTES):
        for mark in (b",", b"[", b"{"):
            found += data.count(mark, start, start + PIECE_BYTES)
        if found > most:
            break
    return found


def _count_long_digits(data: bytes) -> int:
    """Count the digits of long numbers. May miss some if a number crosses the end of a piece."""
    pieces = (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))
    return LONG * sum(piece.translate(_DIGITS_AS_ZEROS).count(b"0" * LONG) for piece in pieces)


def _raise_too_many_values(most: int) -> None:
    raise TooLarge(
        "the JSON text takes too long to decode",
        why=f"it has more than {most:,} values",
        next="Send it in parts.",
        limit=most,
    )
