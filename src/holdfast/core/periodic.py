"""Periodic jobs: they repeat a step in the background, at intervals."""

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Self

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
