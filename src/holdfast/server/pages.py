"""Pages of lists, limited by bytes as well as by rows: a thousand rows can be kilobytes or gigabytes.

Rows are read in small batches, so that memory holds at most one page and one batch.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from holdfast.core.pace import Pace
from holdfast.core.text import render

MAX_PAGE_BYTES = 8 * 1024 * 1024
FIRST, MOST = 16, 64  # rows in the first and in the largest batch; batches grow while rows are small
SMALL = 16 * 1024  # bytes: rows with a smaller average size are small

Item = TypeVar("Item")
Place = TypeVar("Place")
Read = Callable[[int, Place | None], Awaitable[tuple[Sequence[Item], Place | None]]]


async def page_of(
    read: Read[Place, Item], *, limit: int, start: Place | None = None
) -> tuple[list[Item], Place | None]:
    """Return at most `limit` items and the start of the next page, or None on the last page.

    `read(count, start)` returns up to `count` items and the position after them. The page ends if it returns fewer
    items, or when the items have `MAX_PAGE_BYTES`; the last item can exceed that.
    """
    items: list[Item] = []
    size, step, place, pace = 0, FIRST, start, Pace()
    while True:
        count = min(step, limit - len(items))
        found, place = await read(count, place)
        for item in found:
            items.append(item)
            size += len(render(item))
            await pace.rest()
        if place is None or len(found) < count or len(items) >= limit or size >= MAX_PAGE_BYTES:
            return items, place
        step = min(2 * step, MOST) if size < SMALL * len(items) else FIRST


async def within_a_page(items: Sequence[Item]) -> list[Item]:
    """Return the items that fit in a page, from the first on. The item that reaches the limit is included."""
    size, pace = 0, Pace()
    for number, item in enumerate(items, start=1):
        size += len(render(item))
        if size >= MAX_PAGE_BYTES:
            return list(items[:number])
        await pace.rest()
    return list(items)


async def page_of_items(
    read: Callable[[int, Place | None], Awaitable[Sequence[Item]]],
    place_of: Callable[[Item], Place],
    *,
    limit: int,
    start: Place | None = None,
) -> tuple[list[Item], Place | None]:
    """Return a page like `page_of`, for a `read` that returns only items. `place_of` gives the position of an item."""

    async def step(most: int, place: Place | None) -> tuple[Sequence[Item], Place | None]:
        found = await read(most + 1, place)
        return found[:most], place_of(found[most - 1]) if len(found) > most else None

    return await page_of(step, limit=limit, start=start)
