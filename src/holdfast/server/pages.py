"""Pages of a list that end early when they have enough bytes: a thousand rows may be kilobytes, or gigabytes.

Rows are read a few at a time, so that no more of them are in memory than an answer holds, and a few.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from holdfast.core.pacing import Pace
from holdfast.core.text import render

MAX_PAGE_BYTES = 8 * 1024 * 1024
FIRST, MOST = 16, 64  # rows that are read at once: more with each step, while they are small
SMALL = 16 * 1024  # bytes of a row, on average

Item = TypeVar("Item")
Place = TypeVar("Place")
Read = Callable[[int, Place | None], Awaitable[tuple[Sequence[Item], Place | None]]]


async def page_of(
    read: Read[Place, Item], *, limit: int, start: Place | None = None
) -> tuple[list[Item], Place | None]:
    """At most `limit` items, and where the next page begins; None where there is none.

    `read` gives so many items from a place on, and the place behind them; where it gives fewer, the page ends. An item
    that is larger than a page ends it, too.
    """
    items: list[Item] = []
    size, step, place, pace = 0, FIRST, start, Pace()
    while True:
        asked = min(step, limit - len(items))
        found, place = await read(asked, place)
        for item in found:
            items.append(item)
            size += len(render(item))
            await pace.rest()
        if place is None or len(found) < asked or len(items) >= limit or size >= MAX_PAGE_BYTES:
            return items, place
        step = min(2 * step, MOST) if size < SMALL * len(items) else FIRST


async def within_a_page(items: Sequence[Item]) -> list[Item]:
    """The first of these items that a page holds: at least one, where there is one."""
    size, pace = 0, Pace()
    for number, item in enumerate(items, start=1):
        size += len(render(item))
        if size >= MAX_PAGE_BYTES:
            return list(items[:number])
        await pace.rest()
    return list(items)


async def listed(
    read: Callable[[int, Place | None], Awaitable[Sequence[Item]]],
    place_of: Callable[[Item], Place],
    *,
    limit: int,
    start: Place | None = None,
) -> tuple[list[Item], Place | None]:
    """The same of a list that is asked for behind one of its items, and says nothing of the next page."""

    async def step(most: int, place: Place | None) -> tuple[Sequence[Item], Place | None]:
        found = await read(most + 1, place)
        return found[:most], place_of(found[most - 1]) if len(found) > most else None

    return await page_of(step, limit=limit, start=start)
