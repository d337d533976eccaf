"""Wake-ups for processes that wait for rows: hints, sent after the commit and merged.

A notification inside a transaction would hold a database-wide lock until the commit. So it is sent afterwards, alone.
Waiting processes also poll the rows once a second.
"""

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import Collection

from holdfast.core.errors import HoldfastError
from holdfast.postgres.database import PooledStatements, Transaction
from holdfast.postgres.sql import statements

POLL = 1.0  # maximum seconds between two polls
MAX_HINTS = 4  # different hints for a channel at once: more are merged into one wake-up without a hint

sql = statements(__name__)


def channel(*names: object) -> str:
    """Return the channel for these names. For a tenant's channel, the tenant is one of the names."""
    digest = hashlib.blake2s("\0".join(map(str, names)).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"holdfast_{digest}"


class Notifications:
    """Wakes the listeners of channels, in all processes."""

    def __init__(self, system: PooledStatements) -> None:
        self._system = system
        self._due: dict[str, set[str]] = {}
        self.name = secrets.token_hex(8)  # identifies this process in hints
        self._sending: asyncio.Task[None] | None = None

    def send(self, *channels: str, hint: str = "", tx: Transaction | None = None) -> None:
        """Wake the listeners of these channels, now or when `tx` has committed. `hint` is sent along."""
        if tx is not None:
            tx.after_commit.append(lambda: self.send(*channels, hint=hint))
            return
        for channel in channels:
            self._due.setdefault(channel, set()).add(hint)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def close(self) -> None:
        """Wait until all wake-ups are sent."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        try:
            while self._due:
                due, self._due = self._due, {}
                messages = [(channel, hint) for channel, waiting in due.items() for hint in _merge_hints(waiting)]
                channels, hints = map(list, zip(*messages, strict=True))
                with contextlib.suppress(HoldfastError):  # waiting processes poll anyway
                    await self._system.run(sql("wake"), channels, hints)
        finally:
            self._sending = None


def _merge_hints(hints: set[str]) -> Collection[str]:
    return hints if "" not in hints and len(hints) <= MAX_HINTS else ("",)


async def until(woken: asyncio.Event, seconds: float = POLL) -> None:
    """Sleep until woken, at most `seconds`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()
    woken.clear()
