"""The researcher: carries out research in the background, any process that of any other."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, Self
from uuid import UUID

from holdfast.core.background import PeriodicCall
from holdfast.core.errors import DatabaseAway, HoldfastError
from holdfast.core.ids import TenantId, uuid7
from holdfast.core.memory_settings import ResearchSettings
from holdfast.knowledge.research.calls import ResearchLost
from holdfast.knowledge.research.run import ResearchClaim, claim_of
from holdfast.postgres.database import Database, Postgres
from holdfast.postgres.each_tenant import for_each_tenant, in_batches
from holdfast.postgres.notified_job import NotifiedJob
from holdfast.postgres.sql import statements

NAME = "research"
CHANNEL = "holdfast_research"  # notified by sql/wake.sql
EVERY = 30.0  # seconds between two looks without a notification
FIRST = 2.0  # seconds before the first look: a process that ends sooner takes nothing over
GATHER = 0.01
FIRST_SWEEP, SWEEP = 120.0, 3600.0  # seconds
TOGETHER = 100  # rows that are deleted at once
PAUSE = timedelta(seconds=5)  # until a research goes on after an error that may pass
MOST_CLAIMS = 50  # after which a research fails whose process ends each time

sql = statements(__name__)
log = logging.getLogger(__name__)


class ResearchWork(Protocol):
    """Carries out the research of one tenant."""

    async def carry_out(self, claim: ResearchClaim) -> None:
        """Carry out a research that this process holds, and store how it ended."""
        ...

    async def end_cancelled(self, claim: ResearchClaim) -> None:
        """Store that a research was cancelled."""
        ...


@dataclass(slots=True)
class HeldResearch:
    """A research that this process works on."""

    tenant: TenantId
    claim: ResearchClaim
    task: asyncio.Task[None]
    is_stopped: bool = False
    is_lost: bool = False


class Researcher(NotifiedJob):
    """Carries out research, some at once. Every process has a researcher.

    A research is held by a lease, which is renewed apart from the work, and every write names the epoch of the lease:
    what a process writes that has lost it is rejected.
    """

    def __init__(self, postgres: Postgres, settings: ResearchSettings, of: Callable[[TenantId], ResearchWork]) -> None:
        super().__init__(NAME, postgres=postgres, channel=CHANNEL, pause=EVERY, first=FIRST, gather=GATHER)
        self.id = uuid7()
        self.lease = timedelta(seconds=settings.lease)
        self._of = of
        self._most = settings.concurrency
        self._keep = timedelta(days=settings.keep_days)
        self._held: dict[UUID, HeldResearch] = {}
        self._woken = asyncio.Event()
        self._renewal = PeriodicCall("renewal of leases of research", self._renew, pause=settings.lease / 3)
        self._sweep = PeriodicCall("sweep of research", self.sweep, pause=SWEEP, first=FIRST_SWEEP)

    async def __aenter__(self) -> Self:
        await self._renewal.__aenter__()
        await self._sweep.__aenter__()
        return await super().__aenter__()

    async def __aexit__(self, *_: object) -> None:
        """Stop at once. What is held is given back, and another process goes on."""
        await super().__aexit__()
        await asyncio.sleep(0)  # a task that was just made begins, and so releases what it holds
        tasks = [held.task for held in self._held.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._sweep.__aexit__()
        await self._renewal.__aexit__()

    @property
    def has_room(self) -> bool:
        """Whether it can begin another one."""
        return len(self._held) < self._most

    def begin_held(self, tenant: TenantId, claim: ResearchClaim) -> None:
        """Work on a research that was claimed for this process."""
        # An empty context: the task works for all who wait, not only for the one that starts it.
        task = asyncio.create_task(
            self._work(tenant, claim), name=f"holdfast research {claim.run.id}", context=Context()
        )
        self._held[claim.run.id] = HeldResearch(tenant, claim, task)

    def stop(self, id: UUID) -> None:
        """End a research that was cancelled, if this process works on it."""
        held = self._held.get(id)
        if held is not None and not held.is_stopped:
            held.is_stopped = True
            held.task.cancel()

    def wake(self) -> None:
        """Look for research now."""
        self._woken.set()

    def wake_events(self) -> Sequence[asyncio.Event]:
        """Return the event of a research that has ended here, so that another can begin."""
        return [self._woken]

    async def step(self) -> float:
        """Begin research that waits, or whose process has died; end what was cancelled."""
        self._woken.clear()
        if self._held:
            await self._renew()
        if self.has_room:
            for row in await self._postgres.system.all(sql("due_tenants")):
                await self._take(row["id"])
        return EVERY

    async def sweep(self) -> int:
        """Delete research that ended long ago. Return how many."""
        tenants = await self._postgres.system.all(sql("tenants_with_old_research"), self._keep)

        async def forget(database: Database) -> int:
            return await in_batches(lambda: database.run(sql("forget"), self._keep, TOGETHER), TOGETHER)

        return await for_each_tenant(self._postgres, tenants, forget, name="sweep of research")

    async def _take(self, tenant: TenantId) -> None:
        while self.has_room:
            row = await self._postgres.tenant(tenant).one(sql("claim"), self.id, self.lease)
            if row is None:
                return
            self.begin_held(tenant, claim_of(row))

    async def _work(self, tenant: TenantId, claim: ResearchClaim) -> None:
        id = claim.run.id
        try:
            await self._of(tenant).carry_out(claim)
        except asyncio.CancelledError:
            held = self._held[id]
            with suppress(HoldfastError):  # then the lease lapses
                if held.is_stopped:
                    await self._of(tenant).end_cancelled(claim)
                elif not held.is_lost:
                    await self._release(tenant, claim, timedelta(0))
        except ResearchLost:
            log.info("the research %s is not ours any more", id)
        except DatabaseAway as error:  # the lease lapses, and a process goes on
            log.warning("the research %s waits for the database: %s", id, error)
        except HoldfastError as error:
            log.warning("the research %s goes on later: %s", id, error)
            with suppress(HoldfastError):
                await self._release(tenant, claim, PAUSE)
        except Exception:
            log.exception("internal error: the research %s goes on when its lease has expired", id)
        finally:
            del self._held[id]
            self._woken.set()

    async def _release(self, tenant: TenantId, claim: ResearchClaim, pause: timedelta) -> None:
        database = self._postgres.tenant(tenant)
        await database.run(sql("release"), claim.run.id, claim.epoch, pause)
        await database.run(sql("wake"))

    async def _renew(self) -> None:
        """Renew the leases. What is cancelled, or held by another, is stopped."""
        for tenant in {held.tenant for held in self._held.values()}:
            mine = [held for held in self._held.values() if held.tenant == tenant]
            rows = await self._postgres.tenant(tenant).all(
                sql("renew"), [held.claim.run.id for held in mine], [held.claim.epoch for held in mine], self.lease
            )
            stops = {row["id"]: row["stop"] for row in rows}
            for held in mine:
                if stops.get(held.claim.run.id):
                    self.stop(held.claim.run.id)
                elif held.claim.run.id not in stops and not held.is_stopped:
                    held.is_lost = True
                    held.task.cancel()
