"""What follows an answer: the turn is stored in memory, and messages that leave the window are summarised.

The run ends only after that, so that the next turn of the conversation finds both. Few turns need a summary.
"""

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from holdfast.agents.budget import CachedCounter
from holdfast.agents.history import history
from holdfast.agents.prompt_builder import PromptBuilder
from holdfast.agents.runs import is_passing
from holdfast.agents.summaries import extract, newest_summary, summary_draft, summary_request, to_summarise
from holdfast.agents.turn_state import TurnServices, TurnState
from holdfast.conversations.contexts import by_user, parse_context
from holdfast.conversations.nodes import Node
from holdfast.core.errors import HoldfastError
from holdfast.llm.user_facts import extract_facts
from holdfast.memory import Memories
from holdfast.memory.drafts import MAX_CONTENT_BYTES, Draft
from holdfast.memory.memory import Trust
from holdfast.memory.owners import Owner, session, user

SUMMARIES = 4  # after one turn, at most
SUMMING = 60.0  # seconds for all of them: the next turn waits for them
SESSION_IMPORTANCE = 0.6
FACT_IMPORTANCE = 0.8

log = logging.getLogger(__name__)


class AfterTurn:
    """Stores memories and summaries after a turn."""

    def __init__(self, services: TurnServices, prompt_builder: PromptBuilder) -> None:
        self._services = services
        self._prompt_builder = prompt_builder

    async def keep(self, turn: TurnState, answer: UUID) -> None:
        """Store memories of a turn, and summarise messages that leave the window.

        An error does not fail the turn. Only a transient error of the summary is raised, so that the run is retried.
        """
        view = await turn.view()
        if turn.agent.memory and turn.questions:
            await remember_turn(
                self._services.memory,
                questions=turn.questions,
                answer=next((node for node in view.nodes if node.id == answer), None),
                session_id=view.session_id,
                person=turn.run.user,
                agent=turn.agent.name,
            )
        try:
            async with asyncio.timeout(SUMMING):
                await self._sum_up(turn)
        except TimeoutError:
            log.warning("the summary was not ready %g seconds after the run %s", SUMMING, turn.run.id)
        except HoldfastError as error:
            if is_passing(error):
                raise
            log.warning("could not summarize after the run %s: %s", turn.run.id, error)

    async def _sum_up(self, turn: TurnState) -> None:
        counter, budget = await self._prompt_builder.counter(turn.agent.model), self._prompt_builder.budget
        always = [turn.agent.instructions, *(tool.spec.to_json() for tool in turn.tools.values())]
        fixed = sum(map(counter.count, always))
        for _ in range(SUMMARIES):
            view = await turn.view()
            former = newest_summary(view.nodes, turn.agent.name)
            shown = history(
                view.nodes,
                agent=turn.agent.name,
                run=str(turn.run.id),
                triggers=turn.run.triggers,
                covered=0 if former is None else former.covers,
            )
            nodes = to_summarise(
                shown.nodes, counter, budget, agent=turn.agent.name, fixed=fixed, waiting=shown.waiting
            )
            if not nodes:
                return
            text = await self._summary(turn, None if former is None else former.text, nodes, counter)
            if not text.strip():
                return
            await turn.journal.append([summary_draft(turn.agent.name, text, nodes)])

    async def _summary(self, turn: TurnState, former: str | None, nodes: Sequence[Node], counter: CachedCounter) -> str:
        caller, budget = self._services.caller, self._prompt_builder.budget
        room = max(200, int(budget.total * budget.summary))
        if caller.is_offline(turn.agent.model):
            return extract(former, nodes, counter, max_tokens=room)
        request = summary_request(former, nodes, counter, room=budget.total - 2 * room, max_tokens=room)
        reply = await self._services.model_calls.ask(
            request,
            user=turn.run.user,
            agent=turn.agent.name,
            model=turn.agent.model,
            input_tokens=sum(counter.count(message.content) for message in request.messages),
        )
        turn.count(reply)
        await turn.journal.count(reply.usage, reply.cost)
        return reply.text


async def remember_turn(
    memory: Memories,
    *,
    questions: Sequence[Node],
    answer: Node | None,
    session_id: str | None,
    person: str | None,
    agent: str,
) -> None:
    """Store what was said for the session, and lasting statements of the session's user for that user.

    Each memory has the key of its node, so that a repeated turn is stored once. A sentence that was said before
    refreshes its memory. An error of memory does not fail the turn.
    """
    try:
        drafts: list[tuple[Owner, Draft | None]] = []
        for question in questions:
            asker = parse_context(question.context)
            trust: Trust = "user" if asker.name == "user" else "agent"
            if session_id is not None:
                here = session(session_id, agent=agent, user=person, conversation=question.root)
                author = person if asker == by_user(person) else asker.value
                drafts.append((here, _draft(question, question.content, session_id, author=author, trust=trust)))
            if person is not None and asker == by_user(person):  # only what the user said
                facts = extract_facts(question.content) or ""
                draft = _draft(question, facts, session_id, author=person, trust=trust, importance=FACT_IMPORTANCE)
                drafts.append((user(person), draft))
        if session_id is not None and answer is not None:
            here = session(session_id, agent=agent, user=person, conversation=answer.root)
            drafts.append((here, _draft(answer, answer.content, session_id, author=agent, trust="agent")))
        await memory.remember_all([(owner, draft) for owner, draft in drafts if draft is not None])
    except HoldfastError as error:
        log.warning("could not store the memories of the conversation %s: %s", questions[0].root, error)


def _draft(
    node: Node,
    text: str,
    conversation: str | None,
    *,
    author: str | None,
    trust: Trust,
    importance: float = SESSION_IMPORTANCE,
) -> Draft | None:
    if not text.strip():
        return None
    data = text.encode(errors="surrogatepass")
    return Draft(
        text if len(data) <= MAX_CONTENT_BYTES else data[:MAX_CONTENT_BYTES].decode(errors="ignore"),
        importance=importance,
        trust=trust,
        source=node.id,
        key=f"node:{node.id}",
        conversation=conversation,
        seq=None if conversation is None else node.seq,
        author=author,
        at=node.created_at,
        once=True,
    )
