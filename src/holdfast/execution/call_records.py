"""Call records: rows of calls through the gateway, written behind the answers, many in one commit.

If the process dies, the records that are not written yet are lost. So a call that must not be lost has a row before it
begins, and only its end is written here.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from time import monotonic
from typing import Any, Literal
from uuid import UUID

import msgspec

from holdfast.core.background import DelayedWriter
from holdfast.core.errors import HoldfastError, Overloaded, Unavailable
from holdfast.core.ids import TenantId
from holdfast.core.shares import room
from holdfast.core.text import dumps
from holdfast.execution.trimming import trimmed
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

DELAY = 0.25  # seconds for which records are collected before a write
TOGETHER = 500  # records per statement
TOGETHER_BYTES = 4_000_000  # and bytes, unless a single one has more
MOST = 20_000  # records of a tenant that wait; the newest beyond that are dropped
MOST_BYTES = 64_000_000  # of all records that wait
TENANT_SHARE = 0.5  # of these bytes: a tenant can have at most as many as are free
MAX_INPUT_BYTES = 64_000  # of the arguments in a record that is written behind the answer

sql = statements(__name__)
log = logging.getLogger(__name__)


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call: what was called, by whom, and how it ended. `began` and `ended` are seconds of `monotonic`.

    `leased_until` is the lease of the row that the call has already; None: it has no row yet.
    """

    id: UUID
    tool: str
    status: Literal["done", "failed", "cancelled", "unknown"]
    began: float
    ended: float
    tool_id: UUID | None = None
    input_params: Any = None
    user_name: str | None = None
    agent: str | None = None
    output_result: Any = None
    error: str | None = None
    latency_ms: float | None = None
    leased_until: datetime | None = None


@dataclass(slots=True)
class TenantRecords:
    """The encoded records of a tenant that wait: of calls without a row, and ends of calls that have one."""

    whole: list[str] = field(default_factory=list[str])
    ends: list[str] = field(default_factory=list[str])
    bytes: int = 0


class CallRecords(DelayedWriter):
    """Writes the records of all tenants. What does not fit into memory is counted as `dropped`, and delays no call."""

    def __init__(self) -> None:
        super().__init__("records of calls", delay=DELAY)
        self._waiting: defaultdict[Database, TenantRecords] = defaultdict(TenantRecords)
        self._bytes = 0
        self._dropped: defaultdict[Database, int] = defaultdict(int)
        self._warned = False  # that records are dropped, or cannot be written
        self._writes = asyncio.Lock()

    def add(self, database: Database, record: CallRecord) -> None:
        """Add the record of a call that has ended; it is written soon."""
        waiting = self._waiting[database]
        if record.leased_until is None and (len(waiting.whole) >= MOST or not self._has_room(waiting)):
            self._drop(database, 1, "too many records wait to be written")
            return
        encoded = _encoded(record)
        self._count(waiting, len(encoded))
        (waiting.whole if record.leased_until is None else waiting.ends).append(encoded)
        self.write_later()

    async def dropped(self, tenant: TenantId | None = None) -> dict[TenantId, int]:
        """Return how many records this process has dropped since its start, by tenant; of one tenant or of all."""
        found: defaultdict[TenantId, int] = defaultdict(int)
        for database, count in tuple(self._dropped.items()):
            found[await database.tenant()] += count
        return {id: count for id, count in found.items() if tenant is None or id == tenant}

    @property
    def has_values(self) -> bool:
        """Whether records wait."""
        return bool(self._waiting)

    async def flush(self) -> None:
        """Write the records. Those of a tenant whose database does not answer wait for the next flush."""
        async with self._writes:
            for database in tuple(self._waiting):
                waiting = self._waiting[database]
                try:
                    await self._write_all(database, waiting, waiting.ends, "end_calls")
                    await self._write_all(database, waiting, waiting.whole, "record_calls")
                except HoldfastError as error:
                    self._warn(f"could not record calls; retrying: {error}")
                    continue
                if not waiting.whole and not waiting.ends:
                    del self._waiting[database]
            if not self._waiting:
                self._warned = False

    async def close(self) -> None:
        """Write the remaining records, and stop."""
        await super().close()
        for database, waiting in self._waiting.items():
            self._drop(database, len(waiting.whole) + len(waiting.ends), "the database does not answer")
        self._waiting.clear()

    def _has_room(self, waiting: TenantRecords) -> bool:
        return room(TENANT_SHARE, MOST_BYTES - self._bytes, waiting.bytes) > 0

    def _count(self, waiting: TenantRecords, size: int) -> None:
        waiting.bytes += size
        self._bytes += size

    async def _write_all(self, database: Database, waiting: TenantRecords, encoded: list[str], statement: str) -> None:
        """Write records and remove them. A batch that the database refuses is written one by one."""
        while encoded:
            batch = _first_of(encoded)
            try:
                await self._send(database, batch, statement)
            except (Unavailable, Overloaded):
                raise
            except HoldfastError:
                for each in batch:
                    await self._send_alone(database, each, statement)
            del encoded[: len(batch)]  # records that were added meanwhile are at the end
            self._count(waiting, -sum(map(len, batch)))

    async def _send(self, database: Database, batch: Sequence[str], statement: str) -> None:
        await database.run(sql(statement), f"[{','.join(batch)}]", monotonic())

    async def _send_alone(self, database: Database, encoded: str, statement: str) -> None:
        try:
            await self._send(database, [encoded], statement)
        except (Unavailable, Overloaded):
            raise
        except HoldfastError as error:
            self._drop(database, 1, str(error))

    def _drop(self, database: Database, count: int, why: str) -> None:
        self._dropped[database] += count
        self._warn(f"dropped the records of {count} calls: {why}")

    def _warn(self, text: str) -> None:
        """Log a warning, once until everything is written again."""
        if not self._warned:
            self._warned = True
            log.warning("%s", text)


def _first_of(encoded: Sequence[str]) -> Sequence[str]:
    """Return the first records, as many as fit into a statement."""
    sizes = accumulate(map(len, encoded[:TOGETHER]))
    return encoded[: max(1, sum(1 for size in sizes if size <= TOGETHER_BYTES))]


def _encoded(record: CallRecord) -> str:
    """Return a record as JSON. Large arguments are shortened, and values that cannot be stored are left out."""
    try:
        encoded = dumps(record)
        if len(encoded) <= MAX_INPUT_BYTES:
            return encoded
        short = trimmed(record.input_params, MAX_INPUT_BYTES)
        return encoded if short is record.input_params else dumps(msgspec.structs.replace(record, input_params=short))
    except HoldfastError as error:
        note = {"text": f"the arguments and the result cannot be stored: {error}"}
        return dumps(msgspec.structs.replace(record, input_params=None, output_result=note))
