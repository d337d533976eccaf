"""Pacing: long work on the event loop that yields to other tasks at intervals."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TypeVar

Item = TypeVar("Item")

INTERVAL = 0.02  # seconds


class Pace:
    """Yields to other tasks after each interval of work.

    Needed for a loop over buffered data: its awaits return at once, so no other task runs.
    """

    def __init__(self) -> None:
        self._began = perf_counter()

    async def rest(self) -> None:
        """Yield to other tasks if the interval is over."""
        if perf_counter() - self._began > INTERVAL:
            await asyncio.sleep(0)
            self._began = perf_counter()


def slices(items: Iterable[Item], size: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Yield the items in order, in lists with a total size of at most `most`. A larger item gets its own list."""
    batch: list[Item] = []
    total = 0
    for item in items:
        weight = size(item)
        if batch and total + weight > most:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += weight
    if batch:
        yield batch
