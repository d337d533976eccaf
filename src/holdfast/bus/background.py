"""Background tasks of the engine, cancelled when it closes."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from contextvars import Context
from typing import Any


class Background:
    """Runs at most one task per key."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    def start(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task, unless one with the same key is running."""
        running = self._tasks.get(key)
        if running is None or running.done():
            # An empty context: the task works for all callers, not only for the one that starts it.
            self._tasks[key] = asyncio.create_task(work(), name=f"holdfast {key}", context=Context())

    async def close(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
