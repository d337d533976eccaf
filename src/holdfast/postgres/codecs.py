"""Encodes and decodes values of PostgreSQL types that the driver does not know."""

import struct
from array import array
from collections.abc import Sequence
from sys import byteorder


def encode_vector(values: Sequence[float]) -> bytes:
    """Encode a `vector` in PostgreSQL's binary format: its length, then 32-bit floats."""
    numbers = array("f", values)
    if byteorder == "little":
        numbers.byteswap()
    return struct.pack(">HH", len(numbers), 0) + numbers.tobytes()


def decode_vector(data: bytes) -> list[float]:
    """Decode a `vector` to a list of numbers."""
    numbers = array("f", data[4:])
    if byteorder == "little":
        numbers.byteswap()
    return numbers.tolist()


def encode_halfvec(values: Sequence[float] | bytes) -> bytes:
    """Encode a `halfvec`: its length, then 16-bit floats. Bytes pass unchanged: callers encode vectors in arrays."""
    if isinstance(values, bytes):
        return values
    return struct.pack(f">HH{len(values)}e", len(values), 0, *values)


def decode_halfvec(data: bytes) -> list[float]:
    """Decode a `halfvec` to a list of numbers."""
    return list(struct.unpack(f">{(len(data) - 4) // 2}e", data[4:]))
