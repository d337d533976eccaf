"""Wake-ups for those who wait for rows: hints, sent after the commit, many of them as one.

A notification inside a transaction would take a lock on the whole database until it commits, so it is sent afterwards,
by itself. Whoever waits looks at the rows once a second anyway.
"""

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import Collection

from holdfast.core.errors import HoldfastError
from holdfast.postgres.database import PooledStatements, Transaction
from holdfast.postgres.sql import statements

POLL = 1.0  # seconds that a waiter sleeps at most
SAID = 4  # different things that are said to a channel at once: more of them are one wake-up that says nothing

sql = statements(__name__)


def channel(*names: object) -> str:
    """The channel of something, given by its names; those of other tenants have others."""
    digest = hashlib.blake2s("\0".join(map(str, names)).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"holdfast_{digest}"


class Wakes:
    """Wakes everyone who listens, in all processes."""

    def __init__(self, system: PooledStatements) -> None:
        self._system = system
        self._due: dict[str, set[str]] = {}
        self.name = secrets.token_hex(8)  # of this process, for those who hear of it
        self._sending: asyncio.Task[None] | None = None

    def send(self, *channels: str, said: str = "", tx: Transaction | None = None) -> None:
        """Wake the listeners of these channels, now or when the transaction has committed; `said` is a hint."""
        if tx is not None:
            tx.afterwards.append(lambda: self.send(*channels, said=said))
            return
        for channel in channels:
            self._due.setdefault(channel, set()).add(said)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def close(self) -> None:
        """Wait until what was sent is sent."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        try:
            while self._due:
                due, self._due = self._due, {}
                wakes = [(channel, each) for channel, said in due.items() for each in _merged(said)]
                channels, hints = map(list, zip(*wakes, strict=True))
                with contextlib.suppress(HoldfastError):  # those who wait look by themselves
                    await self._system.run(sql("wake"), channels, hints)
        finally:
            self._sending = None


def _merged(said: set[str]) -> Collection[str]:
    return said if "" not in said and len(said) <= SAID else ("",)


async def until(woken: asyncio.Event, seconds: float = POLL) -> None:
    """Sleep until woken, or for so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()
    woken.clear()
