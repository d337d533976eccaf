"""Workers: claim commands, run their handlers, and store the results.

A claim has a lease, which the keeper renews, and a fencing token: after the lease is lost, the token is outdated and
the worker's answer is not applied. Other workers find the commands of a worker that died, and retry them. Every few
seconds a worker announces its handlers, so that a caller that can also run a tool itself knows whether to use workers.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

from holdfast.bus.command_events import LARGEST, error_of, is_whole
from holdfast.bus.command_queue import CommandQueue, commands_channel
from holdfast.bus.completions import CommandAnswer, Completions
from holdfast.bus.feed_options import Listen
from holdfast.bus.handlers import CurrentCommand, Handler
from holdfast.bus.ingest import Ingest
from holdfast.bus.lease_renewal import LeaseRenewal, renew_leases
from holdfast.bus.members import group_channel
from holdfast.bus.notifications import POLL, Notifications, until
from holdfast.bus.retry_policy import wait_before
from holdfast.core.background import PeriodicCall, end_task
from holdfast.core.errors import HoldfastError, InvalidInput, Overloaded, TooLarge, Unavailable
from holdfast.core.ids import uuid7
from holdfast.core.settings import BusSettings
from holdfast.core.text import loads, restore, store
from holdfast.postgres.database import Database, Postgres, Row
from holdfast.postgres.sql import statements

GROUP = "workers"  # the group of the dead letters of commands
SWEEP = 5.0  # seconds between two searches for commands of dead workers
FORGET = 3600.0  # seconds between two deletions of old commands
SETTLING = 5.0  # seconds for cancelled handlers to end
LOOK = 2.0  # seconds between two searches for further handlers
PRESENT = 5.0  # seconds between two heartbeats
LOST = "lost"  # error code of an attempt whose worker stopped: nobody knows how far it came
FINAL = "holdfast-final"  # header of commands whose failure is their answer: no retry, no dead letter
ONCE = "holdfast-once"  # header of commands that must not begin twice, not even when their worker gives them back
HOPELESS = (InvalidInput, TooLarge)  # a retry would fail in the same way
STOPPED = {"code": LOST, "message": "its worker was stopped while it ran"}
NEXT = {  # the log message for each outcome of a failed attempt
    "queued": "it will be retried",
    "failed": "it will not be retried",
    "dead": "it was the last attempt, and the command is a dead letter",
    "lost": "this worker no longer holds the command",
}

More = Callable[[], Awaitable[Mapping[str, Handler]]]

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """The objects that the workers of a tenant share."""

    database: Database
    queue: CommandQueue
    completions: Completions
    ingest: Ingest
    notifications: Notifications
    listen: Listen
    settings: BusSettings
    connect: Callable[[], Postgres]  # opens the keeper's own connections


@dataclass(frozen=True, slots=True)
class ClaimedCommand:
    """A command that this worker has claimed."""

    command: CurrentCommand
    skill: Handler
    arguments: dict[str, Any]
    token: int

    @property
    def id(self) -> str:
        """The correlation id."""
        return self.command.correlation_id


class Worker:
    """Carries out commands inside `async with`, at most `concurrency` at once. On exit, it gives back unfinished ones.

    `more` returns further handlers, which may change over time. `skills` take precedence over them.
    """

    def __init__(
        self, context: WorkerContext, skills: Mapping[str, Handler], *, more: More | None = None, concurrency: int = 10
    ) -> None:
        if not skills and more is None:
            raise InvalidInput("the worker has no handlers", next="Declare one with `@app.skill(...)`.")
        if not is_whole(concurrency, 1, LARGEST):
            why = f"it is {concurrency!r:.100}"
            raise InvalidInput("the concurrency of the worker is invalid", why=why, next="Use an integer above zero.")
        self.name = f"{socket.gethostname()} {os.getpid()}"
        self._context = context
        self._database = context.database
        self._id = uuid7()
        self._own_skills = dict(skills)
        self._load_more = more
        self._skills = dict(skills)
        self._concurrency = concurrency
        self._lease = timedelta(seconds=context.settings.command_lease)
        self._running: dict[asyncio.Task[None], ClaimedCommand] = {}
        self._woken = asyncio.Event()
        self._stack = AsyncExitStack()
        self._claim_task: asyncio.Task[None] | None = None
        self._stopping = False
        self._more = True  # the last claim filled all free places: more commands may be due

    async def __aenter__(self) -> Self:
        tenant = await self._database.tenant()
        await self._context.queue.prepare()
        self._context.ingest.start()
        channels = commands_channel(tenant), group_channel(tenant, GROUP)
        async with AsyncExitStack() as stack:
            self._woken = await stack.enter_async_context(self._context.listen(*channels))
            keeper = LeaseRenewal(self._context.connect, tenant, self._lease, self._cancel_lost)
            self._keeper = await stack.enter_async_context(keeper)
            await self._load_handlers()
            stack.push_async_callback(self._end_presence)
            self._start(stack, self._announce_handlers())
            every = min(SWEEP, self._lease.total_seconds() / 3)
            await stack.enter_async_context(PeriodicCall("sweep of lost commands", self.sweep, pause=every, first=0))
            await stack.enter_async_context(PeriodicCall("deletion of commands", self.tidy, pause=FORGET, first=0))
            self._claim_task = self._start(stack, self._claim_when_free())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self._stack.aclose()

    async def stop(self, grace: float = 0) -> None:
        """Stop claiming. Running commands have `grace` seconds to finish; then the rest is given back."""
        self._stopping = True
        self._woken.set()
        await self._end_presence()
        if self._claim_task is not None:  # a running claim is not cancelled: nobody would know of its commands
            await asyncio.wait([self._claim_task])
        if self._running and grace > 0:
            await asyncio.wait(self._running, timeout=grace)
        left = dict(self._running)
        for task, claim in left.items():
            self._keeper.drop(claim.id, claim.token)
            task.cancel()
        once = [claim for claim in left.values() if ONCE in claim.command.headers]
        failing = (self._context.completions.fail(claim.id, claim.token, STOPPED, again=False) for claim in once)
        releasing = self._release([claim for claim in left.values() if ONCE not in claim.command.headers])
        await asyncio.gather(*map(_suppress_errors, (*failing, releasing)))
        if left:
            _, stubborn = await asyncio.wait(left, timeout=SETTLING)
            for task in stubborn:  # their commands are given back already
                self._running.pop(task, None)
                log.warning("the skill %s does not stop when it is cancelled", left[task].skill.name)

    async def _claim_when_free(self) -> None:
        """Claim commands whenever some may be due and places are free."""
        while not self._stopping:
            free = self._concurrency - len(self._running)
            try:
                if free > 0:
                    await self._claim(free)
            except HoldfastError as error:
                log.warning("could not claim commands; retrying: %s", error)
            await until(self._woken)

    async def _claim(self, free: int) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        known = self._skills
        skills = list(known.values())
        if not skills:
            return
        rows = await self._database.all(
            sql("claim_commands"),
            [store(skill.name) for skill in skills],
            [skill.rate for skill in skills],
            [skill.attempts for skill in skills],
            store(self.name),
            free,
            self._lease,
        )
        self._more = len(rows) == free
        if any(row["passed"] for row in rows):
            self._context.notifications.send(commands_channel(await self._database.tenant()))
        claims = [self._claimed_command(row, known) for row in rows]
        if loop.time() > started + self._lease.total_seconds() / 3:  # something blocked the loop meanwhile
            renewed = await renew_leases(self._database, {claim.id: claim.token for claim in claims}, self._lease)
            claims = [claim for claim in claims if claim.id in renewed]
        for claim in claims:
            self._keeper.hold(claim.id, claim.token)
            task = asyncio.create_task(self._run_command(claim), name=f"holdfast {claim.skill.name} {claim.id}")
            self._running[task] = claim
            task.add_done_callback(self._on_done)

    def _claimed_command(self, row: Row, skills: Mapping[str, Handler]) -> ClaimedCommand:
        skill = skills[restore(row["skill"])]
        headers: dict[str, str] = loads(row["headers"])
        command = CurrentCommand(restore(row["correlation_id"]), skill.name, row["attempt"], headers)
        return ClaimedCommand(command, skill, loads(row["arguments"]), row["token"])

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        claim = self._running.pop(task, None)
        if claim is None:
            return
        self._keeper.drop(claim.id, claim.token)
        if self._more:
            self._woken.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the command %s is left for another worker: %s", claim.id, error, exc_info=error)

    def _cancel_lost(self, correlation_id: str, token: int) -> None:
        """Cancel the handler of a command that this worker lost. A thread goes on, and its answer comes too late."""
        for task, claim in self._running.items():
            if (claim.id, claim.token) == (correlation_id, token):
                log.info("this worker no longer holds the command %s", correlation_id)
                if claim.skill.is_async:
                    task.cancel()

    async def _run_command(self, claim: ClaimedCommand) -> None:
        try:
            result = self._context.completions.result(await claim.skill.run(claim.command, claim.arguments))
        except BaseException as error:
            if isinstance(error, GeneratorExit) or _is_cancelled():
                raise
            await self._fail(claim, error)
        else:
            answer = CommandAnswer(claim.id, claim.token, result, None, self.name)
            await _retry(lambda: self._context.completions.complete(answer))

    async def _fail(self, claim: ClaimedCommand, error: BaseException) -> None:
        again = not isinstance(error, HOPELESS) and FINAL not in claim.command.headers
        error_object, wait = error_of(error), wait_before(claim.command.attempt)
        outcome = await _retry(
            lambda: self._context.completions.fail(claim.id, claim.token, error_object, again=again, wait=wait)
        )
        log.warning(
            "attempt %d at the command %r of %s failed; %s",
            claim.command.attempt,
            claim.id,
            claim.skill.name,
            NEXT[outcome],
            exc_info=error,
        )
        if outcome == "queued":
            asyncio.get_running_loop().call_later(wait.total_seconds(), self._woken.set)

    async def _release(self, claims: "list[ClaimedCommand]") -> None:
        if claims:
            ids, tokens = [store(claim.id) for claim in claims], [claim.token for claim in claims]
            await self._database.run(sql("release_commands"), ids, tokens)
            self._context.notifications.send(commands_channel(await self._database.tenant()))

    async def sweep(self) -> int:
        """Fail the attempts of dead workers, so that their commands are retried. Return how many there were."""
        found = await self._database.all(sql("lapsed_commands"))
        for row in found:
            id, wait = restore(row["correlation_id"]), wait_before(row["attempts"])
            error = {"code": LOST, "message": f"its worker, {row['worker']}, stopped responding"}
            log.warning("the command %s: %s", id, error["message"])
            again = FINAL not in loads(row["headers"])
            outcome = await self._context.completions.fail(
                id, row["token"], error, again=again, wait=wait, lease_expired=True
            )
            if outcome == "queued":
                asyncio.get_running_loop().call_later(wait.total_seconds(), self._woken.set)
        return len(found)

    async def _announce_handlers(self) -> None:
        """Look for further handlers. Announce all handlers every few seconds, and at once when they change."""
        loop = asyncio.get_running_loop()
        due = 0.0
        while not self._stopping:
            try:
                if await self._load_handlers() or loop.time() >= due:
                    names = [store(name) for name in self._skills]
                    await self._database.run(sql("tell_presence"), self._id, store(self.name), names)
                    due = loop.time() + PRESENT
            except HoldfastError as error:
                log.warning("could not announce handlers; retrying: %s", error)
            except Exception:
                log.exception("internal error: could not announce handlers; retrying")
            await asyncio.sleep(LOOK)

    async def _load_handlers(self) -> bool:
        """Load the further handlers. Return whether the set of handlers changed."""
        if self._load_more is None:
            return False
        found = {**await self._load_more(), **self._own_skills}
        changed = found.keys() != self._skills.keys()
        self._skills = found
        if changed:
            self._woken.set()
        return changed

    async def _end_presence(self) -> None:
        with contextlib.suppress(HoldfastError):  # the announcement expires by itself
            await self._database.run(sql("end_presence"), self._id)

    async def tidy(self) -> None:
        """Delete commands that finished long ago."""
        keep = timedelta(days=self._context.settings.keep_commands_days)
        while await self._database.value(sql("forget_commands"), keep):
            pass

    def _start(self, stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work, name="holdfast worker")
        stack.push_async_callback(end_task, task)
        return task


async def _retry(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run `work`, and retry it while the database is unavailable."""
    while True:
        try:
            return await work()
        except (Unavailable, Overloaded) as error:
            log.warning("could not store a completion; retrying: %s", error)
            await asyncio.sleep(POLL)


async def _suppress_errors(work: Awaitable[object]) -> None:
    with contextlib.suppress(HoldfastError):  # other workers wait until the lease expires
        await work


def _is_cancelled() -> bool:
    """Whether the running task itself is cancelled, not only something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
