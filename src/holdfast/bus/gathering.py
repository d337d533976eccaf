"""Many callers, one statement: what is asked for while a batch is under way makes up the next one.

A commit costs the same for one row as for hundreds. One caller alone never waits; many share.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from holdfast.core.errors import InvalidInput, TooLarge

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Gathering(Generic[Item, Answer]):
    """Does `work` for many callers at once, in the order they came; each gets its own answer or its own exception.

    `work` answers item by item: an exception among the answers is that caller's alone, one it raises is everyone's, but
    where an input was refused: then each is done by itself.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Awaitable[Sequence[Answer | Exception]]],
        *,
        size: Callable[[Item], int] = lambda _: 1,
        most: int = 1000,
        most_size: int = 8_000_000,
    ) -> None:
        self._work = work
        self._size = size
        self._most = most
        self._most_size = most_size
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, item: Item) -> Answer:
        """The answer for this item, once its batch is done; a caller who is cancelled before that leaves the batch."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await answer

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
            if isinstance(error, InvalidInput | TooLarge) and len(batch) > 1:  # it is one caller's fault alone
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
            if not future.done():
                batch.append((item, future))
                size += self._size(item)
        return batch
