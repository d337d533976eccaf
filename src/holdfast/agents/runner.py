"""The runner: holds the runs that this process has taken, renews their leases, and stops those that are to stop.

Leases are renewed here for all runs at once, never by the work itself: a tool may take hours. What a crashed process
held is taken up when its lease has run out; what this one is told to stop is cancelled.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, Self
from uuid import UUID

from holdfast.agents.approvals import runs_channel
from holdfast.agents.definitions import Agent
from holdfast.agents.runs import Claim, Finished, Run, Runs, Sent
from holdfast.agents.trouble import is_passing
from holdfast.bus.reading import Listen
from holdfast.bus.wakes import until
from holdfast.core.errors import Busy, HoldfastError
from holdfast.core.ids import uuid7
from holdfast.core.shares import Holder, Shares, work_for
from holdfast.postgres.database import Database

LOOK = 1.0  # seconds between two looks for runs that are due
TAKEN = 20  # runs that are due, taken at once: what is said meanwhile finds room
TIDYING = 5.0  # seconds that runs have to come to an end when they are told to
BEGUN = 10_000  # messages that were taken as they were sent, and are not taken again when their records come

log = logging.getLogger(__name__)


class Does(Protocol):
    """What does runs."""

    async def do(self, agent: Agent, run: Run) -> Finished | None:
        """Do a run until it ends, or until it has to wait for somebody (None)."""
        ...

    async def stopped(self, agent: Agent, run: Run) -> Finished:
        """End a run that somebody stopped."""
        ...


@dataclass(slots=True)
class Held:
    """A run that is being done."""

    run: Run
    task: "asyncio.Task[None]"
    holder: Holder
    stop: str | None = None


class Runner:
    """Does the runs of agents of one tenant, a bounded number at once, which it shares with those of other tenants."""

    def __init__(
        self,
        database: Database,
        runs: Runs,
        listen: Listen,
        does: Does,
        *,
        lease: float,
        places: Shares,
        grace: float = 0,
    ) -> None:
        self._database = database
        self._runs = runs
        self._listen = listen
        self._does = does
        self._lease = timedelta(seconds=lease)
        self._places = places  # shared with the runners of other tenants
        self._tenant = ""
        self._grace = grace  # seconds that runs have to end by themselves when it is left
        self._holder = f"process {uuid7()}"
        self._agents: dict[str, Agent] = {}
        self._held: dict[UUID, Held] = {}
        self._more = False  # there was no room for some
        self._taking: set[asyncio.Task[Any]] = set()
        self._begun: OrderedDict[UUID, object] = OrderedDict()
        self._watching: list[asyncio.Task[None]] = []
        self._woken = asyncio.Event()
        self._left: list[UUID] = []  # runs that could not go on, and are still leased to this process

    @property
    def running(self) -> int:
        """How many runs are being done."""
        return len(self._held)

    def serve(self, agent: Agent) -> None:
        """Do the runs of an agent from now on."""
        self._agents[agent.name] = agent
        self._woken.set()

    def leave(self, name: str) -> None:
        """Take no more runs of an agent."""
        self._agents.pop(name, None)

    async def __aenter__(self) -> Self:
        self._tenant = str(await self._database.tenant())
        self._places.on_free.append(self._look_if_room)
        self._watching = [
            asyncio.create_task(self._keep(), name="leases of runs"),
            asyncio.create_task(self._look(), name="runs that are due"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._places.on_free.remove(self._look_if_room)
        self._agents.clear()
        for task in self._watching[1:]:
            task.cancel()
        await asyncio.wait(self._watching[1:])
        if self._taking:  # what is taken now has nobody left to do it, and is given back
            await asyncio.wait(self._taking, timeout=TIDYING)
        if self._held and self._grace:
            await asyncio.wait([each.task for each in self._held.values()], timeout=self._grace)
        ending = [*(each.task for each in self._held.values()), *self._taking]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending, timeout=TIDYING)
        for task in self._watching:
            task.cancel()
        await asyncio.wait(self._watching)
        try:
            await self._runs.give_back(self._holder)
        except HoldfastError as error:
            log.info("runs are left to their leases: %s", error)

    def serves(self, agent: str) -> bool:
        """Whether it does the runs of an agent."""
        return agent in self._agents

    def has_room(self, agent: str, user: str | None = None) -> bool:
        """Whether it would do a run of an agent for a user at once."""
        return agent in self._agents and self._places.offers((self._tenant, user or ""))

    async def send(self, sending: Callable[[Claim], Coroutine[Any, Any, Sent]], user: str | None) -> Sent:
        """Have a message sent whose run is taken as it is stored; it is begun whether somebody waits for it or not."""
        holder = (self._tenant, user or "")
        self._places.add(holder)
        task = asyncio.create_task(self._send(sending, holder), name="sending")
        self._taking.add(task)
        task.add_done_callback(self._sent)
        return await asyncio.shield(task)

    async def _send(self, sending: Callable[[Claim], Coroutine[Any, Any, Sent]], holder: Holder) -> Sent:
        claim = Claim(uuid7(), self._holder, self._lease)
        try:
            sent = await sending(claim)
        except HoldfastError as error:
            if is_passing(error) and not isinstance(error, Busy):  # it may be stored nevertheless
                self._left.append(claim.run)
            raise
        finally:
            self._places.give(holder)
        agent = self._agents.get(sent.held.agent) if sent.held is not None else None
        if sent.held is not None and agent is not None:
            self._begun[sent.held.trigger] = None
            if len(self._begun) > BEGUN:
                self._begun.popitem(last=False)
            self._start(agent, sent.held)
        elif sent.held is not None:  # it was left meanwhile
            self._left.append(sent.held.id)
        self._look_if_room()
        return sent

    def _sent(self, task: "asyncio.Task[Any]") -> None:
        self._taking.discard(task)
        if not task.cancelled():
            task.exception()  # whoever sends is told, if they still wait

    async def take(self, agent: Agent, nodes: Sequence[UUID]) -> None:
        """Take the runs that answer these nodes; those for which there is no room are taken later."""
        nodes = [node for node in nodes if self._begun.pop(node, self) is self]
        if nodes and agent.name in self._agents:
            await asyncio.shield(self._begin_taking([agent.name], nodes))

    def _begin_taking(self, names: Sequence[str], nodes: Sequence[UUID] | None) -> "asyncio.Task[None]":
        """Take runs, whether somebody waits for it or not: one that was taken and is not begun would be nobody's."""
        task = asyncio.create_task(self._take(names, nodes), name="taking runs")
        self._taking.add(task)
        task.add_done_callback(self._taken)
        return task

    def _taken(self, task: "asyncio.Task[None]") -> None:
        self._taking.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, HoldfastError):
            log.warning("runs that are due cannot be taken, trying again: %s", error)
        elif error is not None:
            log.error("a defect: runs that are due cannot be taken, trying again", exc_info=error)

    async def _take(self, names: Sequence[str], nodes: Sequence[UUID] | None) -> None:
        self._tenant = self._tenant or str(await self._database.tenant())
        most = min(self._places.room_of_tenant(self._tenant), TAKEN if nodes is None else len(nodes))
        if nodes is None and not most:
            self._more = True
            return
        reserved = (self._tenant, "")
        self._places.add(reserved, most)
        try:
            # Without room, runs that strangers' messages ask for are still stored.
            taken = await self._runs.take(
                names,
                nodes=nodes,
                holder=self._holder,
                lease=self._lease,
                most=most,
                most_of_user=self._places.most_of_user,
            )
        finally:
            self._places.give(reserved, most)
        strange: list[UUID] = []  # of agents that were left meanwhile
        for run in taken:
            agent = self._agents.get(run.agent)
            if agent is None:
                strange.append(run.id)
            else:
                self._start(agent, run)
        self._more = self._more or (len(taken) == most if nodes is None else len(nodes) > most)
        self._look_if_room()
        if strange:
            await self._runs.give_back(self._holder, runs=strange)

    def _start(self, agent: Agent, run: Run) -> None:
        former = self._held.get(run.id)
        if former is not None:  # its lease ran out here, while the database was away
            former.task.cancel()
            self._places.give(former.holder)
        holder = (self._tenant, run.user or "")
        self._places.add(holder)
        task = asyncio.create_task(self._do(agent, run), name=f"run {run.id}")
        held = self._held[run.id] = Held(run, task, holder)
        task.add_done_callback(lambda _: self._ended(held))

    def _ended(self, held: Held) -> None:
        self._let_go(held)
        if not held.task.cancelled() and (error := held.task.exception()) is not None:
            log.error("the run %s broke", held.run.id, exc_info=error)

    def _let_go(self, held: Held | None) -> None:
        if held is not None and self._held.get(held.run.id) is held:
            del self._held[held.run.id]
            if self._places.held(held.holder) >= self._places.most_of_user:  # more of theirs may wait
                self._more = True
            self._places.give(held.holder)
            self._look_if_room()

    def _look_if_room(self) -> None:
        if self._more and self._places.room_of_tenant(self._tenant) > 0:
            self._more = False
            self._woken.set()

    async def _do(self, agent: Agent, run: Run) -> None:
        work_for(self._tenant, run.user)
        try:
            finished = await self._finished(agent, run)
        except Busy as error:  # another has it by now
            log.warning("a run is left to another: %s", error)
            return
        except HoldfastError as error:  # the database is away, mostly: it is taken up again when that is back
            log.warning("the run %s is left for later: %s", run.id, error)
            self._left.append(run.id)
            return
        self._let_go(self._own(run))  # it has ended: nobody stops what follows
        if finished is not None and finished.following is not None and self._agents:
            self._begin_taking(list(self._agents), [finished.following])

    async def _finished(self, agent: Agent, run: Run) -> Finished | None:
        try:
            return await self._does.do(agent, run)
        except asyncio.CancelledError:
            held = self._own(run)
            if held is None or held.stop not in ("cancel", "interrupt"):
                raise
            held.task.uncancel()
            return await self._does.stopped(agent, run)

    def _own(self, run: Run) -> Held | None:
        """The run as it is held, unless it was begun anew meanwhile."""
        held = self._held.get(run.id)
        return held if held is not None and held.task is asyncio.current_task() else None

    async def _keep(self) -> None:
        """Renew leases, and cancel what is to stop."""
        while True:
            try:
                async with self._listen(await runs_channel(self._database)) as woken:
                    await self._keep_all(woken)
            except HoldfastError as error:
                log.warning("leases of runs cannot be renewed, trying again: %s", error)
            except Exception:
                log.exception("a defect: leases of runs cannot be renewed, trying again")
            await asyncio.sleep(min(LOOK, self._lease.total_seconds() / 3))

    async def _keep_all(self, woken: asyncio.Event) -> None:
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
            asked = await (self._runs.renew(runs, lease=self._lease) if renew else self._runs.asked_to_stop(runs))
            for each in held:
                stop = asked.get(each.run.id)
                if stop is not None and each.stop is None and self._held.get(each.run.id) is each:
                    each.stop = stop
                    each.task.cancel(stop)

    async def _look(self) -> None:
        """Take runs that are due: left by others, allowed by somebody, or waiting for room."""
        while True:
            await until(self._woken, LOOK)
            try:
                if self._left:
                    await self._runs.give_back(self._holder, runs=self._left)
                    self._left.clear()
                if self._agents:
                    await asyncio.shield(self._begin_taking(list(self._agents), None))
            except Exception:  # noqa: BLE001 - it is logged where it is taken
                await asyncio.sleep(LOOK)
