"""Identifiers: UUIDs that sort by time, and UUIDs for the names of users, agents, sessions and apps."""

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
    """Milliseconds since 1970 with a 12-bit fraction. A tick is always greater than the previous one."""

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
    """Return a version 7 UUID (RFC 9562), greater than all earlier ones of the process even if the clock goes back."""
    tick = _ticks.next()
    random_bits = int.from_bytes(os.urandom(8)) >> 2
    return UUID(int=(tick >> 12) << 80 | 0x7 << 76 | (tick & 0xFFF) << 64 | 0b10 << 62 | random_bits)


def identity_id(tenant: TenantId, kind: Kind, name: str) -> UUID:
    """Return the UUID of a name, always the same one. A name that is a UUID in canonical form is its own id.

    So a caller can pass an id in place of the name.
    """
    try:
        given = UUID(name)
    except ValueError:
        pass
    else:
        if str(given) == name:
            return given
    # `store` escapes NUL, so a name cannot contain the separator.
    return uuid.uuid5(tenant, f"{kind}\0{store(name)}")
