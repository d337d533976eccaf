"""Announces changes of resources to every node: counts them in rows, and sends a notification."""

import asyncio
import contextlib
import hashlib
from datetime import timedelta
from time import monotonic

from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Database, PooledStatements
from holdfast.postgres.sql import statements
from holdfast.skills.uri_templates import MAX_URI

KEEP_FOR = timedelta(hours=1)  # for which the count of a resource is kept
FORGET_EACH = 60.0  # seconds
GATHER = 0.02  # seconds in which further changes are sent together

sql = statements(__name__)


def digest_of(uri: str) -> bytes:
    """Return the key under which the changes of a resource are counted."""
    return hashlib.sha256(uri.encode("utf-8", "surrogatepass")).digest()


class ResourceUpdates:
    """Counts changes of resources, and notifies the channel `holdfast_gateway` in all processes."""

    def __init__(self, system: PooledStatements) -> None:
        self._system = system
        self._loop = asyncio.get_running_loop()
        self._due: set[tuple[Database, str]] = set()
        self._sending: asyncio.Task[None] | None = None
        self._forgot_at = 0.0

    def send(self, database: Database, uri: str) -> None:
        """Announce that a resource of a tenant has changed. Callable from any thread; does not wait."""
        if not uri.isprintable() or len(uri.encode()) > MAX_URI:
            raise InvalidInput(f"the URI {uri!r:.100} is invalid", why=f"it is not a string of at most {MAX_URI} bytes")
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note, database, uri)

    async def close(self) -> None:
        """Wait until pending announcements are sent."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    def _note(self, database: Database, uri: str) -> None:
        self._due.add((database, uri))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="holdfast updates")

    async def _count(self, due: set[tuple[Database, str]]) -> None:
        forget = monotonic() - self._forgot_at > FORGET_EACH
        tenants: dict[TenantId, tuple[Database, set[bytes]]] = {}  # a tenant may announce it by several engines
        for database, uri in due:
            tenants.setdefault(await database.tenant(), (database, set()))[1].add(digest_of(uri))
        for database, digests in tenants.values():
            await database.run(sql("count_updates"), sorted(digests))
            if forget:
                await database.run(sql("forget_updates"), KEEP_FOR)
                self._forgot_at = monotonic()

    async def _send(self) -> None:
        try:
            while self._due:
                await asyncio.sleep(GATHER)
                due, self._due = self._due, set()
                with contextlib.suppress(HoldfastError):  # subscribers also read the resource from time to time
                    await self._count(due)
                    await self._system.run(sql("notify_updated"))
        finally:
            self._sending = None
