"""Runs: attempts of agents at turns, each from the message that started it to its end."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

from holdfast.conversations.contexts import Context
from holdfast.conversations.errors import unknown_conversation
from holdfast.conversations.turn_claims import Policy, held_by
from holdfast.core.background import PeriodicJob
from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.core.errors import (
    AlreadyExists,
    Broken,
    BudgetSpent,
    Busy,
    DatabaseAway,
    HoldfastError,
    InvalidInput,
    NotFound,
    Overloaded,
    TimedOut,
    TooLarge,
)
from holdfast.core.ids import uuid7
from holdfast.core.names import stored_name
from holdfast.core.settings import AgentSettings, BusSettings
from holdfast.core.text import restore, store
from holdfast.core.wires import HTTP_STATUS
from holdfast.postgres.database import Database, Postgres, Row, Transaction
from holdfast.postgres.each_tenant import for_each_tenant, in_batches
from holdfast.postgres.sql import statements

RunState = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
Ending = Literal["done", "failed", "cancelled"]
MOST: RunState = "done"  # the state of nearly all runs: a user's are found by user, runs in other states by state

OURS = 500  # the HTTP status of internal errors

FIRST_SWEEP = 90.0  # seconds before it: a process that ends sooner has nothing to sweep
SWEEP_PAUSE = 3600.0  # seconds between two sweeps
TOGETHER = 200  # runs deleted in one batch

log = logging.getLogger(__name__)
sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class AgentRun:
    """One attempt at a turn. `trigger` is the node that started it, `answer` the node that ended it.

    `merged`: the seqs of messages that joined the run before it began, and that it answers too. `claimed_revision`: the
    revision of the conversation when a process claimed the run.
    """

    id: UUID
    agent: str
    conversation: UUID
    number: int
    trigger: UUID
    trigger_seq: int
    attempt: int
    retry_of: UUID | None
    user: str | None
    state: RunState
    token: int
    claims: int
    steps: int
    input_tokens: int
    output_tokens: int
    cost: float
    model: str | None
    answer: UUID | None
    error: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    merged: tuple[int, ...] = ()
    claimed_revision: int | None = None

    @property
    def triggers(self) -> tuple[int, ...]:
        """The seqs of all messages that the run answers."""
        return (self.trigger_seq, *self.merged)


class RunClaim(NamedTuple):
    """A claim on a run that is made when the run is stored: the run's id, its holder and the lease."""

    run: UUID
    holder: str
    lease: timedelta


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that was sent to an agent, and the run that answers it. `held`: the run, if it was claimed."""

    run_id: UUID
    conversation: UUID
    node_id: UUID
    seq: int
    revision: int
    at: datetime
    number: int
    topic: str | None
    is_new: bool
    held: AgentRun | None = None


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What follows a run: the next message of the conversation that waits for an answer, and data of the last event."""

    following: UUID | None
    event_data: dict[str, Any]
    more: bool  # watchers have more to read: new nodes, or the ends of other runs


class Runs:
    """Stores, claims and ends runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(
        self,
        conversation: UUID,
        agent: str,
        content: str,
        *,
        context: Context,
        user: str | None,
        key: str | None,
        busy: Policy,
        claim: RunClaim | None = None,
        tx: Transaction | None = None,
    ) -> Sent:
        """Append a message and store the run that answers it. A repeated key returns the first message.

        With a claim, the run is held at once, unless the conversation has unfinished runs before it. With `merge`, the
        message can join the run of an earlier message that nobody has started.
        """
        run = await self._database.within(tx)
        outcome, node, seq, revision, at, topic, run_id, number, claimed, holder = await run.value(
            sql("send_message"), conversation, uuid7(), context.type, context.name, store(context.value),
            store(content), {"role": "user"}, None if key is None else stored_name("key", key), store(agent),
            uuid7() if claim is None else claim.run, None if user is None else store(user), busy,
            *((None, None) if claim is None else (store(claim.holder), claim.lease)),
        )  # fmt: skip
        if outcome == "missing":
            raise unknown_conversation(conversation)
        if outcome == "busy" and run_id is None:
            raise held_by(restore(holder))
        if outcome == "busy":
            raise Busy(
                "the agent is still answering an earlier message",
                why=f"its run {run_id} has not ended",
                next="Wait for its answer, or send with `enqueue`, `merge`, `interrupt` or `fork`.",
                run_id=str(run_id),
            )
        if number is None:
            raise AlreadyExists(
                f"the key {key!r:.100} is taken",
                why="it belongs to a node that is not a message to the agent",
                next="Use another.",
            )
        held = _first_claim(run_id, agent, conversation, number, node, seq, user, at, revision) if claimed else None
        return Sent(run_id, conversation, node, seq, revision, at, number, topic, outcome == "sent", held)

    async def take(
        self,
        agents: Sequence[str],
        *,
        nodes: Sequence[UUID] | None = None,
        holder: str,
        lease: timedelta,
        most: int,
        max_per_user: int | None = None,
    ) -> list[AgentRun]:
        """Claim the runs that answer these nodes, and store those that are missing. Without nodes, claim due runs.

        Users take turns: the user with the fewest runs in progress here comes first, and none gets more than
        `max_per_user`.
        """
        fresh = None if nodes is None else [uuid7() for _ in nodes]
        rows = await self._database.all(
            sql("take_runs"), [store(agent) for agent in agents], nodes, fresh, lease, store(holder), most, max_per_user
        )
        return [run_of(row) for row in rows]

    async def renew(self, held: Sequence[AgentRun], *, lease: timedelta) -> dict[UUID, str | None]:
        """Renew the leases of runs, and return what each run is asked to do."""
        await self._database.run(sql("renew_runs"), [run.id for run in held], [run.token for run in held], lease)
        return await self.stop_requests(held)

    async def stop_requests(self, held: Sequence[AgentRun]) -> dict[UUID, str | None]:
        """Return what each run is asked to do: `cancel`, `interrupt`, nothing, or `lapsed` if it is no longer held."""
        rows = await self._database.all(sql("stops"), [run.id for run in held], [run.token for run in held])
        return {row["id"]: row["stop"] for row in rows}

    async def give_back(self, holder: str, *, runs: Sequence[UUID] | None = None) -> None:
        """Release runs of a process, these or all that it holds, so that others can take them."""
        await self._database.run(sql("give_back_runs"), store(holder), None if runs is None else list(runs))

    async def finish(
        self, run: AgentRun, ending: Ending, *, answer: UUID | None = None, error: dict[str, Any] | None = None
    ) -> FinishedRun:
        """End a run."""
        row = cast(Row, await self._database.one(sql("finish_run"), run.id, run.token, ending, answer, error))
        if row["outcome"] != "ended":
            raise lapsed_run(run)
        return FinishedRun(row["next"], row["told"], row["more"])

    async def stop(self, id: UUID, why: Literal["cancel", "interrupt"] = "cancel") -> str:
        """Stop a run. Return `told` if its holder has to end it; otherwise it has ended."""
        outcome = await self._database.value(sql("stop_run"), id, why)
        if outcome == "missing":
            raise unknown_run(id)
        return cast(str, outcome)

    async def retry(self, id: UUID) -> AgentRun:
        """Store another attempt at a run that failed or was cancelled."""
        row = cast(Row, await self._database.one(sql("retry_run"), id, uuid7()))
        if row["outcome"] == "missing":
            raise unknown_run(id)
        if row["outcome"] == "deleted":
            raise InvalidInput(f"the run {id} cannot be retried", why="its message was deleted", next="Send another.")
        if row["outcome"] != "stored":
            raise InvalidInput(
                f"the run {id} cannot be retried",
                why="it has not failed, or a newer attempt is under way or done",
                next="Look at it with GET /api/runs/{id}.",
            )
        return await self.get(row["id"])

    async def get(self, id: UUID) -> AgentRun:
        """Return a run."""
        row = await self._database.one(sql("run"), id)
        if row is None:
            raise unknown_run(id)
        return run_of(row)

    async def list(
        self,
        *,
        conversation: UUID | None = None,
        user: str | None = None,
        state: RunState | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[AgentRun]:
        """List runs, newest first: of a conversation, of a user, or all; with `state`, only those in this state."""
        before, _ = read_cursor(cursor)
        stored = None if user is None else store(user)
        if conversation is not None:
            rows = await self._database.all(sql("list_runs_of_conversation"), before, limit + 1, conversation, state)
        elif state is not None and (user is None or state != MOST):
            rows = await self._database.all(sql("list_runs_in_state"), before, limit + 1, state, stored)
        elif user is not None:
            rows = await self._database.all(sql("list_runs_of_user"), before, limit + 1, stored, state)
        else:
            rows = await self._database.all(sql("list_runs"), before, limit + 1)
        runs = [run_of(row) for row in rows[:limit]]
        return Page(runs, write_cursor(runs[-1].id) if len(rows) > limit else None)

    async def questions(self, runs: Sequence[AgentRun]) -> dict[UUID, str]:
        """Return the beginning of the message that each run answers, without deleted messages."""
        rows = await self._database.all(sql("questions"), [run.id for run in runs]) if runs else []
        return {row["id"]: restore(row["question"]) for row in rows}


def run_of(row: Row) -> AgentRun:
    """Build a run from its row."""
    return AgentRun(
        row["id"],
        restore(row["agent"]),
        row["root"],
        row["number"],
        row["trigger"],
        row["trigger_seq"],
        row["attempt"],
        row["retry_of"],
        None if row["user_name"] is None else restore(row["user_name"]),
        row["state"],
        row["token"],
        row["claims"],
        row["steps"],
        row["input_tokens"],
        row["output_tokens"],
        row["cost"],
        row["model"],
        row["answer"],
        row["error"],
        row["created_at"],
        row["started_at"],
        row["finished_at"],
        tuple(row["merged"] or ()),
        row["claimed_revision"],
    )


def _first_claim(
    id: UUID,
    agent: str,
    conversation: UUID,
    number: int,
    node: UUID,
    seq: int,
    user: str | None,
    at: datetime,
    revision: int,
) -> AgentRun:
    """Build the run that was claimed when it was stored."""
    return AgentRun(
        id, agent, conversation, number, node, seq, attempt=1, retry_of=None, user=user, state="running", token=1,
        claims=1, steps=0, input_tokens=0, output_tokens=0, cost=0.0, model=None, answer=None, error=None,
        created_at=at, started_at=at, finished_at=None, claimed_revision=revision,
    )  # fmt: skip


def lapsed_run(run: AgentRun) -> Busy:
    """Return the error for a run that another process holds, or that has ended."""
    return Busy(
        f"this process no longer holds the run {run.id}",
        why="its lease expired and another process took it, or the run has ended",
    )


def unknown_run(id: UUID) -> NotFound:
    """Return the error for a run that does not exist, or that the caller may not see."""
    return NotFound(f"there is no run {id}")


def is_passing(error: HoldfastError) -> bool:
    """Return whether an error is transient, so that the run is left for later or for another process.

    Such an error comes from the database, not from the input.
    """
    if isinstance(error, Busy | DatabaseAway | Overloaded | TimedOut):
        return True
    return "sqlstate" in error.details and not isinstance(error, InvalidInput | TooLarge | AlreadyExists)


def error_data(error: HoldfastError, run: UUID) -> dict[str, Any]:
    """Return what is stored of a run's error and shown to users. The details of internal errors only go to the log."""
    if HTTP_STATUS[error.code] == OURS:
        log.error("the run %s failed: %s", run, error)
        error = Broken(error.what, next=f"The server's log says more: look for the run {run}.")
    data = {"code": error.code, "message": str(error), "what": error.what, "why": error.why, "next": error.next}
    if isinstance(error, BudgetSpent):
        data |= {"limit": error.details["limit"], "retry_after": error.details["retry_after"]}
    return data


class RunSweeper(PeriodicJob):
    """Deletes old runs of every tenant from time to time."""

    def __init__(self, postgres: Postgres, settings: AgentSettings, bus: BusSettings) -> None:
        super().__init__("sweep of runs", pause=SWEEP_PAUSE, first=FIRST_SWEEP)
        self._postgres = postgres
        # A record that is read again has to find the run that answered it. Otherwise it would be answered again.
        self._retention = timedelta(days=max(settings.keep_runs_days, bus.retention_days))

    async def sweep(self) -> int:
        """Delete runs of every tenant that ended long ago. Return how many were deleted."""
        tenants = await self._postgres.system.all(sql("tenants_with_old_runs"), self._retention)
        return await for_each_tenant(self._postgres, tenants, self._sweep, name="sweep of runs")

    async def step(self) -> None:
        """Sweep."""
        if swept := await self.sweep():
            log.info("deleted %d old runs", swept)

    async def _sweep(self, database: Database) -> int:
        return await in_batches(lambda: database.run(sql("forget_runs"), self._retention, TOGETHER), TOGETHER)
