"""A cache of query vectors."""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from holdfast.embeddings.embedder import Vector

Embed = Callable[[], Awaitable[Vector]]


class QueryCache:
    """The most recently used vectors, by key. Concurrent calls with the same key embed once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._cached: OrderedDict[Hashable, array[float]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Task[Vector]] = {}

    async def vector(self, key: Hashable, embed: Embed) -> Vector:
        """Return the cached vector or the result of `embed`. An error reaches all waiting callers and is not cached."""
        cached = self._cached.get(key)
        if cached is not None:
            self._cached.move_to_end(key)
            return cached.tolist()
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(self._embed(key, embed), name="holdfast query")
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        # Shielded: other callers may wait for the same task.
        return (await asyncio.shield(task)).copy()

    async def close(self) -> None:
        """Cancel the running tasks."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _embed(self, key: Hashable, embed: Embed) -> Vector:
        try:
            vector = await embed()
        finally:
            del self._running[key]
        if self._limit:
            self._cached[key] = array("d", vector)
            if len(self._cached) > self._limit:
                self._cached.popitem(last=False)
        return vector
