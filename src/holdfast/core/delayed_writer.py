"""Delayed writes: values are collected, and written together a little later."""

import asyncio
from abc import ABC, abstractmethod


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
            self._writing = asyncio.create_task(self._write(), name=f"holdfast {self._name}")

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
