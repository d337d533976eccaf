"""The runner: executes the runs that this process has claimed, renews their leases, and cancels those that must stop.

One task renews the leases of all runs, because a single tool call can take hours. Runs of a crashed process are taken
over when their leases have expired.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, Self
from uuid import UUID

from holdfast.agents.definitions import Agent
from holdfast.agents.runs import AgentRun, FinishedRun, RunClaim, Runs, is_passing
from holdfast.bus.feed_options import Listen
from holdfast.bus.notifications import until
from holdfast.conversations.turn_claims import queue_channel
from holdfast.core.errors import Busy, HoldfastError
from holdfast.core.ids import uuid7
from holdfast.core.request_context import RequestContext, current_request, set_request
from holdfast.core.shares import Holder, Shares, set_holder
from holdfast.postgres.database import Database

LOOK = 1.0  # seconds between two polls for due runs
CLAIM_BATCH = 20  # due runs claimed in one batch: it leaves room for messages that arrive meanwhile
TIDYING = 5.0  # seconds that cancelled runs have to end
MAX_CLAIMED_MESSAGES = 10_000  # messages whose runs were claimed when they were sent: their records claim nothing

log = logging.getLogger(__name__)


class RunExecutor(Protocol):
    """Executes runs."""

    async def do(self, agent: Agent, run: AgentRun) -> FinishedRun | None:
        """Execute a run until it ends. Return None if it has to wait for an approval."""
        ...

    async def end_stopped(self, agent: Agent, run: AgentRun) -> FinishedRun:
        """End a run that was stopped."""
        ...


@dataclass(slots=True)
class HeldRun:
    """A run that this process executes."""

    run: AgentRun
    task: "asyncio.Task[None]"
    holder: Holder
    stop: str | None = None


class AgentRunner:
    """Executes the runs of one tenant's agents. All tenants share a limited number of places for runs."""

    def __init__(
        self,
        database: Database,
        runs: Runs,
        listen: Listen,
        executor: RunExecutor,
        *,
        lease: float,
        places: Shares,
        grace: float = 0,
    ) -> None:
        self._database = database
        self._runs = runs
        self._listen = listen
        self._executor = executor
        self._lease = timedelta(seconds=lease)
        self._places = places  # shared with the runners of other tenants
        self._tenant = ""
        self._grace = grace  # seconds that runs have to finish when the runner closes
        self._holder = f"process {uuid7()}"
        self._agents: dict[str, Agent] = {}
        self._held: dict[UUID, HeldRun] = {}
        self._more = False  # some due runs found no room
        self._claim_tasks: set[asyncio.Task[Any]] = set()
        self._offered: dict[UUID, Holder] = {}  # claims of messages that are being stored
        self._settled = asyncio.Event()  # set when the last offered claim has ended
        self._claimed_messages: OrderedDict[UUID, object] = OrderedDict()
        self._tasks: list[asyncio.Task[None]] = []
        self._woken = asyncio.Event()
        self._to_release: list[
            UUID
        ] = []  # runs to release: they do not continue here, but are still leased to this process

    @property
    def running(self) -> int:
        """The number of runs in progress."""
        return len(self._held)

    def serve(self, agent: Agent) -> None:
        """Start to take the runs of an agent."""
        self._agents[agent.name] = agent
        self._woken.set()

    def leave(self, name: str) -> None:
        """Stop taking the runs of an agent."""
        self._agents.pop(name, None)

    async def __aenter__(self) -> Self:
        self._tenant = str(await self._database.tenant())
        self._places.on_free.append(self._wake_if_room)
        self._tasks = [
            asyncio.create_task(self._renew_leases(), name="leases of runs"),
            asyncio.create_task(self._claim_due_runs(), name="runs that are due"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._places.on_free.remove(self._wake_if_room)
        self._agents.clear()
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.wait(self._tasks[1:])
        if self._claim_tasks:  # runs that are claimed from now on find no agent and are released
            await asyncio.wait(self._claim_tasks, timeout=TIDYING)
        if self._offered:
            self._settled.clear()
            await until(self._settled, TIDYING)
        if self._held and self._grace:
            await asyncio.wait([each.task for each in self._held.values()], timeout=self._grace)
        ending = [*(each.task for each in self._held.values()), *self._claim_tasks]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending, timeout=TIDYING)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        try:
            await self._runs.give_back(self._holder)
        except HoldfastError as error:
            log.info("could not release runs; their leases will expire: %s", error)

    def serves(self, agent: str) -> bool:
        """Return whether it takes the runs of an agent."""
        return agent in self._agents

    def has_room(self, agent: str, user: str | None = None) -> bool:
        """Return whether it would start a run of an agent for a user at once."""
        return agent in self._agents and self._places.can_acquire((self._tenant, user or ""))

    def offer(self, agent: str, user: str | None) -> RunClaim | None:
        """Reserve a place for a run of an agent, and return the claim to store it with. None: there is no room."""
        if not self.has_room(agent, user):
            return None
        claim = RunClaim(uuid7(), self._holder, self._lease)
        self._offered[claim.run] = holder = (self._tenant, user or "")
        self._places.add(holder)
        return claim

    def start(self, claim: RunClaim, run: AgentRun | None) -> None:
        """Execute the run that was stored with a claim. None: the run is not claimed, or there is none."""
        self._end_offer(claim)
        agent = None if run is None else self._agents.get(run.agent)
        if run is not None and agent is not None:
            self._claimed_messages[run.trigger] = None
            if len(self._claimed_messages) > MAX_CLAIMED_MESSAGES:
                self._claimed_messages.popitem(last=False)
            self._start(agent, run)
        elif run is not None:  # the agent is no longer served here
            self._to_release.append(run.id)
        self._wake_if_room()

    def withdraw(self, claim: RunClaim, error: BaseException) -> None:
        """Give up a claim because of an error. The run may be stored nevertheless."""
        self._end_offer(claim)
        if isinstance(error, HoldfastError) and is_passing(error) and not isinstance(error, Busy):
            self._to_release.append(claim.run)

    def _end_offer(self, claim: RunClaim) -> None:
        self._places.release(self._offered.pop(claim.run))
        if not self._offered:
            self._settled.set()

    async def take(self, agent: Agent, nodes: Sequence[UUID]) -> None:
        """Claim the runs that answer these nodes. Runs for which there is no room are claimed later."""
        nodes = [node for node in nodes if self._claimed_messages.pop(node, self) is self]
        if nodes and agent.name in self._agents:
            await asyncio.shield(self._begin_taking([agent.name], nodes))

    def _begin_taking(self, names: Sequence[str], nodes: Sequence[UUID] | None) -> "asyncio.Task[None]":
        """Claim runs in a task of its own, so that a cancelled caller leaves no run claimed but not started."""
        task = asyncio.create_task(self._take(names, nodes), name="taking runs")
        self._claim_tasks.add(task)
        task.add_done_callback(self._on_taken)
        return task

    def _on_taken(self, task: "asyncio.Task[None]") -> None:
        self._claim_tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, HoldfastError):
            log.warning("could not claim due runs; retrying: %s", error)
        elif error is not None:
            log.error("internal error: could not claim due runs; retrying", exc_info=error)

    async def _take(self, names: Sequence[str], nodes: Sequence[UUID] | None) -> None:
        self._tenant = self._tenant or str(await self._database.tenant())
        most = min(self._places.room_for_tenant(self._tenant), CLAIM_BATCH if nodes is None else len(nodes))
        if nodes is None and not most:
            self._more = True
            return
        reserved = (self._tenant, "")
        self._places.add(reserved, most)
        try:
            # Even without room, this stores the missing runs of messages that other programs published.
            taken = await self._runs.take(
                names,
                nodes=nodes,
                holder=self._holder,
                lease=self._lease,
                most=most,
                max_per_user=self._places.max_per_user,
            )
        finally:
            self._places.release(reserved, most)
        unserved: list[UUID] = []  # of agents that are no longer served here
        for run in taken:
            agent = self._agents.get(run.agent)
            if agent is None:
                unserved.append(run.id)
            else:
                self._start(agent, run)
        self._more = self._more or (len(taken) == most if nodes is None else len(nodes) > most)
        self._wake_if_room()
        if unserved:
            await self._runs.give_back(self._holder, runs=unserved)

    def _start(self, agent: Agent, run: AgentRun) -> None:
        former = self._held.get(run.id)
        if former is not None:  # the lease expired while the database was unreachable
            former.task.cancel()
            self._places.release(former.holder)
        holder = (self._tenant, run.user or "")
        self._places.add(holder)
        task = asyncio.create_task(self._do(agent, run), name=f"run {run.id}")
        held = self._held[run.id] = HeldRun(run, task, holder)
        task.add_done_callback(lambda _: self._on_ended(held))

    def _on_ended(self, held: HeldRun) -> None:
        self._let_go(held)
        if not held.task.cancelled() and (error := held.task.exception()) is not None:
            log.error("internal error in the run %s", held.run.id, exc_info=error)

    def _let_go(self, held: HeldRun | None) -> None:
        if held is not None and self._held.get(held.run.id) is held:
            del self._held[held.run.id]
            if self._places.count(held.holder) >= self._places.max_per_user:  # more runs of this user may wait
                self._more = True
            self._places.release(held.holder)
            self._wake_if_room()

    def _wake_if_room(self) -> None:
        if self._more and self._places.room_for_tenant(self._tenant) > 0:
            self._more = False
            self._woken.set()

    async def _do(self, agent: Agent, run: AgentRun) -> None:
        set_holder(self._tenant, run.user)
        request = current_request()
        set_request(RequestContext("agent", request.request_id, request.trace_id))
        try:
            finished = await self._execute(agent, run)
        except Busy as error:  # another process has it
            log.warning("another process has taken over a run: %s", error)
            return
        except HoldfastError as error:  # mostly because the database is unreachable: the run is taken again later
            log.warning("the run %s is postponed: %s", run.id, error)
            self._to_release.append(run.id)
            return
        self._let_go(self._own(run))  # it has ended: a stop has no effect on what follows
        if finished is not None and finished.following is not None and self._agents:
            self._begin_taking(list(self._agents), [finished.following])

    async def _execute(self, agent: Agent, run: AgentRun) -> FinishedRun | None:
        try:
            return await self._executor.do(agent, run)
        except asyncio.CancelledError:
            held = self._own(run)
            if held is None or held.stop not in ("cancel", "interrupt"):
                raise
            held.task.uncancel()
            return await self._executor.end_stopped(agent, run)

    def _own(self, run: AgentRun) -> HeldRun | None:
        """Return the held run of this task, or None if the run was started again meanwhile."""
        held = self._held.get(run.id)
        return held if held is not None and held.task is asyncio.current_task() else None

    async def _renew_leases(self) -> None:
        """Renew leases, and cancel runs that must stop."""
        while True:
            try:
                async with self._listen(await queue_channel(self._database)) as woken:
                    await self._renew_and_stop(woken)
            except HoldfastError as error:
                log.warning("could not renew the leases of runs; retrying: %s", error)
            except Exception:
                log.exception("internal error: could not renew the leases of runs; retrying")
            await asyncio.sleep(min(LOOK, self._lease.total_seconds() / 3))

    async def _renew_and_stop(self, woken: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await until(woken, max(0.0, due - loop.time()))
            self._woken.set()
            renew = loop.time() >= due
            if renew:
                due = loop.time() + self._lease.total_seconds() / 3
            held = list(self._held.values())
            if not held:
                continue
            runs = [each.run for each in held]
            stops = await (self._runs.renew(runs, lease=self._lease) if renew else self._runs.stop_requests(runs))
            for each in held:
                stop = stops.get(each.run.id)
                if stop is not None and each.stop is None and self._held.get(each.run.id) is each:
                    each.stop = stop
                    each.task.cancel(stop)

    async def _claim_due_runs(self) -> None:
        """Claim due runs: released by other processes or with expired leases, approved, or waiting for room."""
        while True:
            await until(self._woken, LOOK)
            try:
                if self._to_release:
                    await self._runs.give_back(self._holder, runs=self._to_release)
                    self._to_release.clear()
                if self._agents:
                    await asyncio.shield(self._begin_taking(list(self._agents), None))
            except Exception:  # noqa: BLE001 - `_on_taken` logs failed claims
                await asyncio.sleep(LOOK)
