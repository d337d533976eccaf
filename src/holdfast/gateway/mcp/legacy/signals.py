"""Signals: processes tell one another that rows of a session may have changed. Whoever hears one reads the rows.

Every database login can send and hear notifications, so that a signal names nothing: sessions share a few channels, and
what is said is empty.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal

from holdfast.core.ids import TenantId
from holdfast.gateway.gateway import Gateway
from holdfast.postgres.sql import statements

CHANNELS: Final = 64  # that all sessions share
KEPT: Final = "mcp signals"  # under which a gateway keeps them
LINGER: Final = 60.0  # seconds for which it is listened to though nobody hears: many hear for a moment only

# What may have changed: the session itself or who listens to it; its calls (cancelled, or their stream taken up); what
# is to be sent on a stream; answers of its client.
About = Literal["session", "calls", "events", "answers"]
Ear = Callable[[], None]

sql = statements(__name__)


class Channel:
    """Those who hear on one channel, and the task that listens for them."""

    def __init__(self) -> None:
        self.ears: list[Ear] = []
        self.used = True
        self.ready = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Signals:
    """Tells, and hears, that something happened to sessions of one tenant in any process."""

    def __init__(self, gateway: Gateway) -> None:
        self._database = gateway.engine.database
        self._postgres = gateway.engine.postgres
        self._channels: dict[str, Channel] = {}

    @classmethod
    def of(cls, gateway: Gateway) -> "Signals":
        """The signals of a gateway's tenant."""
        found = gateway.kept.get(KEPT)
        if found is None:
            found = gateway.kept[KEPT] = cls(gateway)
        return found

    async def say(self, session: str, *about: About) -> None:
        """Have those who hear of the session look at its rows, in every process."""
        tenant = await self._database.tenant()
        await self._database.run(sql("signal"), sorted({channel_of(tenant, session, each) for each in about}))

    @asynccontextmanager
    async def hear(self, session: str, about: About, ear: Ear) -> AsyncGenerator[None]:
        """Call `ear` when something may have happened to a session, in this process too."""
        name = channel_of(await self._database.tenant(), session, about)
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = Channel()
            channel.task = asyncio.create_task(self._listen(name, channel), name="mcp signals")
        channel.ears.append(ear)
        channel.used = True
        try:
            await channel.ready.wait()
            yield
        finally:
            channel.ears.remove(ear)

    async def _listen(self, name: str, channel: Channel) -> None:
        """Listen for all who hear, until nobody has for a while."""
        async with self._postgres.listen(name) as wake:
            channel.ready.set()
            while channel.ears or channel.used:
                channel.used = False
                with suppress(TimeoutError):
                    async with asyncio.timeout(LINGER):
                        await wake.wait()
                wake.clear()
                for ear in [*channel.ears]:
                    ear()
            del self._channels[name]


def channel_of(tenant: TenantId, session: str, about: About) -> str:
    """The channel that a session shares with others."""
    digest = hashlib.blake2s(f"{tenant} {session} {about}".encode(), digest_size=2).digest()
    return f"holdfast_mcp_{int.from_bytes(digest) % CHANNELS}"
