"""Cursors: where a list goes on, as one opaque word."""

import base64
import binascii
from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from holdfast.core.errors import InvalidInput

Item = TypeVar("Item")

_ID_BYTES = 16
_NUMBER_BYTES = 8
CURSOR = r"[A-Za-z0-9_-]{32}"  # what `write_cursor` writes: 24 bytes in base64
_LAST = UUID(int=2**128 - 1)  # lists go from the newest, and greatest, to the oldest


class Page(list[Item]):
    """A part of a list, and the cursor with which the next part is asked for; None: there is no more."""

    def __init__(self, items: Iterable[Item], cursor: str | None = None) -> None:
        super().__init__(items)
        self.cursor = cursor


def write_cursor(id: UUID, number: int = 0) -> str:
    """The cursor behind a row."""
    return base64.urlsafe_b64encode(id.bytes + number.to_bytes(_NUMBER_BYTES)).rstrip(b"=").decode()


def read_cursor(cursor: str | None) -> tuple[UUID, int]:
    """The row that a cursor stands behind; at the start of a list, one behind which is everything."""
    if cursor is None:
        return _LAST, 0
    try:
        data = base64.b64decode(cursor + "==", altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        data = b""
    if len(data) != _ID_BYTES + _NUMBER_BYTES:
        raise unusable(cursor)
    return UUID(bytes=data[:_ID_BYTES]), int.from_bytes(data[_ID_BYTES:], signed=True)


def unusable(cursor: str) -> InvalidInput:
    """The list that this was given for gave none such."""
    return InvalidInput(
        f"the cursor {cursor[:100]!r} cannot be used",
        why="it is not one that a list gave",
        next="Give the cursor of the last page, or none to start from the beginning.",
    )
