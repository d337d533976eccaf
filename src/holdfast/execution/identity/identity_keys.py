"""The keys with which the engine signs who calls. All nodes of an installation share them, as encrypted rows.

A new key is published before it signs, so that a back end that keeps the published keys never sees a signature by an
unknown key. An old key stays published until nothing that it signed can still be valid.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from joserfc.jwk import ECKey

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.core.ids import uuid7
from holdfast.core.threads import run_in_worker
from holdfast.execution.encryption import EncryptionKey
from holdfast.execution.identity.expiring_cache import again
from holdfast.postgres.database import PooledStatements, Row
from holdfast.postgres.sql import statements

ALGORITHM = "ES256"  # every JWT library verifies it
MAX_AGE = 300  # seconds for which back ends keep the published keys
LEAD = timedelta(seconds=2 * MAX_AGE)  # until a new key signs
KEPT = timedelta(seconds=2 * MAX_AGE)  # for which an old key stays published after its successor began to sign
FRESH = 5.0  # seconds until a process reads the keys again
STALE = 300.0  # seconds after which it signs nothing before it has read them: far less than a change of keys takes
PURPOSE = b"holdfast identity 1"
NEW_KEY = "Make a new key: `holdfast identity rotate --now`."

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IdentityKey:
    """A published key. `signs`: it is the one that signs now; `usable`: it was encrypted with this engine's key."""

    kid: str
    algorithm: str
    signs: bool
    usable: bool
    active_from: datetime
    created_at: datetime
    created_by: str


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key and its id."""

    kid: str
    key: ECKey

    def __repr__(self) -> str:
        return f"SigningKey({self.kid})"


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The keys as they were read. `starts` are the times at which they begin to sign, by the monotonic clock."""

    at: float
    rows: Sequence[Row]
    starts: Sequence[float]

    def active(self, now: float) -> int | None:
        """Return the place of the key that signs: the last that has begun to."""
        begun = [place for place, start in enumerate(self.starts) if start <= now]
        return begun[-1] if begun else None

    def published(self, now: float) -> Sequence[Row]:
        """Return the keys without those whose successors have signed for long."""
        kept = KEPT.total_seconds()
        successors = [*self.starts[1:], now]  # one more than there are keys, if there is none yet
        return [row for row, successor in zip(self.rows, successors, strict=False) if successor + kept > now]


class IdentityKeys:
    """Makes the first key when it is needed, and reads the keys again as long as they are used.

    A read is at most five seconds old, or goes on while the last one is used: only the first use, and one after minutes
    without any, waits for the database.
    """

    def __init__(self, system: PooledStatements, secret: bytes, *, clock: Callable[[], float] = monotonic) -> None:
        self._system = system
        self._cipher = EncryptionKey(secret, purpose=PURPOSE)
        self._clock = clock
        self._loaded: _Loaded | None = None
        self._opened: dict[str, SigningKey] = {}
        self._reading: asyncio.Task[None] | None = None

    @property
    def installation(self) -> str:
        """Names the installation, the same in all of its nodes, as long as it has the same secret."""
        return f"urn:holdfast:{self._cipher.id}"

    async def close(self) -> None:
        """End the read in progress."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def current(self) -> SigningKey:
        """Return the key that signs now."""
        loaded = await self._keys(STALE)
        place = loaded.active(self._clock())
        if place is None:
            raise Unavailable("the caller's identity cannot be signed", why="its keys sign later", next=NEW_KEY)
        return self._open(loaded.rows[place])

    async def published(self) -> list[dict[str, Any]]:
        """Return the public keys (JWK), those that sign later and no longer included."""
        loaded = await self._keys(FRESH)
        return [dict(row["public_key"]) for row in loaded.published(self._clock())]

    async def list(self) -> Sequence[IdentityKey]:
        """List the published keys, oldest first."""
        await self._read()
        assert self._loaded is not None
        now = self._clock()
        active = self._loaded.active(now)
        signing = None if active is None else self._loaded.rows[active]["kid"]
        return [self._describe(row, row["kid"] == signing) for row in self._loaded.published(now)]

    async def rotate(self, *, at_once: bool = False, by: str = "") -> Sequence[IdentityKey]:
        """Add a key. It signs after ten minutes. With `at_once`, it replaces all others now."""
        await self._add(first=False, at_once=at_once, by=by)
        return await self.list()

    async def _keys(self, oldest: float) -> _Loaded:
        known = self._loaded if self._loaded is not None and self._loaded.rows else None
        age = float("inf") if known is None else self._clock() - known.at
        if age >= FRESH:
            reading = self._start_reading()
            if age >= oldest:
                try:
                    await asyncio.shield(reading)
                except HoldfastError as error:
                    raise again(error) from None
        assert self._loaded is not None
        return self._loaded

    def _start_reading(self) -> asyncio.Task[None]:
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_in_background(), name="read of the identity keys")
            self._reading.add_done_callback(_observe)
        return self._reading

    async def _read_in_background(self) -> None:
        try:
            await self._read()
            if self._loaded is not None and not self._loaded.rows:
                await self._add(first=True, at_once=False, by="")
                await self._read()
        finally:
            self._reading = None

    async def _read(self) -> None:
        rows = await self._system.all(sql("identity_keys"))
        now = self._clock()
        self._loaded = _Loaded(now, rows, [now + row["seconds"] for row in rows])
        self._opened = {row["kid"]: opened for row in rows if (opened := self._opened.get(row["kid"])) is not None}

    async def _add(self, *, first: bool, at_once: bool, by: str) -> None:
        kid = str(uuid7())
        key = await run_in_worker(lambda: ECKey.generate_key("P-256", {"kid": kid, "use": "sig", "alg": ALGORITHM}))
        sealed = self._cipher.seal(key.as_pem(private=True).decode(), about=kid)
        public = key.as_dict(private=False)
        await self._system.value(
            sql("add_identity_key"), kid, public, sealed, self._cipher.id, by[:126], first, at_once, LEAD, KEPT
        )

    def _open(self, row: Row) -> SigningKey:
        kid: str = row["kid"]
        if kid not in self._opened:
            if row["seal_id"] != self._cipher.id:
                why = "its key was encrypted with another secret"
                next = f"Restore the installation's secret or execution.secret_key. {NEW_KEY}"
                raise Unavailable("the caller's identity cannot be signed", why=why, next=next)
            pem = self._cipher.open(bytes(row["sealed"]), about=kid)
            self._opened[kid] = SigningKey(kid, ECKey.import_key(pem))
        return self._opened[kid]

    def _describe(self, row: Row, signs: bool) -> IdentityKey:
        usable = row["seal_id"] == self._cipher.id
        return IdentityKey(
            row["kid"], ALGORITHM, signs, usable, row["active_from"], row["created_at"], row["created_by"]
        )


def _observe(task: "asyncio.Task[None]") -> None:
    """Log a read that failed: nobody may wait for it, and the next use reads again."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.warning("the identity keys cannot be read; retrying at the next use: %s", error)
