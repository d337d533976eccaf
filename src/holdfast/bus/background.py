"""Tasks that go on behind a caller's back, and end when the engine closes."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from contextvars import Context
from typing import Any


class Background:
    """Runs one task for each key."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    def start(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run it, unless one of the same key is running."""
        running = self._tasks.get(key)
        if running is None or running.done():
            # It works for everybody, not for whoever happened to need it first.
            self._tasks[key] = asyncio.create_task(work(), name=f"holdfast {key}", context=Context())

    async def close(self) -> None:
        """End all of them."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
