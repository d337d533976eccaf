"""Pacing: long work on the event loop, in stretches between which others get a turn."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TypeVar

Item = TypeVar("Item")

STRETCH = 0.02  # seconds


class Pace:
    """Lets others run when work has gone on for a stretch.

    What comes from a buffer is not waited for: a loop over it is one piece to everybody else, however often it awaits.
    """

    def __init__(self) -> None:
        self._began = perf_counter()

    async def rest(self) -> None:
        """Let others run, if it is time."""
        if perf_counter() - self._began > STRETCH:
            await asyncio.sleep(0)
            self._began = perf_counter()


def slices(items: Iterable[Item], size: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """The items in their order, in lists whose sizes add up to at most `most`; what is larger has a list to itself."""
    some: list[Item] = []
    taken = 0
    for item in items:
        weight = size(item)
        if some and taken + weight > most:
            yield some
            some, taken = [], 0
        some.append(item)
        taken += weight
    if some:
        yield some
