"""Signals: notifications between processes that rows of a session may have changed. Listeners then read the rows.

Every database login can send and receive notifications. Therefore a signal carries no data: sessions share a few
channels, and the payload is empty.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal

from holdfast.core.ids import TenantId
from holdfast.gateway.gateway import Gateway
from holdfast.postgres.sql import statements

CHANNELS: Final = 64  # shared by all sessions
LINGER: Final = 60.0  # seconds between two checks whether a channel is still in use: many listen only for a moment

# What may have changed: the session or the connection that has its stream; its calls (cancelled, or their stream
# resumed); messages to send on a stream; answers of its client.
About = Literal["session", "calls", "events", "answers"]
Callback = Callable[[], None]

sql = statements(__name__)


class Channel:
    """The callbacks of one channel, and the task that listens for them."""

    def __init__(self) -> None:
        self.callbacks: list[Callback] = []
        self.used = True
        self.ready = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Signals:
    """Sends and receives signals about sessions of one tenant, in all processes."""

    def __init__(self, gateway: Gateway) -> None:
        self._database = gateway.engine.database
        self._postgres = gateway.engine.postgres
        self._channels: dict[str, Channel] = {}

    @classmethod
    def of(cls, gateway: Gateway) -> "Signals":
        """Return the signals of a gateway's tenant."""
        return gateway.cache.get(cls, lambda: cls(gateway))

    async def notify(self, session: str, *about: About) -> None:
        """Notify the listeners of a session in every process, so that they read its rows."""
        tenant = await self._database.tenant()
        await self._database.run(sql("signal"), sorted({channel_of(tenant, session, each) for each in about}))

    @asynccontextmanager
    async def subscribe(self, session: str, about: About, callback: Callback) -> AsyncGenerator[None]:
        """Call `callback` when something may have happened to a session, in this or another process."""
        name = channel_of(await self._database.tenant(), session, about)
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = Channel()
            channel.task = asyncio.create_task(self._listen(name, channel), name="mcp signals")
        channel.callbacks.append(callback)
        channel.used = True
        try:
            await channel.ready.wait()
            yield
        finally:
            channel.callbacks.remove(callback)

    async def _listen(self, name: str, channel: Channel) -> None:
        """Listen to a channel until nobody has used it for a while."""
        async with self._postgres.listen(name) as wake:
            channel.ready.set()
            while channel.callbacks or channel.used:
                channel.used = False
                with suppress(TimeoutError):
                    async with asyncio.timeout(LINGER):
                        await wake.wait()
                wake.clear()
                for callback in [*channel.callbacks]:
                    callback()
            del self._channels[name]


def channel_of(tenant: TenantId, session: str, about: About) -> str:
    """Return the channel of a session, which it shares with others."""
    digest = hashlib.blake2s(f"{tenant} {session} {about}".encode(), digest_size=2).digest()
    return f"holdfast_mcp_{int.from_bytes(digest) % CHANNELS}"
