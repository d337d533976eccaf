"""The journal of a run: stores what the run does. Writes are rejected once another process has taken the run."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

import msgspec

from holdfast.agents.events import PER_CLAIM, PER_RUN, Event, Pieces, delta_event
from holdfast.agents.runs import AgentRun, lapsed_run
from holdfast.conversations.contexts import Context, parse_context
from holdfast.conversations.nodes import Node, NodeInput
from holdfast.core.ids import uuid7
from holdfast.core.text import dumps, loads, restore, store
from holdfast.llm.model import ModelReply, TokenUsage
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

Reason = Literal["listed", "unknown"]
Question = tuple[str, str, Any, Reason]  # a tool call: its id, tool and arguments, and why it needs an approval
ExecutionState = Literal["running", "done", "failed", "unknown"]
Decision = Literal["pending", "approved", "denied", "withdrawn"]
LAST_STEP = 2**31 - 1

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class RunStep:
    """One model call of a run: what was sent, and the reply."""

    number: int
    sent: dict[str, Any]
    reply: ModelReply | None
    started_at: datetime
    replied_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunExecution:
    """One execution of a tool call. With a correlation id, a worker carries it out."""

    id: UUID
    step: int
    call_id: str
    tool: str
    arguments: Any
    status: ExecutionState
    token: int
    output: Any
    error: str | None
    latency_ms: float | None = None
    tool_id: UUID | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True)
class RequestedApproval:
    """A tool call for which an approval was requested."""

    step: int
    call_id: str
    reason: Reason
    state: Decision
    comment: str | None
    used: bool = False  # the approved call was started since
    id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True, slots=True)
class RunHistory:
    """What a run has done so far. `doubtful`: executions of earlier attempts whose outcome is unknown."""

    steps: Sequence[RunStep] = ()
    executions: Sequence[RunExecution] = ()
    approvals: Sequence[RequestedApproval] = ()
    doubtful: Sequence[RunExecution] = ()


async def past_of(database: Database, run: UUID, *, since: int = 0, limit: int | None = None) -> RunHistory:
    """Return what a run did in the steps after number `since`, at most `limit` steps."""
    steps = [step_of(row) for row in await database.all(sql("steps"), run, since, limit)]
    last = LAST_STEP if limit is None else max((step.number for step in steps), default=since)
    return RunHistory(
        steps,
        [_execution_of(row) for row in await database.all(sql("executions"), run, since, last)],
        [_approval_of(row) for row in await database.all(sql("asked"), run, since, last)],
    )


class StartedCall(NamedTuple):
    """A tool call that starts, with the id of its execution, and a correlation id if a worker carries it out."""

    id: str
    tool: str
    arguments: Any
    execution: UUID
    tool_id: UUID | None = None
    correlation_id: str | None = None


class StepReply(NamedTuple):
    """What the model was sent in a step, and its reply. `seen` is the seq of the last node that it was shown."""

    step: int
    sent: dict[str, Any]
    reply: ModelReply
    seen: int
    began: datetime


class StartedCalls(NamedTuple):
    """The calls of a step that start now."""

    step: int
    calls: Sequence[StartedCall]


class CallOutcome(NamedTuple):
    """The outcome of a tool call. `output` has what the model reads under `text`.

    `whole`, of this content type, is the full output, if it is too large for the row. It is stored in a separate table.
    """

    step: int
    call: str
    status: Literal["done", "failed", "unknown"]
    output: Any
    error: str | None
    latency_ms: float
    whole: bytes | None = None
    content_type: str | None = None


class Journal:
    """Stores what one run does, under the fencing token of its claim."""

    def __init__(
        self,
        database: Database,
        run: AgentRun,
        *,
        announce: Callable[[str, UUID], None],
        on_node: Callable[[Node], None],
    ) -> None:
        self._database = database
        self._announce = announce  # wakes the readers of the agent's topic
        self._on_node = on_node  # called for each new node
        self.run = run
        self._n = run.number * PER_RUN + min(run.token, 900) * PER_CLAIM  # of the last delta
        self._unsaved: list[tuple[int, str, dict[str, Any]]] = []
        self._saved = 0  # the number of the last delta that is stored
        self.seq = max(run.triggers)  # of the last node of the run

    @property
    def n(self) -> int:
        """The number of the last delta."""
        return self._n

    @property
    def pieces(self) -> Pieces:
        """The streamed text that is not stored yet."""
        at = datetime.now(UTC)
        return Pieces(
            self._saved,
            [{"n": n, "run_id": self.run.id, "kind": kind, "data": data, "at": at} for n, kind, data in self._unsaved],
        )

    async def past(self) -> RunHistory:
        """Return what was done before, so that nothing is repeated."""
        run, database = self.run, self._database
        doubtful: Sequence[Row] = ()
        if run.retry_of is not None:
            doubtful = await database.all(sql("former_executions"), run.trigger, store(run.agent), run.attempt)
        past = await past_of(database, run.id)
        return replace(past, doubtful=[_execution_of(row) for row in doubtful])

    async def keep_reply(self, replied: StepReply) -> None:
        """Store a reply without nodes. A reply that is already stored stays."""
        await self._store_reply(replied.step, _reply(replied))

    async def keep_sent(self, step: int, sent: dict[str, Any], *, seen: int, began: datetime) -> None:
        """Store what was sent in a model call that gave no reply."""
        await self._store_reply(step, (dumps(sent), None, None, 0, 0, 0.0, seen, began))

    async def count(self, usage: TokenUsage, cost: float) -> None:
        """Add the tokens and the cost of a model call outside the steps."""
        args = (self.run.id, self.run.token, usage.input_tokens, usage.output_tokens, cost)
        if not await self._database.run(sql("count_usage"), *args):
            raise lapsed_run(self.run)

    async def append(
        self,
        drafts: Sequence[NodeInput],
        *,
        replied: StepReply | None = None,
        begun: StartedCalls | None = None,
        ended: CallOutcome | None = None,
    ) -> list[UUID]:
        """Append nodes, all or none, and announce them on the agent's topic. A node whose key exists stays unchanged.

        The same transaction stores the model's reply, the calls that start, or the outcome of a call.
        """
        contexts = [parse_context(draft.context) for draft in drafts]
        made_by = {"run": str(self.run.id), "answers": list(self.run.triggers)}
        payloads = [{**(draft.payload or {}), **made_by} for draft in drafts]
        if drafts:  # the text becomes a node: who reads the node before this statement returns must not get it again
            self._unsaved.clear()
            self._saved = 0
        rows = await self._database.all(
            sql("append_in_run"),
            self.run.id,
            self.run.token,
            next((entry.step for entry in (replied, begun, ended) if entry), None),
            replied and _reply(replied),
            [_started_call(call) for call in begun.calls] if begun else [],
            ended and _outcome(ended),
            list(map(_draft, drafts, contexts, payloads)),
        )
        for row in rows:
            self._refuse(row["outcome"])
        if not drafts:
            return []
        if rows[-1]["topic"] is not None:
            self._announce(rows[-1]["topic"], self.run.conversation)
        root = self.run.conversation
        for row, draft, context, payload in zip(rows, drafts, contexts, payloads, strict=True):
            if row["outcome"] == "appended":
                self.seq = row["seq"]
                self._on_node(Node(
                    row["id"], root, root, row["seq"], str(context), draft.content, payload, None, draft.key, 1,
                    row["revision"], False, row["at"], row["at"],
                ))  # fmt: skip
        return [row["id"] for row in rows]

    async def begin_execution(self, step: int, calls: Sequence[tuple[str, str, Any]]) -> None:
        """Store that calls start, given by id, tool and arguments. A call that was started before starts again."""
        await self.append([], begun=StartedCalls(step, [StartedCall(*call, uuid7()) for call in calls]))

    async def end_execution(self, ended: CallOutcome) -> None:
        """Store the outcome of a call."""
        await self.append([], ended=ended)

    async def ask(self, step: int, calls: Sequence[Question]) -> bool:
        """Request approvals for calls. Return whether the run has to wait for them."""
        outcome = await self._database.value(
            sql("ask_approval"), self.run.id, self.run.token, [uuid7() for _ in calls], step,
            [call for call, _, _, _ in calls], [tool for _, tool, _, _ in calls],
            [arguments for _, _, arguments, _ in calls], [reason for _, _, _, reason in calls], self._n,
        )  # fmt: skip
        self._refuse(outcome)
        return outcome == "waiting"

    # Deltas: events that are not nodes

    def add_piece(
        self, kind: Literal["token", "thinking"], data: dict[str, Any], *, revision: int, at: datetime
    ) -> tuple[Event, int, int]:
        """Add a piece of streamed text. Return its event, its number and the number before. `flush` stores it."""
        after = self._n
        self._n += max(1, len(data.get("text", "")))
        self._unsaved.append((self._n, kind, data))
        return delta_event(revision, self._n, self.run.id, kind, data, at), self._n, after

    async def flush(self) -> None:
        """Store the pieces since the last flush, for watchers in other processes."""
        unsaved = list(self._unsaved)
        rows = list(_merge_pieces(unsaved))
        if not rows:
            return
        stored = await self._database.run(
            sql("store_deltas"), self.run.conversation, self.run.id, self.run.token, [n for n, _, _ in rows],
            [kind for _, kind, _ in rows], [data for _, _, data in rows],
        )  # fmt: skip
        if stored == len(rows):
            del self._unsaved[: len(unsaved)]
            self._saved = rows[-1][0]

    async def _store_reply(self, step: int, reply: tuple[object, ...]) -> None:
        self._refuse(await self._database.value(sql("store_reply"), self.run.id, self.run.token, step, reply))

    def _refuse(self, outcome: str) -> None:
        if outcome == "lapsed":
            raise lapsed_run(self.run)


def step_of(row: Row) -> RunStep:
    """Build a step from its row."""
    reply = None if row["reply"] is None else msgspec.convert(row["reply"], ModelReply)
    return RunStep(row["number"], loads(row["sent"]), reply, row["started_at"], row["replied_at"])


def _approval_of(row: Row) -> RequestedApproval:
    comment = None if row["comment"] is None else restore(row["comment"])
    return RequestedApproval(row["step"], row["call_id"], row["reason"], row["state"], comment, row["used"], row["id"])


def _execution_of(row: Row) -> RunExecution:
    return RunExecution(
        row["id"],
        row["step"],
        row["call_id"],
        row["tool"],
        row["input_params"],
        cast(ExecutionState, row["status"]),
        row["token"],
        row["output_result"],
        None if row["error"] is None else restore(row["error"]),
        row["latency_ms"],
        row["tool_id"],
        None if row["correlation_id"] is None else restore(row["correlation_id"]),
    )


# The values that the database knows by the same names (postgres/migrations/0017_run_writes.sql), part by part.


def _draft(draft: NodeInput, context: Context, payload: dict[str, Any]) -> tuple[object, ...]:
    """Return a `node_draft`."""
    return uuid7(), context.type, context.name, store(context.value), store(draft.content), payload, draft.key


def _reply(replied: StepReply) -> tuple[object, ...]:
    """Return a `step_reply`."""
    reply, usage = replied.reply, replied.reply.usage
    used = usage.input_tokens, usage.output_tokens, reply.cost
    return dumps(replied.sent), msgspec.to_builtins(reply), reply.model, *used, replied.seen, replied.began


def _started_call(call: StartedCall) -> tuple[object, ...]:
    """Return a `started_call`."""
    worker = None if call.correlation_id is None else store(call.correlation_id)
    return call.id, call.tool, call.arguments, call.execution, call.tool_id, worker


def _outcome(ended: CallOutcome) -> tuple[object, ...]:
    """Return a `call_outcome`."""
    error = None if ended.error is None else store(ended.error)
    kind = ended.content_type if ended.whole is not None else None
    return ended.call, ended.status, ended.output, error, ended.latency_ms, ended.whole, kind


def _merge_pieces(pieces: Iterable[tuple[int, str, dict[str, Any]]]) -> Iterable[tuple[int, str, dict[str, Any]]]:
    """Merge consecutive pieces of one kind. The number of the last one is where their text ends."""
    last: tuple[int, str, dict[str, Any]] | None = None
    for n, kind, data in pieces:
        if last is not None and last[1] == kind and not data.get("reset"):
            last = (n, kind, {**last[2], "text": last[2].get("text", "") + data["text"]})
            continue
        if last is not None:
            yield last
        last = (n, kind, data)
    if last is not None:
        yield last
