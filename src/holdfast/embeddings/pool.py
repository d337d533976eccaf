"""The thread pool that all models of an engine share."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.core.errors import Broken
from holdfast.core.shares import FairQueue, current_holder

Result = TypeVar("Result")


class EmbeddingPool:
    """Runs short calls in threads: urgent ones first, and in a fair order of tenants and users.

    Queued calls are not yet in the executor. A cancelled caller therefore leaves at most one running call behind.
    """

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads or len(os.sched_getaffinity(0))
        self._executor = ThreadPoolExecutor(self.threads, thread_name_prefix="holdfast embedding")
        self._free = self.threads
        self._closed = False
        self._urgent: FairQueue[asyncio.Future[None]] = FairQueue()
        self._ordinary: FairQueue[asyncio.Future[None]] = FairQueue()

    async def run(self, work: Callable[[], Result], *, urgent: bool = False) -> Result:
        """Run `work` in one of the threads, and return its result."""
        if self._closed:
            raise Broken("the embedding models are closed", why="the engine was closed", next="Open a new engine.")
        await self._enter(self._urgent if urgent else self._ordinary)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._leave()

    def close(self) -> None:
        """Accept no more calls. The threads end after their current call."""
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _enter(self, queue: "FairQueue[asyncio.Future[None]]") -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        queue.push(current_holder(), turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it got a thread, and gives it back
                self._leave()
            raise

    def _leave(self) -> None:
        for queue in (self._urgent, self._ordinary):
            while (found := queue.pop()) is not None:
                if not found[1].done():
                    found[1].set_result(None)
                    return
        self._free += 1
