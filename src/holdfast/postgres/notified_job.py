"""Periodic jobs that also run when PostgreSQL notifies a channel."""

import asyncio
import random
from abc import abstractmethod
from collections.abc import Sequence

from holdfast.core.background import PeriodicJob
from holdfast.postgres.database import Postgres


class NotifiedJob(PeriodicJob):
    """Repeats its step at intervals, after a notification of the channel, and when one of its events is set.

    `gather`: seconds between a notification and the step, which then also handles what comes meanwhile.
    """

    def __init__(
        self, name: str, *, postgres: Postgres, channel: str, pause: float, first: float, gather: float
    ) -> None:
        super().__init__(name, pause=pause, first=first)
        self._postgres = postgres
        self._channel = channel
        self._gather = gather

    @abstractmethod
    def wake_events(self) -> Sequence[asyncio.Event]:
        """Return further events that end a pause. A step has to clear them."""

    async def begin(self) -> None:
        """Wait before the first step."""
        await asyncio.sleep(self._first * (1 + random.random() / 4))

    async def repeat(self) -> None:
        """Do one step after another."""
        await self.begin()
        async with self._postgres.listen(self._channel) as notified:
            while True:
                notified.clear()
                await self.rest(await self.try_step(), notified)

    async def rest(self, pause: float, notified: asyncio.Event) -> None:
        """Wait for a notification or an event, at most for `pause` seconds."""
        waits = [asyncio.create_task(wake.wait()) for wake in (notified, *self.wake_events())]
        try:
            await asyncio.wait(waits, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)  # asyncio.wait does not swallow the cancellation of this task
        if notified.is_set():
            await asyncio.sleep(self._gather)
