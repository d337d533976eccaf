"""Background work: jobs that repeat a step, writes that are collected, and tasks that run once per key."""

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextvars import Context
from typing import Any, Self

from holdfast.core.errors import HoldfastError


class PeriodicJob(ABC):
    """Repeats a step inside an `async with` block. If a step fails, the error is logged, and the step runs again later.

    The first step runs after `first` seconds; without it, after a pause. The times vary at random, so that processes
    that start together do not work at the same moments.
    """

    def __init__(self, name: str, *, pause: float, first: float | None = None) -> None:
        self._name = name
        self._pause = pause
        self._first = pause if first is None else first
        self._log = logging.getLogger(type(self).__module__)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.repeat(), name=f"holdfast {self._name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    @abstractmethod
    async def step(self) -> float | None:
        """Do the work once. Return the seconds until the next step, or None for the usual pause."""

    async def repeat(self) -> None:
        """Do one step after another."""
        await asyncio.sleep(self._first * (1 + random.random()))
        while True:
            pause = await self.try_step()
            await asyncio.sleep(pause)

    async def try_step(self) -> float:
        """Do a step, and log its error if it fails. Return the seconds until the next step."""
        pause: float | None = None
        try:
            pause = await self.step()
        except HoldfastError as error:
            self._log.warning("the %s failed; retrying later: %s", self._name, error)
        except Exception:  # noqa: BLE001 - a job survives every error of a step
            self._log.exception("internal error: the %s failed; retrying later", self._name)
        return (self._pause if pause is None else pause) * (0.9 + random.random() / 5)


class PeriodicCall(PeriodicJob):
    """A periodic job that calls a function."""

    def __init__(
        self, name: str, call: Callable[[], Awaitable[object]], *, pause: float, first: float | None = None
    ) -> None:
        super().__init__(name, pause=pause, first=first)
        self._call = call
        self._log = logging.getLogger(call.__module__)

    async def step(self) -> None:
        """Call the function."""
        await self._call()


class DelayedWriter(ABC):
    """Writes in the background what was collected. If the process dies, unwritten values are lost, and nothing else."""

    def __init__(self, name: str, *, delay: float) -> None:
        self._name = name
        self._delay = delay
        self._writing: asyncio.Task[None] | None = None

    @property
    @abstractmethod
    def has_values(self) -> bool:
        """Whether there is something to write."""

    @abstractmethod
    async def flush(self) -> None:
        """Write the values. If this is cancelled, unwritten values are kept for the next flush."""

    def write_later(self) -> None:
        """Write after the delay, once for all values that are collected until then."""
        if self._writing is None or self._writing.done():
            # An empty context: the task works for all callers, not only for the one that starts it.
            self._writing = asyncio.create_task(self._write(), name=f"holdfast {self._name}", context=Context())

    async def close(self) -> None:
        """Write the remaining values, and stop."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        await self.flush()

    async def _write(self) -> None:
        while self.has_values:
            await asyncio.sleep(self._delay)
            await self.flush()


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


async def end_task(task: "asyncio.Task[None]") -> None:
    """Cancel a task and wait until it has ended."""
    task.cancel()
    await asyncio.wait([task])
