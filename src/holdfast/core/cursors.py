"""Cursors: the position in a list, as an opaque string."""

import base64
import binascii
from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from holdfast.core.errors import InvalidInput

Item = TypeVar("Item")

_ID_BYTES = 16
_NUMBER_BYTES = 8
CURSOR = r"[A-Za-z0-9_-]{32}"  # the format of `write_cursor`: 24 bytes in base64
_LAST = UUID(int=2**128 - 1)  # lists are sorted from the newest (greatest) id to the oldest


class Page(list[Item]):
    """A page of a list, and the cursor of the next page; None on the last page."""

    def __init__(self, items: Iterable[Item], cursor: str | None = None) -> None:
        super().__init__(items)
        self.cursor = cursor


def write_cursor(id: UUID, number: int = 0) -> str:
    """Return the cursor of the position after a row."""
    return base64.urlsafe_b64encode(id.bytes + number.to_bytes(_NUMBER_BYTES)).rstrip(b"=").decode()


def read_cursor(cursor: str | None) -> tuple[UUID, int]:
    """Return the row after which a page starts; without a cursor, a row that sorts before all others."""
    if cursor is None:
        return _LAST, 0
    try:
        data = base64.b64decode(cursor + "==", altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        data = b""
    if len(data) != _ID_BYTES + _NUMBER_BYTES:
        raise invalid_cursor(cursor)
    return UUID(bytes=data[:_ID_BYTES]), int.from_bytes(data[_ID_BYTES:], signed=True)


def invalid_cursor(cursor: str) -> InvalidInput:
    """Return the error for an invalid cursor."""
    return InvalidInput(
        f"the cursor {cursor[:100]!r} is invalid",
        why="no list returned it",
        next="Pass the cursor of the previous page, or none to start from the beginning.",
    )
