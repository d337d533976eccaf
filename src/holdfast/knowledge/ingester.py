"""The ingester: works on jobs in the background, tenants in turn."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Self
from uuid import UUID

from holdfast.core.background import PeriodicCall
from holdfast.core.errors import DatabaseAway, HoldfastError, InvalidInput, TooLarge
from holdfast.core.ids import TenantId, uuid7
from holdfast.core.text import store
from holdfast.embeddings import Embeddings
from holdfast.knowledge.document_uri import Announce, document_uri
from holdfast.knowledge.ingestion import ClaimedJob, Ingestion, Lost
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.reader.protocol import ReadOptions
from holdfast.knowledge.reader.readers import Readers
from holdfast.postgres.database import Database, Postgres
from holdfast.postgres.each_tenant import for_each_tenant, in_batches
from holdfast.postgres.notified_job import NotifiedJob
from holdfast.postgres.sql import statements

NAME = "ingestion of documents"
CHANNEL = "holdfast_ingest"  # notified by several files in functions/
EVERY = 30.0  # seconds between two looks without a notification
FIRST = 1.0  # seconds before the first look, unless this process adds a document earlier
GATHER = 0.01  # seconds between a notification and the look
LEASE = timedelta(seconds=20)  # the longest time that a job waits after its process has died
RENEW = 5.0  # seconds between two renewals
ATTEMPTS = 5  # without progress, after which a job fails
FIRST_PAUSE = 1.0  # seconds until a job is tried again; doubled for each attempt
LONGEST_PAUSE = 60.0
ABANDONED = timedelta(hours=1)  # between two pieces, after which an upload is deleted
SWEPT = 10  # uploads that are deleted at a time
SWEEP = 600.0  # seconds between two sweeps

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningJob:
    """A job that this process works on."""

    tenant: TenantId
    job: ClaimedJob
    task: asyncio.Task[None]
    lost: bool = False


class Ingester(NotifiedJob):
    """Works on jobs, at most `most` at once. Every process has an ingester.

    A job is held by a lease, which is renewed apart from the work, and every write names the epoch of the lease: what a
    process writes that has lost it is rejected. Tenants take turns: the one with the fewest jobs in progress comes
    first, then the one that was served least recently.
    """

    def __init__(
        self,
        postgres: Postgres,
        *,
        readers: Readers,
        embeddings: Embeddings,
        options: Callable[[], ReadOptions],
        most: int,
        announce: Announce = lambda _, __: None,
    ) -> None:
        super().__init__(NAME, postgres=postgres, channel=CHANNEL, pause=EVERY, first=FIRST, gather=GATHER)
        self._readers = readers
        self._embeddings = embeddings
        self._options = options
        self._most = most
        self._announce = announce
        self._id = uuid7()
        self._running: dict[UUID, RunningJob] = {}
        self._served: OrderedDict[TenantId, None] = OrderedDict()  # the least recently served first
        self._woken = asyncio.Event()
        self._renewal = PeriodicCall("renewal of ingestion leases", self._renew, pause=RENEW)
        self._sweep = PeriodicCall("sweep of uploads", self._sweep_uploads, pause=SWEEP)

    async def __aenter__(self) -> Self:
        await self._renewal.__aenter__()
        await self._sweep.__aenter__()
        return await super().__aenter__()

    async def __aexit__(self, *_: object) -> None:
        """Stop at once. The jobs are given back, and continue where they were."""
        await super().__aexit__()
        await asyncio.sleep(0)  # a task that was just made begins, and so releases its job
        for running in self._running.values():
            running.task.cancel()
        tasks = [running.task for running in self._running.values()]
        if tasks:
            await asyncio.wait(tasks)
        await self._sweep.__aexit__()
        await self._renewal.__aexit__()

    def wake(self) -> None:
        """Look for jobs now."""
        self._woken.set()

    def wake_events(self) -> Sequence[asyncio.Event]:
        """Return the event of a job that was added here, or has ended."""
        return [self._woken]

    async def begin(self) -> None:
        """Wait before the first step, unless this process adds a document earlier."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._first):
                await self._woken.wait()

    async def step(self) -> float:
        """Start jobs while there are places. Return the seconds until the next job is due."""
        self._woken.clear()
        if len(self._running) >= self._most:
            return EVERY
        rows = await self._postgres.system.all(sql("tenants_with_jobs"))
        due = {row["id"] for row in rows if row["is_due"]}
        while due and len(self._running) < self._most:
            tenant = self._next(due)
            if not await self._start(tenant):
                due.discard(tenant)
        return min([EVERY, *(row["seconds"] + GATHER for row in rows if not row["is_due"])])

    def _next(self, due: set[TenantId]) -> TenantId:
        """Return the tenant whose turn it is."""
        busy = [running.tenant for running in self._running.values()]
        order = {tenant: place for place, tenant in enumerate(self._served)}
        return min(due, key=lambda tenant: (busy.count(tenant), order.get(tenant, -1)))

    async def _start(self, tenant: TenantId) -> bool:
        """Start a job of a tenant. Return False if it has none that is due."""
        row = await self._postgres.tenant(tenant).one(sql("claim_ingest_job"), self._id, LEASE, ATTEMPTS)
        if row is None:
            self._served.pop(tenant, None)
            return False
        self._served[tenant] = None
        self._served.move_to_end(tenant)
        job = ClaimedJob.of(row)
        task = asyncio.create_task(self._work(tenant, job), name=f"holdfast ingestion {job.id}")
        self._running[job.id] = RunningJob(tenant, job, task)
        return True

    async def _work(self, tenant: TenantId, job: ClaimedJob) -> None:
        database = self._postgres.tenant(tenant)
        ingestion = Ingestion(
            database, job, readers=self._readers, embeddings=self._embeddings, options=self._options()
        )
        try:
            collection = await ingestion.run()
            self._announce(database, document_uri(collection, job.name))
        except (ParseError, InvalidInput, TooLarge) as error:
            await self._fail(tenant, job, str(error))
        except Lost:
            log.info("the job %s of the document %r is not ours any more", job.id, job.name[:200])
        except asyncio.CancelledError:
            if not self._running[job.id].lost:
                await self._release(tenant, job, timedelta(0), None)
        except DatabaseAway as error:  # the lease lapses, and a process continues
            log.warning("the ingestion of %r waits for the database: %s", job.name[:200], error)
        except HoldfastError as error:
            await self._retry(tenant, job, str(error), progressed=ingestion.progressed)
        except Exception as error:
            log.exception("internal error: the ingestion of %r failed", job.name[:200])
            await self._retry(
                tenant, job, f"an internal error: {type(error).__name__}", progressed=ingestion.progressed
            )
        finally:
            del self._running[job.id]
            self._woken.set()

    async def _fail(self, tenant: TenantId, job: ClaimedJob, reason: str) -> None:
        log.warning("the document %r was not ingested: %s", job.name[:200], reason)
        with suppress(HoldfastError):  # then the lease lapses, and the file fails again
            await self._postgres.tenant(tenant).run(sql("fail_ingest_job"), job.id, job.epoch, store(reason))

    async def _retry(self, tenant: TenantId, job: ClaimedJob, reason: str, *, progressed: bool) -> None:
        """Give a job back after an error that may pass. Without progress, it fails after some attempts."""
        attempts = 1 if progressed else job.attempts
        if attempts >= ATTEMPTS:
            await self._fail(tenant, job, reason)
            return
        pause = min(FIRST_PAUSE * 2 ** (attempts - 1), LONGEST_PAUSE)
        log.warning("the ingestion of %r failed; retrying in %g s: %s", job.name[:200], pause, reason)
        await self._release(tenant, job, timedelta(seconds=pause), reason)

    async def _release(self, tenant: TenantId, job: ClaimedJob, pause: timedelta, reason: str | None) -> None:
        with suppress(HoldfastError):  # then the lease lapses
            await self._postgres.tenant(tenant).run(
                sql("release_ingest_job"), job.id, job.epoch, pause, None if reason is None else store(reason)
            )

    async def _renew(self) -> None:
        """Renew the leases. A job that is not held any more is stopped."""
        tenants = {running.tenant for running in self._running.values()}
        for tenant in tenants:
            held = [each for each in self._running.values() if each.tenant == tenant]
            rows = await self._postgres.tenant(tenant).all(
                sql("renew_ingest_jobs"),
                self._id,
                [each.job.id for each in held],
                [each.job.epoch for each in held],
                LEASE,
            )
            renewed = {row["id"] for row in rows}
            for each in held:
                if each.job.id not in renewed and not each.task.done():
                    each.lost = True
                    each.task.cancel()

    async def _sweep_uploads(self) -> None:
        await sweep_uploads(self._postgres)


async def sweep_uploads(postgres: Postgres) -> None:
    """Delete uploads that were given up."""

    async def sweep(database: Database) -> int:
        return await in_batches(lambda: database.value(sql("sweep_uploads"), ABANDONED, SWEPT), SWEPT)

    tenants = await postgres.system.all(sql("tenants_with_uploads"), ABANDONED)
    await for_each_tenant(postgres, tenants, sweep, name="sweep of uploads")
