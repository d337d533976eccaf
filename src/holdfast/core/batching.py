"""Batches the requests of many callers: requests that arrive while a batch runs form the next batch.

A commit costs the same for one row as for hundreds. A single caller never waits for others; many share a batch.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

from holdfast.core.errors import InvalidInput, TooLarge

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Batcher(Generic[Item, Answer]):
    """Runs `work` on batches of items, in the order of arrival. Each caller gets its own answer or exception.

    `work` returns one answer per item; an exception among the answers is raised in that caller only. An exception that
    `work` raises is raised in all callers of the batch. But if it refuses an input, each item is retried alone.
    `skip_cancelled`: a queued item whose caller is cancelled is skipped.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Awaitable[Sequence[Answer | Exception]]],
        *,
        size: Callable[[Item], int] = lambda _: 1,
        most: int = 1000,
        most_size: int = 8_000_000,
        skip_cancelled: bool = True,
    ) -> None:
        self._work = work
        self._size = size
        self._most = most
        self._most_size = most_size
        self._skip_cancelled = skip_cancelled
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, item: Item) -> Answer:
        """Return the answer when the item's batch is done."""
        return await self.submit(item)

    def submit(self, item: Item) -> "asyncio.Future[Answer]":
        """Queue an item, and return the future of its answer."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._running is None:
            # An empty context: the task works for all callers, not only for the one that starts it.
            self._running = asyncio.create_task(self._run(), context=Context())
        return answer

    async def drain(self) -> None:
        """Wait until everything that was submitted is done."""
        while self._running is not None:
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        try:
            while batch := self._next():
                await self._do(batch)
        finally:
            self._running = None

    async def _do(self, batch: Sequence[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._work([item for item, _ in batch])
        except BaseException as error:
            if isinstance(error, InvalidInput | TooLarge) and len(batch) > 1:  # a single caller's fault
                for one in batch:
                    await self._do([one])
                return
            for _, future in batch:
                if not future.done():
                    future.set_exception(error) if isinstance(error, Exception) else future.cancel()
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _next(self) -> list[tuple[Item, asyncio.Future[Answer]]]:
        batch: list[tuple[Item, asyncio.Future[Answer]]] = []
        size = 0
        while self._waiting and len(batch) < self._most and (not batch or size < self._most_size):
            item, future = self._waiting.popleft()
            if not (self._skip_cancelled and future.done()):
                batch.append((item, future))
                size += self._size(item)
        return batch
