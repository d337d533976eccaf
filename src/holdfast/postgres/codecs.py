"""How Python values travel to PostgreSQL and back, where the driver does not know the type."""

import struct
from array import array
from collections.abc import Sequence
from sys import byteorder


def encode_vector(values: Sequence[float]) -> bytes:
    """A `vector` in PostgreSQL's binary form: its length, then 32-bit floats."""
    numbers = array("f", values)
    if byteorder == "little":
        numbers.byteswap()
    return struct.pack(">HH", len(numbers), 0) + numbers.tobytes()


def decode_vector(data: bytes) -> list[float]:
    """A `vector` as a list of numbers."""
    numbers = array("f", data[4:])
    if byteorder == "little":
        numbers.byteswap()
    return numbers.tolist()


def encode_halfvec(values: Sequence[float] | bytes) -> bytes:
    """A `halfvec`: its length, then 16-bit floats. What is encoded already stays so: in a list, vectors have to be."""
    if isinstance(values, bytes):
        return values
    return struct.pack(f">HH{len(values)}e", len(values), 0, *values)


def decode_halfvec(data: bytes) -> list[float]:
    """A `halfvec` as a list of numbers."""
    return list(struct.unpack(f">{(len(data) - 4) // 2}e", data[4:]))
