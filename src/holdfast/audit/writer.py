"""The audit writer: adds the entries of a tenant, many in one commit, and knows whether it can."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import monotonic

from holdfast.audit.entries import AuditRow
from holdfast.core.batching import Batcher
from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge, Unavailable
from holdfast.postgres.database import Database, Statements, Transaction
from holdfast.postgres.sql import statements

TOGETHER = 500  # entries per commit
TOGETHER_SIZE = 4_000_000  # and characters, unless a single entry has more
PROBE = 0.5  # seconds between two checks whether entries can be added again

sql = statements(__name__)
log = logging.getLogger(__name__)


class AuditWriter:
    """Adds entries. A single caller never waits for others; many share a commit. `wake` is called after each commit."""

    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database = database
        self._wake = wake
        self._add = Batcher(
            self._add_all, size=lambda row: row.size, most=TOGETHER, most_size=TOGETHER_SIZE, skip_cancelled=False
        )
        self._down = False  # the last write failed
        self._probed_at = 0.0
        self._probing = False

    async def write(self, row: AuditRow) -> None:
        """Add an entry, and return when it is committed. It is added even if the caller is cancelled meanwhile."""
        await self._submit(row)

    def write_later(self, row: AuditRow) -> None:
        """Add an entry for a caller who does not wait for it. If that fails, it is logged."""
        self._submit(row).add_done_callback(_log_failure)

    async def write_in(self, tx: Transaction, row: AuditRow) -> None:
        """Add an entry when the transaction commits."""
        await _insert(await self._database.within(tx), [row])
        tx.after_commit.append(self._wake)

    async def check(self) -> None:
        """Raise Unavailable if the last write failed, and entries still cannot be written.

        Now and then, one caller tries it. The others are refused at once.
        """
        if not self._down:
            return
        if not self._probing and monotonic() - self._probed_at >= PROBE:
            self._probing = True
            try:
                await self._database.run(sql("probe"))
                self._down = False
            except HoldfastError as error:
                log.warning("the audit cannot be written: %s", error)
            finally:
                self._probed_at = monotonic()
                self._probing = False
        if self._down:
            raise Unavailable(
                "the audit cannot be written, and nothing is done without it",
                why="the database does not respond, or refuses to store entries",
                next="Try again later. If it lasts, see the log of the server.",
            )

    async def drain(self) -> None:
        """Wait until all submitted entries are committed, or have failed."""
        await self._add.drain()

    def _submit(self, row: AuditRow) -> "asyncio.Future[None]":
        return self._add.submit(row)

    async def _add_all(self, rows: Sequence[AuditRow]) -> Sequence[None]:
        try:
            await _insert(self._database, rows)
        except (InvalidInput, TooLarge):  # of one entry: the batcher tries each alone
            raise
        except HoldfastError:
            self._down = True
            self._probed_at = monotonic()
            raise
        self._down = False
        self._wake()
        return [None] * len(rows)


async def _insert(database: Statements, rows: Sequence[AuditRow]) -> None:
    await database.run(
        sql("add"),
        [row.id for row in rows],
        [row.entry for row in rows],
        [row.person for row in rows],
        [row.salt for row in rows],
    )


def _log_failure(done: "asyncio.Future[None]") -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        log.warning("could not record a cancelled call in the audit: %s", error)
