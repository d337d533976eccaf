"""Vectors of questions, kept for when they are asked again."""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from holdfast.embeddings.embedder import Vector

Embed = Callable[[], Awaitable[Vector]]


class Queries:
    """The last vectors by key; the same question asked twice at once is embedded once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, array[float]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Task[Vector]] = {}

    async def vector(self, key: Hashable, embed: Embed) -> Vector:
        """The vector under `key`, or what `embed` returns; a failure is told to all who wait, and not kept."""
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept.tolist()
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(self._embed(key, embed), name="holdfast query")
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        # Shielded: others may wait for it too.
        return (await asyncio.shield(task)).copy()

    async def close(self) -> None:
        """End what is running."""
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
            self._kept[key] = array("d", vector)
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return vector
