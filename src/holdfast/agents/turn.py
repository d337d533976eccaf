"""The turn: thought, action, observation, until there is an answer.

Each step asks the model once, stores the raw reply, and only then acts on it. Whatever process takes a run up goes on
where the rows say it is: a reply that is stored is not paid for again, a tool that ran is not run again, and what was
said is said once.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from holdfast.agents.acting import RUN, Told, Wanted, decide, wanted
from holdfast.agents.budget import Budget, KnownCounts
from holdfast.agents.calls import execute
from holdfast.agents.context import Assembled, Material, Recalled, assemble, recalled
from holdfast.agents.definitions import Agent, Incoming
from holdfast.agents.events import PER_RUN, delta_event
from holdfast.agents.journal import Journal, Past, Question
from holdfast.agents.remembering import remember_turn
from holdfast.agents.runs import Ending, Finished, Run, Runs
from holdfast.agents.summaries import extract, newest_summary, summary_draft, summary_request, to_summarise
from holdfast.agents.tools import Run as ToolRun
from holdfast.agents.tools import Tool
from holdfast.agents.view import View, Views
from holdfast.agents.watching import Watching
from holdfast.bus.log import Log
from holdfast.conversations.contexts import BY_TOOL, by_agent
from holdfast.conversations.nodes import Draft, Node
from holdfast.conversations.notes import Notes
from holdfast.core.errors import Broken, Busy, DatabaseAway, HoldfastError, LimitReached, Overloaded
from holdfast.core.settings import AgentSettings, LlmSettings
from holdfast.llm import Caller, Reply, Request, Shown, Text, Thinking
from holdfast.memory import Memories
from holdfast.postgres.database import Database

ANNOUNCED = 0.02  # seconds after which others hear of what was said
FLUSH = 0.1  # seconds between two writes of what is streamed
ASKED = 4000  # characters of a message that memory is asked with
SUMMARIES = 4  # made after one turn, at most
OFFLINE = "offline"  # the model that answers without one

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Services:
    """What turns are done with."""

    database: Database
    log: Log
    runs: Runs
    watching: Watching
    notes: Notes
    memory: Memories
    caller: Caller
    llm: LlmSettings
    settings: AgentSettings
    builtin: Sequence[Tool]


@dataclass(slots=True)
class Turn:
    """A run under way, and what is known of it."""

    agent: Agent
    run: Run
    journal: Journal
    tools: Mapping[str, Tool]
    past: Past
    notes: str = ""
    memories: Sequence[Recalled] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    step: int = 0  # that was asked last
    said: str = ""  # in it, so far


class Turns:
    """Does runs of the agents of one tenant."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._views: dict[str, Views] = {}
        self._counters: dict[str | None, KnownCounts] = {}
        self._unsaid: dict[UUID, tuple[int, str]] = {}  # what runs had streamed when they were stopped, in which step
        self._due: set[str] = set()  # topics with news
        services.watching.listeners.append(self._told)

    def close(self) -> None:
        """Hear no more of what this process writes."""
        self._services.watching.listeners.remove(self._told)

    def views(self, agent: str) -> Views:
        """What an agent knows of its conversations."""
        return self._views.setdefault(agent, Views(self._services.database))

    async def do(self, agent: Agent, run: Run) -> Finished | None:
        """Do a run until it ends, or until it has to wait for somebody (None)."""
        journal = self._journal(run)
        turn = Turn(agent, run, journal, self._tools(agent), Past((), (), ()))
        turn.input_tokens, turn.output_tokens, turn.cost = run.input_tokens, run.output_tokens, run.cost
        limit = agent.limits.seconds or self._services.settings.max_seconds
        clock = asyncio.timeout(limit)
        async with self._services.watching.running_here(run.conversation, lambda: journal.pieces):
            try:
                if run.claims > 1:
                    self.views(agent.name).forget(run.conversation)
                    turn.past = await journal.past()
                async with clock:
                    answer = await (self._handle(turn) if agent.kind == "system" else self._advance(turn))
                if answer is None:
                    self._services.watching.look(run.conversation)
                    return None
                await self._after(turn, answer)
                return await self._finish(turn.run, "done", answer=answer, after=journal.n)
            except asyncio.CancelledError:
                self._unsaid[run.id] = turn.step, turn.said
                raise
            except (Busy, DatabaseAway, Overloaded):
                raise
            except TimeoutError as error:
                reached = LimitReached(
                    f"the run took longer than {limit:g} seconds", next="Ask for less, or raise agents.max_seconds."
                )
                return await self._fail(run, reached if clock.expired() else _broken(error), after=journal.n)
            except HoldfastError as error:
                return await self._fail(run, error, after=journal.n)
            except Exception as error:
                log.exception("the run %s broke", run.id)
                return await self._fail(run, _broken(error), after=journal.n)

    async def stopped(self, agent: Agent, run: Run) -> Finished:
        """End a run that somebody stopped; what it had said so far stays in the conversation."""
        step, said = self._unsaid.pop(run.id, (0, ""))
        answer: UUID | None = None
        if said.strip():
            journal = self._journal(run)
            payload = {"role": "assistant", "stopped": True}
            # By the step's key: where its node was stored as this was stopped, it is not said again.
            draft = Draft(content=said, context=by_agent(agent.name), payload=payload, key=f"run:{run.id}:{step}")
            (answer,) = await journal.append([draft])
        return await self._finish(run, "cancelled", answer=answer)

    # The loop

    async def _advance(self, turn: Turn) -> UUID | None:
        """Go from step to step; the node of the answer, or None where the run has to wait."""
        steps = turn.past.steps
        last = steps[-1] if steps else None
        number = last.number if last else 1
        reply = last.reply if last else None
        await self._prepare(turn)
        while True:
            if reply is None:
                reply = await self._ask(turn, number)
            calls = wanted(reply, turn.tools, step=number)
            (node,) = await turn.journal.append([self._spoken(turn, number, reply, calls)])
            turn.said = ""
            if not calls:
                return node
            results = await self._act(turn, number, calls)
            if results is None:
                return None
            await turn.journal.append(
                [_observed(turn.run, number, call, told) for call, told in zip(calls, results, strict=True)]
            )
            reply, number = None, number + 1

    async def _prepare(self, turn: Turn) -> None:
        """Read what belongs to every step: notes, and what is remembered of the question."""
        services = self._services
        view = await self._view(turn)
        person = view.user
        if person is not None:
            turn.notes = (await services.notes.read(user=person, agent=turn.agent.name)).notes
        question = next((node.content for node in view.nodes if node.seq == turn.run.trigger_seq), "")[:ASKED]
        if not (turn.agent.memory and services.settings.recall and question.strip()):
            return
        try:
            hits = await services.memory.context(question, session=view.session_id, user=person, agent=turn.agent.name)
        except HoldfastError as error:
            log.warning("nothing could be recalled for the run %s: %s", turn.run.id, error)
            return
        turn.memories = recalled(hits)

    async def _ask(self, turn: Turn, number: int) -> Reply:
        """Ask the model, hand on what it says as it says it, and keep its reply."""
        view = await self._view(turn)
        context = self._context(turn, view)
        self._check_limits(turn, number, context)
        specs = [tool.spec for tool in turn.tools.values()]
        request = Request(messages=context.messages, tools=specs, max_tokens=self._services.llm.max_output_tokens)
        began, sent, seen = datetime.now(UTC), context.shown(), view.seq
        turn.said = ""
        if turn.run.claims > 1 and not turn.step:
            self._begin_anew(turn, view)  # whoever had the run may have begun to answer
        turn.step = number
        flushing = asyncio.create_task(_flush(turn.journal))
        try:
            reply = await self._services.caller.ask(
                request,
                on_piece=lambda piece: self._piece(turn, view, piece),
                on_restart=lambda: self._begin_anew(turn, view),
                model=turn.agent.model,
            )
        except HoldfastError:
            await turn.journal.keep_reply(number, sent, None, seen=seen, began=began)
            raise
        finally:
            flushing.cancel()
            await asyncio.wait([flushing])
        await turn.journal.keep_reply(number, sent, reply, seen=seen, began=began)
        turn.input_tokens += reply.usage.input_tokens
        turn.output_tokens += reply.usage.output_tokens
        turn.cost += reply.cost
        return reply

    async def _act(self, turn: Turn, number: int, calls: Sequence[Wanted]) -> list[Told] | None:
        """Make the calls of a step that may be made; what the model reads of each, or None where a person is asked."""
        while True:
            decisions = [
                decide(
                    call,
                    turn.tools.get(call.name),
                    step=number,
                    token=turn.run.token,
                    listed=turn.agent.approve,
                    executions=turn.past.executions,
                    asked=turn.past.asked,
                )
                for call in calls
            ]
            told = {call.id: made.told for call, made in zip(calls, decisions, strict=True) if made.told is not None}
            runnable = [call for call, made in zip(calls, decisions, strict=True) if made == RUN]
            told |= await self._execute(turn, number, runnable)
            asking: list[Question] = [
                (call.id, call.name, call.arguments, made.ask)
                for call, made in zip(calls, decisions, strict=True)
                if made.ask is not None
            ]
            if not asking:
                return [told[call.id] for call in calls]
            if await turn.journal.ask(number, asking):
                return None
            turn.past = await turn.journal.past()  # somebody has decided already

    async def _execute(self, turn: Turn, number: int, calls: Sequence[Wanted]) -> dict[str, Told]:
        if not calls:
            return {}
        view = await self._view(turn)
        ids = await turn.journal.begin_execution(number, [(call.id, call.name, call.arguments) for call in calls])

        async def one(call: Wanted, id: UUID) -> Told:
            settings = self._services.settings
            run = ToolRun(
                view.user,
                turn.agent.name,
                view.session_id,
                turn.run.conversation,
                turn.run.id,
                call.id,
                f"{turn.run.id}:{number}:{call.id}",
            )
            outcome = await execute(
                turn.tools[call.name],
                call.arguments,
                run,
                timeout=settings.tool_timeout,
                max_output_bytes=settings.max_output_bytes,
            )
            output = {"text": outcome.text, "result": outcome.result}
            await turn.journal.end_execution(
                id, outcome.status, output=output, error=outcome.error, latency_ms=outcome.latency_ms
            )
            return Told(outcome.text, outcome.status == "failed", outcome.result)

        if len(calls) == 1:
            return {calls[0].id: await one(calls[0], ids[0])}
        try:
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(one(call, id)) for call, id in zip(calls, ids, strict=True)]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None  # the database was away, or the run is another's by now
        return {call.id: task.result() for call, task in zip(calls, running, strict=True)}

    async def _handle(self, turn: Turn) -> UUID:
        """Have a function answer: it may be called again after a crash, what it answers is said once."""
        assert turn.agent.handler is not None
        view = await self._view(turn)
        asked = next((node for node in view.nodes if node.seq == turn.run.trigger_seq), None)
        text = "" if asked is None else asked.content
        run = turn.run
        reply = await turn.agent.handler(
            Incoming(text, view.user, view.session_id, run.conversation, run.trigger, run.id)
        )
        payload = {"role": "assistant"}
        draft = Draft(content=reply or "", context=by_agent(turn.agent.name), payload=payload, key=f"run:{run.id}:1")
        (node,) = await turn.journal.append([draft])
        return node

    # Before and after

    async def _after(self, turn: Turn, answer: UUID) -> None:
        """What an answer is followed by: what was said is remembered, and what leaves the window is summed up."""
        if turn.agent.kind != "llm":
            return
        view = await self._view(turn)
        question = next((node for node in view.nodes if node.seq == turn.run.trigger_seq), None)
        said = next((node for node in view.nodes if node.id == answer), None)
        if turn.agent.memory and question is not None:
            await remember_turn(
                self._services.memory,
                question=question,
                answer=said,
                session_id=view.session_id,
                person=view.user,
                agent=turn.agent.name,
            )
        try:
            await self._sum_up(turn)
        except (Busy, DatabaseAway, Overloaded):
            raise
        except HoldfastError as error:
            log.warning("no summary could be made after the run %s: %s", turn.run.id, error)

    async def _sum_up(self, turn: Turn) -> None:
        counter, budget = self._counter(turn.agent.model), self._budget()
        for _ in range(SUMMARIES):
            view = await self._view(turn)
            nodes = to_summarise(view.nodes, counter, budget, agent=turn.agent.name, fixed=self._fixed(turn, counter))
            if not nodes:
                return
            former = newest_summary(view.nodes, turn.agent.name)
            before = None if former is None else former.text
            room = max(200, int(budget.total * budget.summary))
            caller = self._services.caller
            if (turn.agent.model or caller.model_name) == OFFLINE:
                text = extract(before, nodes, counter, max_tokens=room)
            else:
                request = summary_request(before, nodes, counter, room=budget.total - 2 * room, max_tokens=room)
                text = (await caller.ask(request, model=turn.agent.model)).text
            if not text.strip():
                return
            await turn.journal.append([summary_draft(turn.agent.name, text, nodes)])

    async def _finish(
        self,
        run: Run,
        ending: Ending,
        *,
        answer: UUID | None = None,
        error: dict[str, Any] | None = None,
        after: int | None = None,
    ) -> Finished:
        """End a run; `after`: the number of what those who watch were told last."""
        finished = await self._services.runs.finish(run, ending, answer=answer, error=error)
        if after is not None:
            n = run.number * PER_RUN + PER_RUN - 1
            kind = "error" if ending == "failed" else "done"
            event = delta_event(0, n, run.id, kind, finished.told, datetime.now(UTC))
            self._services.watching.beside(run.conversation, event, n, after)
        if after is None or finished.more:
            self._services.watching.look(run.conversation)
        return finished

    async def _fail(self, run: Run, error: HoldfastError, *, after: int) -> Finished:
        told = {"code": error.code, "message": str(error), "what": error.what, "why": error.why, "next": error.next}
        return await self._finish(run, "failed", error=told, after=after)

    # What the model is shown

    def _context(self, turn: Turn, view: View) -> Assembled:
        material = Material(
            agent=turn.agent.name,
            instructions=turn.agent.instructions,
            nodes=view.nodes,
            trigger=turn.run.trigger_seq,
            now=datetime.now(UTC),
            tools=[tool.spec for tool in turn.tools.values()],
            notes=turn.notes,
            memories=turn.memories,
            conversation=view.session_id,
        )
        return assemble(material, self._counter(turn.agent.model), self._budget())

    def _budget(self) -> Budget:
        llm = self._services.llm
        return Budget(max(1000, llm.context_tokens - llm.max_output_tokens))

    def _fixed(self, turn: Turn, counter: KnownCounts) -> int:
        told = [turn.agent.instructions, *(tool.spec.told() for tool in turn.tools.values())]
        return sum(map(counter.count, told))

    def _counter(self, model: str | None) -> KnownCounts:
        known = self._counters.get(model)
        if known is None:
            known = self._counters[model] = KnownCounts(self._services.caller.counter(model))
        return known

    def _tools(self, agent: Agent) -> Mapping[str, Tool]:
        if agent.kind != "llm":
            return {}
        builtin = self._services.builtin if agent.memory else ()
        return {tool.name: tool for tool in (*builtin, *agent.tools)}

    def _check_limits(self, turn: Turn, number: int, context: Assembled) -> None:
        limits, settings = turn.agent.limits, self._services.settings
        steps, tokens = limits.steps or settings.max_steps, limits.tokens or settings.max_tokens
        cost = limits.cost or settings.max_cost
        used = turn.input_tokens + turn.output_tokens
        if number > steps:
            raise LimitReached(f"the agent took {steps} steps without an answer", next="Ask for less at once.")
        if used + context.tokens > tokens:
            raise LimitReached(
                f"the run would take more than {tokens} tokens",
                why=f"it has used {used}, and the next question has {context.tokens}",
                next="Ask for less at once, or raise agents.max_tokens.",
            )
        if cost and turn.cost >= cost:
            raise LimitReached(f"the run has cost {turn.cost:g}, and may cost {cost:g}", next="Ask for less at once.")

    # What is said

    def _spoken(self, turn: Turn, number: int, reply: Reply, calls: Sequence[Wanted]) -> Draft:
        payload: dict[str, Any] = {"role": "assistant"}
        if calls:
            payload["tool_calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
        key = f"run:{turn.run.id}:{number}"
        return Draft(content=reply.text, context=by_agent(turn.agent.name), payload=payload, key=key)

    def _piece(self, turn: Turn, view: View, piece: Shown) -> None:
        match piece:
            case Text(text):
                turn.said += text
                self._tell(turn, view, "token", {"text": text})
            case Thinking(text):
                self._tell(turn, view, "thinking", {"text": text})
            case _:
                pass

    def _begin_anew(self, turn: Turn, view: View) -> None:
        turn.said = ""
        self._tell(turn, view, "token", {"text": "", "reset": True})

    def _tell(self, turn: Turn, view: View, kind: Literal["token", "thinking"], data: dict[str, Any]) -> None:
        event, n, after = turn.journal.tell(kind, data, revision=view.revision, at=datetime.now(UTC))
        self._services.watching.beside(turn.run.conversation, event, n, after)

    def _told(self, node: Node) -> None:
        """A node that this process has appended."""
        for views in self._views.values():
            views.add(node)

    def _journal(self, run: Run) -> Journal:
        services = self._services
        return Journal(services.database, run, announce=self._announce, on_node=services.watching.node)

    def _announce(self, topic: str) -> None:
        """Wake those who read a topic, soon: a turn has several things to say, and here they are known already."""
        if not self._due:
            asyncio.get_running_loop().call_later(ANNOUNCED, self._announce_due)
        self._due.add(topic)

    def _announce_due(self) -> None:
        due, self._due = self._due, set()
        telling = asyncio.ensure_future(self._services.log.announce(*due))
        telling.add_done_callback(lambda told: told.cancelled() or told.exception())  # a hint, that nobody waits for

    async def _view(self, turn: Turn) -> View:
        return await self.views(turn.agent.name).current(turn.run.conversation, seq=turn.run.trigger_seq)


def _observed(run: Run, number: int, call: Wanted, told: Told) -> Draft:
    payload: dict[str, Any] = {"role": "tool", "tool_call_id": call.id, "tool_name": call.name}
    if told.failed:
        payload["error"] = True
    return Draft(content=told.text, context=BY_TOOL, payload=payload, key=f"run:{run.id}:{number}:{call.id}")


async def _flush(journal: Journal) -> None:
    while True:
        await asyncio.sleep(FLUSH)
        with suppress(HoldfastError):  # they are for those who watch from elsewhere, and the node follows
            await journal.flush()


def _broken(error: BaseException) -> Broken:
    return Broken("the run broke", why=f"{type(error).__name__}", next="The log of the server says where.")
