"""Retries of transactions that lost a race against other writers (deadlock, serialization failure)."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

TRIES = 5

_is_alone: ContextVar[bool] = ContextVar("is_alone", default=False)


class RetryQueue:
    """Runs the retries of one process one after another, so they cannot conflict with each other again."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def attempt(self, number: int) -> AsyncGenerator[None]:
        """Run the first attempt at once. A later one waits for the lock, unless an outer attempt holds it."""
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
    """Sleep with exponential back-off and jitter."""
    await asyncio.sleep(random.uniform(0.5, 1.0) * min(0.01 * 2**attempt, 0.5))
