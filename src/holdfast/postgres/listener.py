"""Wake-ups: notifications from PostgreSQL (LISTEN and NOTIFY).

A wake-up is a hint that rows have changed, never their content. It may come late, twice or not at all, so the receiver
reads the rows. After a lost connection, all receivers are woken once, to catch up. Every database login can send
notifications, so the rate of wake-ups is limited: the listener merges a flood of notifications.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

RECONNECT_FIRST = 0.1
RECONNECT_MOST = 5.0
MAX_REMEMBERED = 100  # different notifications that a wake-up remembers
ANYTHING = ("", "")
BURST = 200  # notifications of a channel that are passed on at once
RATE = 100.0  # per second, after a burst
MERGE_PERIOD = 0.05  # seconds for which further ones are held back, to be passed on as one

log = logging.getLogger(__name__)


class ListeningConnection(Protocol):
    """The methods of a driver's connection that the listener needs."""

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...
    async def remove_listener(self, channel: str, callback: Callable[..., None]) -> None: ...
    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...
    async def close(self, *, timeout: float | None = None) -> None: ...
    def terminate(self) -> None: ...
    def is_closed(self) -> bool: ...


class Wake(asyncio.Event):
    """An event that is set by notifications. `payloads` has their channels and payloads until the event is cleared."""

    def __init__(self) -> None:
        super().__init__()
        self.payloads: set[tuple[str, str]] = set()

    def record(self, channel: str, payload: str) -> None:
        """Record a notification and set the event. An empty payload stands for any payload."""
        self.payloads.add((channel, payload) if len(self.payloads) < MAX_REMEMBERED else ANYTHING)
        self.set()

    def clear(self) -> None:
        """Clear the event and its notifications."""
        self.payloads.clear()
        super().clear()


class RateLimit:
    """Limits the notifications of a channel: BURST at once, then RATE per second; the others are merged."""

    def __init__(self) -> None:
        self.merging = False
        self._left = float(BURST)
        self._at = 0.0

    def pause(self, now: float) -> float | None:
        """Return the seconds to hold back a notification that comes now; None to pass it on."""
        self._left = min(BURST, self._left + (now - self._at) * RATE)
        self._at = now
        if self.merging or self._left < 1:
            return MERGE_PERIOD
        self._left -= 1
        return None


class Listener:
    """Listens on one connection for all receivers in this process."""

    def __init__(self, connect: Callable[[], Awaitable[ListeningConnection]]) -> None:
        self._connect = connect
        self._wake_events: dict[str, set[Wake]] = {}
        self._rate_limits: dict[str, RateLimit] = {}
        self._connection: ListeningConnection | None = None
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def listen(self, *channels: str) -> AsyncGenerator[Wake]:
        """Yield an event that is set when a channel is notified, or may have been while the connection was lost."""
        wake = Wake()
        for channel in channels:
            self._wake_events.setdefault(channel, set()).add(wake)
        try:
            if self._task is None:
                self._task = asyncio.create_task(self._keep_connected(), name="holdfast listener")
            for channel in channels:
                await self._update_channel(channel)
            yield wake
        finally:
            for channel in channels:
                self._wake_events[channel].discard(wake)
                if not self._wake_events[channel]:
                    del self._wake_events[channel]
                    self._rate_limits.pop(channel, None)
                    await self._update_channel(channel)

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._connection is not None and not self._connection.is_closed():
            with contextlib.suppress(OSError):
                await self._connection.close(timeout=5)

    async def _update_channel(self, channel: str) -> None:
        """Listen to a channel if it has receivers; otherwise stop listening to it."""
        async with self._lock:
            connection = self._connection
            if connection is None or connection.is_closed():
                return  # the next connection listens to all channels with receivers
            try:
                if channel in self._wake_events:
                    await connection.add_listener(channel, self._on_notification)
                else:
                    await connection.remove_listener(channel, self._on_notification)
            except Exception as error:  # noqa: BLE001 - a new connection listens to all channels with receivers
                log.warning("could not listen to the database; retrying: %s", error)
                connection.terminate()

    async def _keep_connected(self) -> None:
        pause = RECONNECT_FIRST
        while True:
            try:
                self._lost.clear()
                connection = await self._connect()
                async with self._lock:
                    self._connection = connection
                    connection.add_termination_listener(lambda *_: self._lost.set())
                    for channel in list(self._wake_events):
                        await connection.add_listener(channel, self._on_notification)
                pause = RECONNECT_FIRST
                self._wake_all()
                await self._lost.wait()
                await asyncio.sleep(RECONNECT_FIRST)  # no busy loop if the server hangs up at once
            except Exception as error:  # noqa: BLE001 - after any error, receivers can still read the rows
                log.warning("could not listen to the database; retrying: %s", error)
                if self._connection is not None and not self._connection.is_closed():
                    self._connection.terminate()
                await asyncio.sleep(pause)
                pause = min(2 * pause, RECONNECT_MOST)

    def _on_notification(self, _connection: object, _pid: int, channel: str, payload: str) -> None:
        rate_limit = self._rate_limits.get(channel)
        if rate_limit is None:
            rate_limit = self._rate_limits[channel] = RateLimit()
        pause = rate_limit.pause(time.monotonic())
        if pause is None:
            self._deliver(channel, payload)
        elif not rate_limit.merging:  # one later wake-up for all notifications until then
            rate_limit.merging = True
            asyncio.get_running_loop().call_later(pause, self._deliver_merged, channel, rate_limit)

    def _deliver_merged(self, channel: str, rate_limit: "RateLimit") -> None:
        rate_limit.merging = False
        self._deliver(channel, "")

    def _deliver(self, channel: str, payload: str) -> None:
        for wake in self._wake_events.get(channel, ()):
            wake.record(channel, payload)

    def _wake_all(self) -> None:
        for channel in self._wake_events:
            self._deliver(channel, "")
