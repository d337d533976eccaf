"""Reloads sources whose documents have changed, in the background, for all tenants."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from holdfast.core.background import PeriodicJob, end_task
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import TenantId
from holdfast.core.shares import Shares, set_holder
from holdfast.postgres.database import Database, Postgres, Row
from holdfast.postgres.each_tenant import for_each_tenant
from holdfast.postgres.notified_job import NotifiedJob
from holdfast.postgres.sql import statements
from holdfast.skills.sources.checks import SourceChecks

NAME = "check of sources"
CHANNEL = "holdfast_sources"  # notified when somebody asks for a check
FIRST = 0.5  # seconds before the first look
LOOK = 2.0  # seconds between two looks, if no check is due earlier
BRIEFEST = 0.1  # seconds between two looks
GATHER = 0.05  # seconds between a notification and a look, which also sees what is asked meanwhile
AT_ONCE = 20  # checks of a process
TENANT_SHARE = 0.5  # of these: a tenant has as many as are free, so that its slow documents delay no other's
SETTLE = 1.0  # seconds after which a source is checked once more: servers announce changes before they list them
STAT_EACH = 1.0  # seconds between two looks at the files

ChecksOf = Callable[[TenantId], SourceChecks]
Signature = Callable[[str], tuple[int, ...] | None]  # of a file, by its name

sql = statements(__name__)
log = logging.getLogger(__name__)


class SourceReloads(NotifiedJob):
    """Does the checks that are due, many at once. Every process has one; a check is claimed by one of them."""

    def __init__(
        self, postgres: Postgres, checks_of: ChecksOf, *, reads_files: bool = False, resumes: bool = True
    ) -> None:
        super().__init__(NAME, postgres=postgres, channel=CHANNEL, pause=LOOK, first=FIRST, gather=GATHER)
        self._checks_of = checks_of
        self._reads_files = reads_files
        self._resumes = resumes
        self._running: dict[asyncio.Task[None], TenantId] = {}
        self._places = Shares("checks of sources", AT_ONCE, setting="", tenant_share=TENANT_SHARE)
        self._announced: set[tuple[str, str]] = set()  # sources of tenants whose changes nobody has asked for yet
        self._asking: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._freed = asyncio.Event()

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        for task in [*self._running, *self._asking.values()]:
            await end_task(task)

    def wake_events(self) -> Sequence[asyncio.Event]:
        """Return the event of a check that has ended."""
        return [self._freed]

    async def step(self) -> float:
        """Begin the checks that are due. Return the seconds until the next one."""
        self._freed.clear()
        if self._resumes:
            await self._postgres.system.run(sql("resume_checks"))
            self._resumes = False
        rows = await self._postgres.system.all(sql("due_checks"), LOOK, self._reads_files)
        due = [row for row in rows if row["seconds"] <= 0 and self._room(row["id"]) > 0]
        if due:
            await for_each_tenant(self._postgres, due, self._begin, name=NAME)
        upcoming = [row["seconds"] for row in rows if row["seconds"] > 0]
        return min([LOOK, *(max(BRIEFEST, seconds) for seconds in upcoming)])

    async def check_file(self, tenant: TenantId, source: UUID) -> bool:
        """Check the source of a file that has changed. Return whether this process could claim it."""
        checks = self._checks_of(tenant)
        claim = await checks.claim_one(source)
        if claim is not None:
            self._start(tenant, checks, claim)
        return claim is not None

    def ask(self, tenant: str, name: str) -> None:
        """Have a source checked soon, because its server says that it has changed.

        However often a server says so, one task asks, once in `SETTLE` seconds.
        """
        key = (tenant, name)
        self._announced.add(key)
        if key not in self._asking:
            self._asking[key] = asyncio.create_task(self._ask(*key), name=f"holdfast {NAME} {name}")

    async def _ask(self, tenant: str, name: str) -> None:
        key, has_warned = (tenant, name), False
        checks = self._checks_of(TenantId(UUID(tenant)))
        try:
            is_last = False
            while not is_last or key in self._announced:
                is_last = key not in self._announced
                self._announced.discard(key)
                try:
                    await checks.ask(name)
                except HoldfastError as error:
                    if not has_warned:
                        log.warning("the source %s is checked at its next time, and not at once: %s", name, error)
                    has_warned = True
                if not is_last:
                    await asyncio.sleep(SETTLE)
        finally:
            del self._asking[key]

    async def _begin(self, database: Database) -> int:
        tenant = await database.tenant()
        checks = self._checks_of(tenant)
        free = self._room(tenant)
        claims = await checks.claim(files=self._reads_files, limit=free) if free > 0 else []
        for claim in claims:
            self._start(tenant, checks, claim)
        return len(claims)

    def _room(self, tenant: TenantId) -> int:
        """Return how many more checks of a tenant can begin now."""
        return self._places.room_for_tenant(str(tenant))

    def _start(self, tenant: TenantId, checks: SourceChecks, claim: Row) -> None:
        task = asyncio.create_task(self._check(tenant, checks, claim), name=f"holdfast {NAME} {claim['name']}")
        self._running[task] = tenant
        self._places.add((str(tenant), ""))
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._places.release((str(self._running.pop(task)), ""))
        self._freed.set()

    async def _check(self, tenant: TenantId, checks: SourceChecks, claim: Row) -> None:
        set_holder(tenant, None)  # it takes the tenant's share of what is limited
        try:
            if await checks.check(claim):
                log.info("reloaded the source %s: its document has changed", claim["name"])
        except HoldfastError as error:
            log.warning("the check of the source %s failed; retrying later: %s", claim["name"], error)
        except Exception:
            log.exception("internal error: the check of the source %s failed; retrying later", claim["name"])


class FileWatch(PeriodicJob):
    """Looks at the files of sources every second, and has those checked that are new or have changed."""

    def __init__(self, postgres: Postgres, reloads: SourceReloads, signature: Signature) -> None:
        super().__init__("watch of source files", pause=STAT_EACH, first=0.1)
        self._postgres = postgres
        self._reloads = reloads
        self._signature = signature
        self._known: dict[tuple[UUID, str], tuple[int, ...] | None] = {}

    async def step(self) -> None:
        """Look at each file once."""
        rows = await self._postgres.system.all(sql("watched_files"))
        found = await asyncio.to_thread(lambda: [self._signature(row["file"]) for row in rows])
        known, self._known = self._known, {}
        for row, signature in zip(rows, found, strict=True):
            key = (row["source_id"], row["file"])
            is_seen = key in known and known[key] == signature
            if is_seen or await self._reloads.check_file(row["host_id"], row["source_id"]):
                self._known[key] = signature
            elif key in known:
                self._known[key] = known[key]
