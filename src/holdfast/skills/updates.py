"""Updates: telling every node that resources have changed. Hints, sent afterwards, many of them as one."""

import asyncio
import contextlib

from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.postgres.database import Database, PooledStatements
from holdfast.postgres.sql import statements
from holdfast.skills.uri_templates import MAX_URI

sql = statements(__name__)


class Updates:
    """Tells whoever listens on the channel `holdfast_gateway`, in all processes: the tenant's id, a blank, the URI."""

    def __init__(self, system: PooledStatements) -> None:
        self._system = system
        self._loop = asyncio.get_running_loop()
        self._due: set[tuple[Database, str]] = set()
        self._sending: asyncio.Task[None] | None = None

    def send(self, database: Database, uri: str) -> None:
        """Tell that a resource of a tenant has changed; from any thread, and without waiting."""
        if not uri.isprintable() or len(uri.encode()) > MAX_URI:
            raise InvalidInput(f"no resource has the address {uri!r:.100}", why=f"it is no text of {MAX_URI} bytes")
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note, database, uri)

    async def close(self) -> None:
        """Wait until what was sent is sent."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    def _note(self, database: Database, uri: str) -> None:
        self._due.add((database, uri))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="holdfast updates")

    async def _send(self) -> None:
        try:
            while self._due:
                due, self._due = self._due, set()
                with contextlib.suppress(HoldfastError):  # who follows a resource reads it now and then, too
                    told = {f"{await database.tenant()} {uri}" for database, uri in due}
                    await self._system.run(sql("tell_updated"), sorted(told))
        finally:
            self._sending = None
