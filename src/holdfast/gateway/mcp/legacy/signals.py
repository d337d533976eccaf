"""Signals: what processes tell one another of sessions. Hints only: whoever has to know looks at the rows, too."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, Literal

from holdfast.core.ids import uuid7
from holdfast.gateway.gateway import Gateway
from holdfast.postgres.sql import statements

CHANNEL: Final = "holdfast_mcp"
KEPT: Final = "mcp signals"  # under which a gateway keeps them
LINGER: Final = 60.0  # seconds for which it is listened to though nobody hears: many hear for a moment only

# A session has ended, or is not what it was; a request is cancelled; a question is answered; a stream has something
# new, or is read by somebody else now. `missed`: any of them may have been.
What = Literal["ended", "changed", "cancelled", "answered", "event", "taken", "missed"]
Ear = Callable[[What, str], None]

sql = statements(__name__)


class Signals:
    """Tells, and hears, what happens to sessions of one tenant in any process."""

    def __init__(self, gateway: Gateway) -> None:
        self._database = gateway.engine.database
        self._postgres = gateway.engine.postgres
        self._ears: dict[tuple[str, str], list[Ear]] = {}  # by tenant and session
        self._used = False
        self._listening: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    @classmethod
    def of(cls, gateway: Gateway) -> "Signals":
        """The signals of a gateway's tenant."""
        found = gateway.kept.get(KEPT)
        if found is None:
            found = gateway.kept[KEPT] = cls(gateway)
        return found

    async def say(self, session: str, what: What, about: str = "") -> None:
        """Tell every process; `about` says which request or stream it is."""
        await self._database.value(sql("signal"), f"{session} {what} {about}")

    @asynccontextmanager
    async def hear(self, session: str, ear: Ear) -> AsyncGenerator[None]:
        """Hear what is told of a session, in this process too."""
        key = str(await self._database.tenant()), session
        ears = self._ears.setdefault(key, [])
        ears.append(ear)
        self._used = True
        try:
            if self._listening is None:
                self._ready = asyncio.Event()
                self._listening = asyncio.create_task(self._listen(self._ready), name="mcp signals")
            await self._ready.wait()
            yield
        finally:
            ears.remove(ear)
            if not ears:
                del self._ears[key]

    async def _listen(self, ready: asyncio.Event) -> None:
        """Listen for all who hear, until nobody has for a while."""
        async with self._postgres.hear(CHANNEL, self._heard):
            ready.set()
            while self._ears or self._used:
                self._used = False
                await asyncio.sleep(LINGER)
            self._listening = None

    def _heard(self, payload: str | None) -> None:
        if payload is None:
            for ear in [ear for ears in self._ears.values() for ear in ears]:
                ear("missed", "")
            return
        tenant, session, what, about, *_ = *payload.split(" ", 3), "", "", "", ""
        for ear in [*self._ears.get((tenant, session), ())]:
            ear(what, about)  # pyright: ignore[reportArgumentType]


class Claim:
    """One who reads a stream of a session. Whoever came last has it, in whatever process; the others have `lost` it."""

    def __init__(self, signals: Signals, session: str, stream: str) -> None:
        self._signals = signals
        self._session = session
        self._stream = stream
        self._unsaid = True
        self.token = uuid7().hex  # of two, the later is the greater
        self.lost = False

    async def say(self) -> None:
        """Tell the others, where they may not know yet."""
        if self._unsaid:
            self._unsaid = False
            await self._signals.say(self._session, "taken", f"{self._stream} {self.token}")

    def hear(self, what: What, about: str) -> None:
        """Something was said of the session."""
        stream, _, token = about.partition(" ")
        if what == "taken" and stream == self._stream:
            self.lost = self.lost or token > self.token
        elif what == "missed":
            self._unsaid = True
