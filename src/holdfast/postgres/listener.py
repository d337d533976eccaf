"""Wake-ups from the server.

A wake-up is a hint that rows have changed, never their content: it may come late, twice or not at all, so whoever is
woken reads the rows. After a lost connection everyone is woken once, to catch up. Every database login can send
notifications: a flood of them is passed on as a few wake-ups a second.
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
HEARD = 100  # different things that are remembered of what was said
ANYTHING = ("", "")
BURST = 200  # notifications of a channel that are passed on at once
RATE = 100.0  # that are a second, from then on
HELD = 0.05  # seconds for which those beyond are held back, to be passed on as one

log = logging.getLogger(__name__)


class ListeningConnection(Protocol):
    """What the listener needs of a driver's connection."""

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...
    async def remove_listener(self, channel: str, callback: Callable[..., None]) -> None: ...
    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...
    async def close(self, *, timeout: float | None = None) -> None: ...
    def terminate(self) -> None: ...
    def is_closed(self) -> bool: ...


class Wake(asyncio.Event):
    """Is set when something is said on a channel, or may have been; `said` has what, and where, until it is cleared."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[tuple[str, str]] = set()

    def hear(self, channel: str, payload: str) -> None:
        """Something was said; without a payload, it may be anything."""
        self.said.add((channel, payload) if len(self.said) < HEARD else ANYTHING)
        self.set()

    def clear(self) -> None:
        """Forget what was said, and wait for more."""
        self.said.clear()
        super().clear()


class Flow:
    """How many notifications of a channel are passed on: BURST at once, then RATE a second, and the rest as one."""

    def __init__(self) -> None:
        self.held = False
        self._left = float(BURST)
        self._at = 0.0

    def pause(self, now: float) -> float | None:
        """Seconds for which a notification that comes now is held back; None: it is passed on."""
        self._left = min(BURST, self._left + (now - self._at) * RATE)
        self._at = now
        if self.held or self._left < 1:
            return HELD
        self._left -= 1
        return None


class Listener:
    """One connection that listens for everyone in this process."""

    def __init__(self, connect: Callable[[], Awaitable[ListeningConnection]]) -> None:
        self._connect = connect
        self._wakes: dict[str, set[Wake]] = {}
        self._flow: dict[str, Flow] = {}
        self._connection: ListeningConnection | None = None
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Lock()

    @asynccontextmanager
    async def listen(self, *channels: str) -> AsyncGenerator[Wake]:
        """An event that is set when one of the channels is notified, or may have been."""
        wake = Wake()
        for channel in channels:
            self._wakes.setdefault(channel, set()).add(wake)
        try:
            if self._task is None:
                self._task = asyncio.create_task(self._keep_connected(), name="holdfast listener")
            for channel in channels:
                await self._settle(channel)
            yield wake
        finally:
            for channel in channels:
                self._wakes[channel].discard(wake)
                if not self._wakes[channel]:
                    del self._wakes[channel]
                    self._flow.pop(channel, None)
                    await self._settle(channel)

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._connection is not None and not self._connection.is_closed():
            with contextlib.suppress(OSError):
                await self._connection.close(timeout=5)

    async def _settle(self, channel: str) -> None:
        """Listen to a channel that someone waits for, and no longer to one that nobody does."""
        async with self._listening:
            connection = self._connection
            if connection is None or connection.is_closed():
                return  # the next one listens to all that is wanted by then
            try:
                if channel in self._wakes:
                    await connection.add_listener(channel, self._notified)
                else:
                    await connection.remove_listener(channel, self._notified)
            except Exception as error:  # noqa: BLE001 - a new connection listens to all that is wanted
                log.warning("cannot listen to the database, trying again: %s", error)
                connection.terminate()

    async def _keep_connected(self) -> None:
        pause = RECONNECT_FIRST
        while True:
            try:
                self._lost.clear()
                connection = await self._connect()
                async with self._listening:
                    self._connection = connection
                    connection.add_termination_listener(lambda *_: self._lost.set())
                    for channel in list(self._wakes):
                        await connection.add_listener(channel, self._notified)
                pause = RECONNECT_FIRST
                self._wake_all()
                await self._lost.wait()
                await asyncio.sleep(RECONNECT_FIRST)  # a server that hangs up at once is not asked without end
            except Exception as error:  # noqa: BLE001 - whatever it was, the rows are still there to be read
                log.warning("cannot listen to the database, trying again: %s", error)
                if self._connection is not None and not self._connection.is_closed():
                    self._connection.terminate()
                await asyncio.sleep(pause)
                pause = min(2 * pause, RECONNECT_MOST)

    def _notified(self, _connection: object, _pid: int, channel: str, payload: str) -> None:
        flow = self._flow.get(channel)
        if flow is None:
            flow = self._flow[channel] = Flow()
        pause = flow.pause(time.monotonic())
        if pause is None:
            self._pass_on(channel, payload)
        elif not flow.held:  # one later wake-up stands for all that come until then
            flow.held = True
            asyncio.get_running_loop().call_later(pause, self._pass_on_later, channel, flow)

    def _pass_on_later(self, channel: str, flow: "Flow") -> None:
        flow.held = False
        self._pass_on(channel, "")

    def _pass_on(self, channel: str, payload: str) -> None:
        for wake in self._wakes.get(channel, ()):
            wake.hear(channel, payload)

    def _wake_all(self) -> None:
        for channel in self._wakes:
            self._pass_on(channel, "")
