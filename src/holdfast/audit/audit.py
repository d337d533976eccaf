"""The audit of a tenant: records entries, finds and exports them, verifies their chain, and erases personal data."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from time import perf_counter
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from holdfast.audit.chain import (
    ERASURE,
    AuditLink,
    ChainEnd,
    ChainProgress,
    Fault,
    Verifier,
    beginning,
    line_of,
    origin,
)
from holdfast.audit.entries import (
    MAX_NAME,
    SALT_BYTES,
    AuditEntry,
    AuditOutcome,
    EntryText,
    PersonText,
    outcome_of_error,
    row_of,
)
from holdfast.audit.sealer import seal_all
from holdfast.audit.writer import AuditWriter
from holdfast.core.cursors import Page
from holdfast.core.errors import HoldfastError, InvalidInput, Unavailable
from holdfast.core.request_context import Entry, current_request
from holdfast.core.text import loads, store
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

FORMAT = "holdfast.audit"
VERSION = 1
READ_TOGETHER = 1000  # entries that are verified or exported per statement
MAX_LISTED = 1000
BEYOND = 2**63 - 1  # a number that no entry has

Result = TypeVar("Result")

sql = statements(__name__)


class RecordedEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of the audit. `erased`: its personal data was erased."""

    seq: int
    id: UUID
    at: datetime
    action: str
    target: str
    outcome: AuditOutcome
    user: str | None = None
    actor: str | None = None
    agent: str | None = None
    key: UUID | None = None
    via: Entry = "engine"
    address: str = ""
    arguments: Any = None
    arguments_hash: str = ""
    details: dict[str, Any] = {}
    code: str = ""
    rule: str = ""
    notes: tuple[str, ...] = ()
    count: int | None = None
    duration_ms: float | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    request_id: str = ""
    trace_id: str = ""
    erased: bool = False


class Verification(msgspec.Struct, frozen=True):
    """The result of a verification. Without a `fault`, everything that was verified is as it was recorded.

    `complete`: the end of the chain is reached; otherwise, pass `progress` on to continue. `end` is the last entry of
    the chain, and `tenant_id` says whose it is.
    """

    tenant_id: UUID
    progress: ChainProgress
    end: int
    complete: bool
    fault: Fault | None


class Audit:
    """Records and reads the audit of one tenant."""

    def __init__(self, database: Database, writer: AuditWriter, *, enabled: bool = True) -> None:
        self._database = database
        self._writer = writer
        self.enabled = enabled

    async def check(self) -> None:
        """Raise Unavailable if entries cannot be written now. This costs nothing unless the last write failed."""
        if self.enabled:
            await self._writer.check()

    async def record(self, entry: AuditEntry, *, tx: Transaction | None = None) -> None:
        """Record an entry, and return when it is committed; with `tx`, it is when the transaction commits.

        Raises Unavailable if the entry may be lost.
        """
        if not self.enabled:
            return
        row = row_of(entry, current_request())
        if tx is not None:
            await self._writer.write_in(tx, row)
            return
        try:
            await self._writer.write(row)
        except HoldfastError as error:
            raise Unavailable(
                f"{entry.action} could not be recorded in the audit",
                why="the database did not store the entry in time",
                next="It may have taken effect: check that before you try again.",
                target=entry.target,
            ) from error

    async def recorded(
        self,
        entry: Callable[[], AuditEntry],
        work: Callable[[], Awaitable[Result]],
        *,
        outcome_of: Callable[[BaseException], tuple[AuditOutcome, str]] = outcome_of_error,
        stops: tuple[type[BaseException], ...] = (),
    ) -> Result:
        """Do some work, and record its outcome before it is returned. `entry` is called after the work.

        Nothing is done while entries cannot be written. `stops` are what the work can raise besides `Exception`.
        """
        await self.check()
        began = perf_counter()

        def ended(outcome: AuditOutcome, code: str = "") -> AuditEntry:
            duration = 1000 * (perf_counter() - began)
            return msgspec.structs.replace(entry(), outcome=outcome, code=code, duration_ms=duration)

        try:
            result = await work()
        except asyncio.CancelledError:
            self.record_later(ended("cancelled"))
            raise
        except (Exception, *stops) as error:
            await self.record(ended(*outcome_of(error)))
            raise
        await self.record(ended("done"))
        return result

    def record_later(self, entry: AuditEntry) -> None:
        """Record an entry for a caller who does not wait, such as one who has disconnected."""
        if self.enabled:
            self._writer.write_later(row_of(entry, current_request()))

    async def list(
        self,
        *,
        user: str | None = None,
        action: str | None = None,
        outcome: AuditOutcome | None = None,
        target: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> Page[RecordedEntry]:
        """List entries that fit, newest first. `before` is the number of the last entry of the previous page."""
        _check_limit(limit)
        await seal_all(self._database)
        args: tuple[object, ...] = (before or BEYOND, limit + 1, _stored(action), outcome, since)
        if user is not None:
            rows = await self._database.all(sql("entries_of_user"), *args, _stored(target), _stored(user[:MAX_NAME]))
        elif target is not None:
            rows = await self._database.all(sql("entries_of_target"), *args, _stored(target))
        else:
            rows = await self._database.all(sql("entries"), *args)
        entries = [_entry(row) for row in rows[:limit]]
        return Page(entries, str(entries[-1].seq) if len(rows) > limit else None)

    async def follow(
        self,
        after: int | None = None,
        *,
        user: str | None = None,
        action: str | None = None,
        outcome: AuditOutcome | None = None,
        target: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
    ) -> tuple[Sequence[RecordedEntry], int]:
        """Return entries after a number that fit, oldest first, and the number after which to go on.

        Without a number, return none, and the number of the last entry. Entries are only added at the end, so whoever
        goes on misses none.
        """
        _check_limit(limit)
        await seal_all(self._database)
        end, _, _ = await self._ends()
        if after is None:
            return [], end.seq
        who = None if user is None else _stored(user[:MAX_NAME])
        args = (after, limit, _stored(action), outcome, since, _stored(target), who)
        rows = await self._database.all(sql("entries_since"), *args)
        entries = [_entry(row) for row in rows]
        last = entries[-1].seq if entries else 0  # sealed after the end was read, perhaps
        return entries, last if len(entries) == limit else max(after, end.seq, last)

    async def verify_some(
        self, progress: ChainProgress | None = None, *, heads: Mapping[int, bytes] | None = None, limit: int = 50_000
    ) -> Verification:
        """Verify at most `limit` entries after `progress`; without it, from the beginning.

        `heads` are published hashes by the number of their entry. Those before the checkpoint are not compared.
        """
        await seal_all(self._database)
        end, checkpoint, waits = await self._ends()
        tenant = await self._database.tenant()
        if progress is None or progress.seq < checkpoint.seq:  # retention has dropped what was to be verified
            progress = beginning(tenant, checkpoint)
        verifier = Verifier(progress, heads)
        left = limit
        while left > 0:
            links = await self._links(verifier.progress.seq, min(left, READ_TOGETHER))
            for link in links:
                if link.seq > end.seq:  # sealed since, or added by somebody: then the end of the chain tells
                    end, _, waits = await self._ends()
                if (fault := verifier.add(link)) is not None:
                    if fault.kind == "missing" and await self._is_dropped(fault.seq):  # the next part begins after it
                        fault = None
                    return Verification(tenant, verifier.progress, end.seq, complete=False, fault=fault)
            left -= len(links)
            if not links:
                fault = verifier.finish(end, waits=waits) or await self._uncovered(end)
                return Verification(tenant, verifier.progress, end.seq, complete=True, fault=fault)
        return Verification(tenant, verifier.progress, end.seq, complete=False, fault=None)

    async def verify(
        self, *, heads: Mapping[int, bytes] | None = None, on_part: Callable[[Verification], None] = lambda _: None
    ) -> Verification:
        """Verify the whole chain, in parts. `on_part` is called after each part."""
        found = await self.verify_some(heads=heads)
        while not found.complete and found.fault is None:
            on_part(found)
            found = await self.verify_some(found.progress, heads=heads)
        return found

    async def export(self) -> AsyncGenerator[str]:
        """Yield the whole chain as JSON lines: a header, entries, and the end. `verify_lines` verifies them."""
        await seal_all(self._database)
        end, checkpoint, _ = await self._ends()
        start = beginning(await self._database.tenant(), checkpoint)
        header = {"format": FORMAT, "version": VERSION, "tenant_id": await self._database.tenant(), "start": start}
        yield msgspec.json.encode(header).decode()
        seq = start.seq
        while True:  # up to an end that is reached: it has the reason of all erasures that the lines show
            links = await self._links(seq, READ_TOGETHER)
            if links and links[0].seq > seq + 1 and await self._is_dropped(seq + 1):
                raise Unavailable(
                    "the audit was not exported", why="retention dropped entries meanwhile", next="Export it again."
                )
            for link in links:
                yield line_of(link)
            if links:
                seq = links[-1].seq
                continue
            previous, (end, _, _) = end, await self._ends()
            if end == previous:
                break
        yield msgspec.json.encode({"end": {"seq": end.seq, "hash": end.hash.hex()}}).decode()

    async def erase(self, *, user: str, by: str | None = None) -> int:
        """Erase the personal data of all entries of a user, and return of how many. `verify` passes afterwards.

        The erasure is recorded with a salted hash of the name. The salt is among the personal data of whoever erases
        (`by`), so that the name can be checked, but not be guessed once that is erased, too.
        """
        if not user:
            raise InvalidInput("a user is needed", why="the name is empty", next="Name the user to erase.")
        await seal_all(self._database)
        salt = os.urandom(SALT_BYTES)
        async with self._database.transaction() as tx:
            count: int = await tx.value(sql("erase"), store(user[:MAX_NAME]))
            entry = AuditEntry(
                action=ERASURE,
                target=sha256(salt + user.encode(errors="surrogatepass")).hexdigest(),
                user=by,
                count=count,
                details={"salt": salt.hex()},
            )
            await self.record(entry, tx=tx)
            # Sealed in the same transaction: whoever finds erased data in the chain finds the reason in it, too.
            await seal_all(await self._database.within(tx))
        return count

    async def _ends(self) -> tuple[ChainEnd, ChainEnd, float]:
        """Return the end of the chain, its checkpoint, and for how long its oldest open entry has waited."""
        row = await self._database.one(sql("chain"))
        if row is None:
            nothing = ChainEnd(0, origin(await self._database.tenant()))
            return nothing, nothing, 0.0
        checkpoint = ChainEnd(row["checkpoint_seq"], bytes(row["checkpoint_hash"]))
        return ChainEnd(row["seq"], bytes(row["hash"])), checkpoint, row["waits"] or 0.0

    async def _uncovered(self, end: ChainEnd) -> Fault | None:
        """Return what is wrong with what no hash covers."""
        row = await self._database.one(sql("uncovered"))
        if row is None:
            return None
        stray: int | None = row["before"] if row["after"] is None else row["after"]
        if stray is not None:
            return Fault("inserted", stray, f"there is personal data of the entry {stray}, which is not in the chain")
        if not row["has_its_time"]:
            return Fault("changed", end.seq, "the time of the end of the chain is not that of its last entry")
        return None

    async def _is_dropped(self, seq: int) -> bool:
        """Whether retention has dropped an entry."""
        _, checkpoint, _ = await self._ends()
        return seq <= checkpoint.seq

    async def _links(self, after: int, limit: int) -> Sequence[AuditLink]:
        return [
            AuditLink(
                row["seq"],
                row["id"],
                row["at"],
                row["sealed_at"],
                row["entry"],
                bytes(row["previous"]),
                bytes(row["hash"]),
                None if row["salt"] is None else bytes(row["salt"]),
                row["person"],
            )
            for row in await self._database.all(sql("links"), after, limit)
        ]


def _entry(row: Row) -> RecordedEntry:
    entry = msgspec.convert(loads(row["entry"]), EntryText)
    person = PersonText() if row["person"] is None else msgspec.convert(loads(row["person"]), PersonText)
    return RecordedEntry(
        seq=row["seq"],
        id=row["id"],
        at=row["at"],
        action=entry.action,
        target=entry.target,
        outcome=entry.outcome,
        user=person.user,
        actor=person.actor,
        agent=entry.agent,
        key=entry.key,
        via=entry.via,
        address=person.address,
        arguments=person.arguments,
        arguments_hash=person.arguments_hash,
        details=person.details,
        code=entry.code,
        rule=entry.rule or person.rule,
        notes=entry.notes,
        count=entry.count,
        duration_ms=entry.duration_ms,
        bytes_in=entry.bytes_in,
        bytes_out=entry.bytes_out,
        request_id=entry.request_id,
        trace_id=entry.trace_id,
        erased=bool(entry.person) and row["person"] is None,
    )


def _stored(text: str | None) -> str | None:
    return None if text is None else store(text)


def _check_limit(limit: int) -> None:
    if not 0 < limit <= MAX_LISTED:
        raise InvalidInput(f"the limit cannot be {limit}", next=f"Use 1 to {MAX_LISTED}.")
