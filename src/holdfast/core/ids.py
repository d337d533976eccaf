"""Identifiers: UUIDs that sort by time, and UUIDs for whatever a caller is known by."""

import os
import threading
import time
import uuid
from typing import Literal, NewType
from uuid import UUID

from holdfast.core.text import store

TenantId = NewType("TenantId", UUID)
Kind = Literal["user", "agent", "session", "app"]


class _Ticks:
    """Milliseconds since 1970 with 12 more bits for the fraction, which count on where the clock does not."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> int:
        milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
        now = milliseconds << 12 | (nanoseconds << 12) // 1_000_000
        with self._lock:
            self._last = max(now, self._last + 1)
            return self._last


_ticks = _Ticks()


def uuid7() -> UUID:
    """A version 7 UUID (RFC 9562), greater than every one this process made before, even when the clock steps back."""
    tick = _ticks.next()
    random_bits = int.from_bytes(os.urandom(8)) >> 2
    return UUID(int=(tick >> 12) << 80 | 0x7 << 76 | (tick & 0xFFF) << 64 | 0b10 << 62 | random_bits)


def identity_id(tenant: TenantId, kind: Kind, name: str) -> UUID:
    """The UUID that stands for `name`, the same every time: `name` itself where it is a UUID in canonical form.

    An id that is given back as a name therefore means the same identity.
    """
    try:
        given = UUID(name)
    except ValueError:
        pass
    else:
        if str(given) == name:
            return given
    # `store` leaves no NUL in a name, so the separator cannot be forged.
    return uuid.uuid5(tenant, f"{kind}\0{store(name)}")
