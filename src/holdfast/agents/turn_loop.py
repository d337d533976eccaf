"""The turn loop: call the model, run the tools that it asks for, and repeat until it answers.

Each step calls the model once, stores the raw reply and its nodes, and only then runs tools. A process that takes over
a run resumes from the stored rows: it does not pay for a stored reply again, does not repeat a finished tool call, and
appends no node twice.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID
from weakref import WeakKeyDictionary

from holdfast.agents.after_turn import AfterTurn
from holdfast.agents.conversation_views import ConversationView, ConversationViews
from holdfast.agents.definitions import Agent, Incoming
from holdfast.agents.events import PER_RUN, delta_event
from holdfast.agents.journal import CallOutcome, Journal, Question, StartedCall, StartedCalls, StepReply
from holdfast.agents.prompt_builder import PromptBuilder
from holdfast.agents.runs import AgentRun, Ending, FinishedRun, error_data, is_passing
from holdfast.agents.skill_tools import USE_SKILL
from holdfast.agents.tool_calls import (
    RUN,
    CallDecision,
    CallResult,
    RequestedCall,
    decide,
    is_awaited,
    key_of,
    requested_calls,
    started_execution,
)
from holdfast.agents.turn_state import TurnServices, TurnState
from holdfast.conversations.contexts import BY_TOOL, by_agent
from holdfast.conversations.nodes import Node, NodeInput, node_of
from holdfast.core.errors import Broken, Busy, Forbidden, HoldfastError, InvalidInput, LimitReached, NotFound
from holdfast.core.ids import uuid7
from holdfast.execution.outcomes import Failed, reason_of, run_app_code, trace_of
from holdfast.execution.worker_runner import correlation_id
from holdfast.llm import ModelReply, ModelRequest, Shown, TextPiece, ThinkingPiece
from holdfast.postgres.sql import statements
from holdfast.skills.run import Run
from holdfast.skills.tool import Mode, Tool

AGAIN = 0.5  # seconds before the next attempt to store a reply
FLUSH = 0.1  # seconds between two writes of streamed text

log = logging.getLogger(__name__)
sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A tool call that is about to be executed: its journal entry, its idempotency key, the tool, skill and mode.

    `awaited`: a worker has had the call since before this process took the run.
    """

    written: StartedCall
    key: str
    tool: Tool
    skill: UUID | None
    mode: Mode
    awaited: bool


class TurnLoop:
    """Executes the runs of one tenant's agents."""

    def __init__(self, services: TurnServices) -> None:
        self._services = services
        self._prompt_builder = PromptBuilder(services)
        self._after_turn = AfterTurn(services, self._prompt_builder)
        self.views = ConversationViews(services.database)  # the agents' cached conversations
        # The turns of cancelled tasks, with the text streamed so far. An entry disappears with its task.
        self._stopped_turns: WeakKeyDictionary[asyncio.Task[Any], TurnState] = WeakKeyDictionary()
        services.broadcast.views.append(self.views)

    def close(self) -> None:
        """Stop keeping the views up to date."""
        self._services.broadcast.views.remove(self.views)

    async def do(self, agent: Agent, run: AgentRun) -> FinishedRun | None:
        """Execute a run until it ends. Return None if it has to wait for an approval."""
        journal = self._journal(run)
        turn = TurnState(agent, run, journal, self.views)
        turn.tokens, turn.cost = run.input_tokens + run.output_tokens, run.cost
        limit = agent.limits.seconds or self._services.settings.max_seconds
        clock = asyncio.timeout(limit)
        async with self._services.broadcast.running_here(run.conversation, lambda: journal.pieces):
            try:
                if run.claims > 1 or run.retry_of is not None:
                    turn.views.forget(run.conversation)
                    turn.past = await journal.past()
                turn.questions = await self._questions(turn)
                if not turn.questions and not turn.past.steps:  # all its messages were deleted
                    return await self._finish(run, "cancelled", after=journal.n)
                async with clock:
                    answer = await (self._handle(turn) if agent.kind == "system" else self._advance(turn))
                if answer is None:
                    self._services.broadcast.look(run.conversation)
                    return None
                if agent.kind == "llm":
                    await self._after_turn.keep(turn, answer)
                return await self._finish(run, "done", answer=answer, after=journal.n)
            except asyncio.CancelledError:
                self._stopped_turns[_current_task()] = turn
                raise
            except TimeoutError as error:
                reached = LimitReached(
                    f"the run took longer than {limit:g} seconds", next="Ask for less, or raise agents.max_seconds."
                )
                return await self._fail(turn, reached if clock.expired() else _broken(error))
            except Failed as failed:
                return await self._fail(turn, _failure(agent, run, failed.error))
            except HoldfastError as error:
                if is_passing(error):
                    raise
                return await self._fail(turn, error)
            except Exception as error:
                log.exception("internal error in the run %s", run.id)
                return await self._fail(turn, _broken(error))

    async def end_stopped(self, agent: Agent, run: AgentRun) -> FinishedRun:
        """End a stopped run as cancelled, and cancel its calls at workers. The text streamed so far becomes a node."""
        turn = self._stopped_turns.pop(_current_task(), None)
        answer: UUID | None = None
        if turn is not None and turn.streamed_text.strip():
            journal = self._journal(run)
            payload = {"role": "assistant", "stopped": True}
            # The step's key: if the node of the step is already stored, no second one is appended.
            key = f"run:{run.id}:{turn.step}"
            draft = NodeInput(content=turn.streamed_text, context=by_agent(agent.name), payload=payload, key=key)
            (answer,) = await journal.append([draft])
        if turn is not None:
            await self._stop_workers(turn)
        return await self._finish(run, "cancelled", answer=answer)

    async def _questions(self, turn: TurnState) -> Sequence[Node]:
        """Return the messages that the turn answers, without deleted ones."""
        run, view = turn.run, await turn.view()
        found = [node for node in view.nodes if node.seq in run.triggers]
        if len(found) < len(run.triggers) and not view.is_whole:
            rows = await self._services.database.all(sql("triggers"), run.conversation, list(run.triggers))
            found = [node_of(row) for row in rows]
        return found

    # The loop

    async def _advance(self, turn: TurnState) -> UUID | None:
        """Return the node of the answer, or None if the run has to wait.

        On an error, store the reply if it is not stored yet.
        """
        try:
            return await self._answer(turn)
        except Exception:
            if turn.replied is not None:  # it is paid for, even if its nodes could not be stored
                await self._keep(turn, turn.replied)
            raise

    async def _answer(self, turn: TurnState) -> UUID | None:
        """Take step after step until the answer. Resume with the last stored step, and with its reply if it has one."""
        steps = turn.past.steps
        last = steps[-1] if steps else None
        number = last.number if last else 1
        reply = last.reply if last else None
        await self._prompt_builder.prepare(turn)
        while True:
            if reply is None:
                reply = await self._ask(turn, number)
            calls = requested_calls(reply, turn.tools, step=number, skills=turn.skills)
            reply_node = _reply_node(turn, number, reply, calls)
            if not calls:
                (node,) = await self._say(turn, [reply_node])
                return node
            if not await self._act(turn, number, reply_node, calls):
                return None
            if any(call.name == USE_SKILL for call in calls):
                await self._prompt_builder.open(turn)
            reply, number = None, number + 1

    async def _ask(self, turn: TurnState, number: int) -> ModelReply:
        """Call the model and stream its output to the watchers. `_say` stores the reply together with its nodes."""
        view = await turn.view()
        context = await self._prompt_builder.context(turn, view)
        self._prompt_builder.check_limits(turn, number, context)
        request = ModelRequest(
            messages=context.messages, tools=context.tools, max_tokens=self._services.llm.max_output_tokens
        )
        began, sent, seen = datetime.now(UTC), context.to_record(), context.last_seq
        turn.streamed_text = ""
        if turn.run.claims > 1 and not turn.step:
            self._begin_anew(turn, view)  # the previous holder may have streamed part of an answer
        turn.step = number
        flushing = asyncio.create_task(_flush(turn.journal))
        try:
            reply = await self._services.model_calls.ask(
                request,
                user=turn.run.user,
                agent=turn.agent.name,
                input_tokens=context.tokens,
                on_piece=lambda piece: self._piece(turn, view, piece),
                on_restart=lambda: self._begin_anew(turn, view),
                model=turn.agent.model,
            )
        except HoldfastError:
            await turn.journal.keep_sent(number, sent, seen=seen, began=began)
            raise
        finally:
            flushing.cancel()
            await asyncio.wait([flushing])
        turn.replied = StepReply(number, sent, reply, seen, began)
        turn.count(reply)
        return reply

    async def _say(
        self, turn: TurnState, drafts: Sequence[NodeInput], *, begun: StartedCalls | None = None
    ) -> list[UUID]:
        """Append nodes, and store the pending reply and the calls that start, in one transaction."""
        nodes = await turn.journal.append(drafts, replied=turn.replied, begun=begun)
        turn.replied, turn.streamed_text = None, ""
        return nodes

    async def _keep(self, turn: TurnState, replied: StepReply) -> None:
        """Store a reply without nodes. Retry transient errors for the length of a lease."""
        until = time.monotonic() + self._services.settings.lease
        while True:
            try:
                return await turn.journal.keep_reply(replied)
            except HoldfastError as error:
                if isinstance(error, Busy) or not is_passing(error) or time.monotonic() > until:
                    raise
                log.warning("a reply cannot be stored yet: %s", error)
                await asyncio.sleep(AGAIN)

    async def _act(self, turn: TurnState, number: int, reply_node: NodeInput, calls: Sequence[RequestedCall]) -> bool:
        """Append the node with a step's calls, make the calls that are allowed, and append their results.

        The start of the calls is stored with the node. The result of a single call is stored with the node that shows
        it; with several calls, each result is stored as soon as its call ends. Return False if the run has to wait for
        an approval.
        """
        unsaved = [reply_node]
        while True:
            decisions = [self._decide(turn, number, call) for call in calls]
            results = {
                call.id: decision.result
                for call, decision in zip(calls, decisions, strict=True)
                if decision.result is not None
            }
            allowed = [call for call, decision in zip(calls, decisions, strict=True) if decision == RUN]
            questions: list[Question] = [
                (call.id, call.name, call.arguments, decision.ask)
                for call, decision in zip(calls, decisions, strict=True)
                if decision.ask is not None
            ]
            pending = [await self._prepare_call(turn, number, call) for call in allowed]
            if unsaved or allowed:
                await self._say(turn, unsaved, begun=StartedCalls(number, [each.written for each in pending]))
            ended: CallOutcome | None = None
            if len(pending) == 1 and not questions:
                ended = await self._call(turn, number, pending[0])
                outcomes = {ended.call: ended}
            else:
                outcomes = await self._call_all(turn, number, pending)
            if any(each.status == "unknown" for each in outcomes.values()):  # a person has to decide about them now
                if ended is not None:
                    await turn.journal.end_execution(ended)
                turn.past, unsaved = await turn.journal.past(), []
                continue
            results |= {call: _result_of(each) for call, each in outcomes.items()}
            if not questions:
                await self._record_refused(turn, number, calls, decisions)
                drafts = [_observation(turn.run, number, call, results[call.id]) for call in calls]
                await turn.journal.append(drafts, ended=ended)
                return True
            if await turn.journal.ask(number, questions):
                return False
            turn.past, unsaved = await turn.journal.past(), []  # all approvals are already decided

    async def _record_refused(
        self, turn: TurnState, number: int, calls: Sequence[RequestedCall], decisions: Sequence[CallDecision]
    ) -> None:
        """Record the calls of a step that were refused: of unknown tools, with invalid arguments, or by a person."""
        for call, decision in zip(calls, decisions, strict=True):
            if decision.result is None or started_execution(call, step=number, past=turn.past) is not None:
                continue
            if call.name not in turn.tools:
                code = NotFound.code
            else:
                code = Forbidden.code if call.refusal is None else InvalidInput.code
            user = (await turn.view()).user
            await self._services.audit.record_refusal(
                call.name, call.model_arguments, code, user=user, agent=turn.agent.name
            )

    def _decide(self, turn: TurnState, number: int, call: RequestedCall) -> CallDecision:
        offer, listed = turn.tools.get(call.name), turn.agent.approve
        return decide(call, offer and offer.tool, step=number, token=turn.run.token, listed=listed, past=turn.past)

    async def _prepare_call(self, turn: TurnState, number: int, call: RequestedCall) -> PendingCall:
        """Determine how a call is executed, and what the journal stores before it."""
        offer, execution = turn.tools.get(call.name), started_execution(call, step=number, past=turn.past)
        key = key_of(call, run=turn.run.id, step=number, past=turn.past)
        if execution is not None and is_awaited(execution):
            # Continue it as it was started, even if the tool has changed since.
            tool = Tool(call.name, "", {}, mode="event", id=execution.tool_id) if offer is None else offer.tool
            written = StartedCall(
                call.id, call.name, execution.arguments, execution.id, tool.id, execution.correlation_id
            )
            return PendingCall(written, key, tool, None, "event", awaited=True)
        assert offer is not None
        mode = await self._services.executor.mode(offer.tool)
        execution_id = uuid7() if execution is None else execution.id
        worker = correlation_id(key) if mode == "event" else None
        written = StartedCall(call.id, call.name, call.arguments, execution_id, offer.tool.id, worker)
        return PendingCall(written, key, offer.tool, offer.skill, mode, awaited=False)

    async def _call_all(self, turn: TurnState, number: int, calls: Sequence[PendingCall]) -> dict[str, CallOutcome]:
        async def one(call: PendingCall) -> CallOutcome:
            ended = await self._call(turn, number, call)
            await turn.journal.end_execution(ended)
            return ended

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(call)) for call in calls]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None  # the database is unreachable, or another process has the run
        return {call.written.id: task.result() for call, task in zip(calls, tasks, strict=True)}

    async def _call(self, turn: TurnState, number: int, call: PendingCall) -> CallOutcome:
        view, settings, run, written = await turn.view(), self._services.settings, turn.run, call.written
        who = view.user, turn.agent.name, view.session_id
        tool_run = Run(*who, run.conversation, run.id, written.id, call.key)
        if call.mode == "event":
            turn.awaited.add(call.key)
        outcome = await self._services.executor.run(
            call.tool,
            written.arguments,
            tool_run,
            timeout=settings.tool_timeout,
            max_output_bytes=settings.max_output_bytes,
            skill=call.skill,
            mode=call.mode,
            awaited=call.awaited,
        )
        turn.awaited.discard(call.key)
        outcome = outcome.with_output_note(written.execution)
        return CallOutcome(
            number,
            written.id,
            outcome.status,
            {"text": outcome.text, "result": outcome.result},
            outcome.error,
            outcome.latency_ms,
            outcome.whole,
            outcome.content_type,
        )

    async def _handle(self, turn: TurnState) -> UUID:
        """Answer with the agent's handler. A crash can repeat the handler's call, but the answer is appended once."""
        handler, run, view = turn.agent.handler, turn.run, await turn.view()
        assert handler is not None
        incoming = Incoming(turn.question, view.user, view.session_id, run.conversation, run.trigger, run.id)
        reply = await run_app_code(lambda: handler(incoming), timeout=None, name=f"the agent {turn.agent.name}")
        payload = {"role": "assistant"}
        draft = NodeInput(
            content=reply or "", context=by_agent(turn.agent.name), payload=payload, key=f"run:{run.id}:1"
        )
        (node,) = await turn.journal.append([draft])
        return node

    # Ending a run

    async def _finish(
        self,
        run: AgentRun,
        ending: Ending,
        *,
        answer: UUID | None = None,
        error: dict[str, Any] | None = None,
        after: int | None = None,
    ) -> FinishedRun:
        """End a run. `after` is the number of the last delta that the watchers received."""
        finished = await self._services.runs.finish(run, ending, answer=answer, error=error)
        if after is None or finished.more:
            self._services.broadcast.look(run.conversation)
        else:
            n = run.number * PER_RUN + PER_RUN - 1
            kind = "error" if ending == "failed" else "done"
            event = delta_event(0, n, run.id, kind, finished.event_data, datetime.now(UTC))
            self._services.broadcast.deliver_delta(run.conversation, event, n, after)
        return finished

    async def _fail(self, turn: TurnState, error: HoldfastError) -> FinishedRun:
        await self._stop_workers(turn)
        return await self._finish(turn.run, "failed", error=error_data(error, turn.run.id), after=turn.journal.n)

    async def _stop_workers(self, turn: TurnState) -> None:
        """Cancel the turn's calls at workers."""
        for key in turn.awaited:
            await self._services.executor.cancel(key)

    # Streaming

    def _piece(self, turn: TurnState, view: ConversationView, piece: Shown) -> None:
        match piece:
            case TextPiece(text):
                turn.streamed_text += text
                self._stream_piece(turn, view, "token", {"text": text})
            case ThinkingPiece(text):
                self._stream_piece(turn, view, "thinking", {"text": text})
            case _:
                pass

    def _begin_anew(self, turn: TurnState, view: ConversationView) -> None:
        turn.streamed_text = ""
        self._stream_piece(turn, view, "token", {"text": "", "reset": True})

    def _stream_piece(
        self, turn: TurnState, view: ConversationView, kind: Literal["token", "thinking"], data: dict[str, Any]
    ) -> None:
        event, n, after = turn.journal.add_piece(kind, data, revision=view.revision, at=datetime.now(UTC))
        self._services.broadcast.deliver_delta(turn.run.conversation, event, n, after)

    def _journal(self, run: AgentRun) -> Journal:
        broadcast = self._services.broadcast
        return Journal(self._services.database, run, announce=broadcast.wake_readers, on_node=broadcast.deliver_node)


def _current_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    assert task is not None
    return task


def _reply_node(turn: TurnState, number: int, reply: ModelReply, calls: Sequence[RequestedCall]) -> NodeInput:
    payload: dict[str, Any] = {"role": "assistant"}
    if calls:
        payload["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.model_arguments} for call in calls
        ]
    key = f"run:{turn.run.id}:{number}"
    return NodeInput(content=reply.text, context=by_agent(turn.agent.name), payload=payload, key=key)


def _result_of(outcome: CallOutcome) -> CallResult:
    return CallResult(outcome.output["text"], outcome.status == "failed", outcome.output["result"])


def _observation(run: AgentRun, number: int, call: RequestedCall, result: CallResult) -> NodeInput:
    payload: dict[str, Any] = {"role": "tool", "tool_call_id": call.id, "tool_name": call.name}
    if result.failed:
        payload["error"] = True
    return NodeInput(content=result.text, context=BY_TOOL, payload=payload, key=f"run:{run.id}:{number}:{call.id}")


async def _flush(journal: Journal) -> None:
    while True:
        await asyncio.sleep(FLUSH)
        with suppress(HoldfastError):  # only watchers in other processes need them, and the node follows
            await journal.flush()


def _failure(agent: Agent, run: AgentRun, error: BaseException) -> HoldfastError:
    """Return the error that users see: a handler's HoldfastError, or Broken for any other exception."""
    if isinstance(error, HoldfastError):
        return error
    log.warning("the agent %s failed in the run %s: %s%s", agent.name, run.id, reason_of(error), trace_of(error))
    return _broken(error)


def _broken(error: BaseException) -> Broken:
    return Broken("internal error in the run", why=type(error).__name__)
