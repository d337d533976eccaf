"""Races: what happens to those who lost one against other writers."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

TRIES = 5

_is_alone: ContextVar[bool] = ContextVar("is_alone", default=False)


class Losers:
    """Those of one process who lost try again one after another: they can no longer lose to one another."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def attempt(self, number: int) -> AsyncGenerator[None]:
        """The first attempt is made at once; a later one waits, unless it is inside of one that has waited."""
        if number == 0 or _is_alone.get():
            yield
            return
        async with self._lock:
            token = _is_alone.set(True)
            try:
                yield
            finally:
                _is_alone.reset(token)


async def back_off(attempt: int) -> None:
    """Wait a little, longer each time, and not as long as the others do."""
    await asyncio.sleep(random.uniform(0.5, 1.0) * min(0.01 * 2**attempt, 0.5))
