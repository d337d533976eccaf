"""Builds the prompt of each step, within the model's context window and the limits of the run.

The inputs of a turn are read when it begins. Later edits, deletions and messages by others change none of its steps.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from holdfast.agents.budget import CachedCounter, PromptBudget
from holdfast.agents.conversation_views import ConversationView
from holdfast.agents.history import origin_of
from holdfast.agents.prompt import (
    Prompt,
    PromptInputs,
    RecalledMemory,
    assemble,
    extend_prompt,
    recalled_excerpts,
    recalled_memories,
    reduce_prompt,
    restore_prompt,
)
from holdfast.agents.toolbox import Toolbox
from holdfast.agents.turn_state import TurnServices, TurnState
from holdfast.conversations.nodes import Node
from holdfast.core.errors import HoldfastError, LimitReached
from holdfast.knowledge.knowledge_reader import KnowledgeReader, readable_owners

MAX_QUERY = 4000  # characters of a message that are used to search memory
EXCERPTS = 5  # of documents, for agents without memory

log = logging.getLogger(__name__)


class PromptBuilder:
    """Builds the prompts of turns."""

    def __init__(self, services: TurnServices) -> None:
        self._services = services
        self._toolbox = Toolbox(services, self.budget.for_skills)
        self._counters: dict[str, CachedCounter] = {}  # by the name of the counter: models share counters

    @property
    def budget(self) -> PromptBudget:
        """The tokens that a request may use."""
        llm = self._services.llm
        return PromptBudget(max(1000, llm.context_tokens - llm.max_output_tokens))

    async def counter(self, model: str | None) -> CachedCounter:
        """Return the token counter of a model, with a cache."""
        counter = await self._services.caller.counter(model)
        known = self._counters.get(counter.name)
        if known is None:
            known = self._counters[counter.name] = CachedCounter(counter)
        return known

    async def prepare(self, turn: TurnState) -> None:
        """Read the inputs of every step: notes, memories recalled for the question, tools and skills."""
        view = await turn.view()
        turn.notes, turn.memories, _ = await asyncio.gather(
            self._notes(turn, view), self._memories(turn, view), self.open(turn)
        )

    async def open(self, turn: TurnState) -> None:
        """Read which tools the agent can call now, and which skills it has loaded."""
        await self._toolbox.open(turn, await self.counter(turn.agent.model))

    async def context(self, turn: TurnState, view: ConversationView) -> Prompt:
        """Return the prompt of the next step: that of the previous step, extended by what the run did since."""
        counter, run = await self.counter(turn.agent.model), str(turn.run.id)
        tools = [offer.spec for offer in turn.tools.values() if offer.skill is None]
        if turn.material is None or turn.prompt is None:
            turn.material = PromptInputs(
                agent=turn.agent.name,
                instructions=turn.agent.instructions,
                nodes=_with(turn.questions, view.nodes),
                triggers=turn.run.triggers,
                now=datetime.now(UTC),
                run=run,
                tools=tools,
                skills=turn.skills,
                notes=turn.notes,
                memories=turn.memories,
            )
            turn.prompt = assemble(turn.material, counter, self.budget)
            if turn.past.steps:
                turn.prompt = restore_prompt(turn.prompt, turn.past.steps[-1].sent) or turn.prompt
        former = turn.prompt
        new = [node for node in view.nodes if node.seq > former.last_seq and _is_of(node, run)]
        known = {node.id for node in turn.material.nodes}
        nodes = [*turn.material.nodes, *(node for node in new if node.id not in known)]
        turn.material = replace(turn.material, nodes=nodes, tools=tools, skills=turn.skills)
        longer = extend_prompt(former, turn.material, new, counter, self.budget)
        turn.prompt = reduce_prompt(former, turn.material, counter, self.budget) if longer is None else longer
        return turn.prompt

    def check_limits(self, turn: TurnState, number: int, context: Prompt) -> None:
        """Raise LimitReached if the run may not take this step."""
        limits, settings = turn.agent.limits, self._services.settings
        steps, tokens = limits.steps or settings.max_steps, limits.tokens or settings.max_tokens
        cost = limits.cost or settings.max_cost
        if number > steps:
            raise LimitReached(f"the agent took {steps} steps without an answer", next="Ask for less at once.")
        if turn.tokens + context.tokens > tokens:
            raise LimitReached(
                f"the run would take more than {tokens} tokens",
                why=f"it has used {turn.tokens}, and the next question has {context.tokens}",
                next="Ask for less at once, or raise agents.max_tokens.",
            )
        if cost and turn.cost >= cost:
            raise LimitReached(f"the run has cost {turn.cost:g}, and may cost {cost:g}", next="Ask for less at once.")

    async def _notes(self, turn: TurnState, view: ConversationView) -> str:
        if view.user is None:
            return ""
        return (await self._services.notes.read(user=view.user, agent=turn.agent.name)).notes

    async def _memories(self, turn: TurnState, view: ConversationView) -> Sequence[RecalledMemory]:
        question, agent = turn.question[:MAX_QUERY], turn.agent
        if not (self._services.settings.recall and question.strip()):
            return ()
        try:
            if agent.memory:
                return recalled_memories(
                    await self._services.memory.context(
                        question,
                        session=view.session_id,
                        conversation=view.id,
                        user=view.user,
                        agent=agent.name,
                        collections=agent.collections,
                    )
                )
            if agent.knowledge:
                owners = readable_owners(user_name=view.user, agent_name=agent.name)
                reader = KnowledgeReader(self._services.knowledge, owners, agent.collections)
                return recalled_excerpts(await reader.search(question, limit=EXCERPTS))
        except HoldfastError as error:
            log.warning("could not recall memories for the run %s: %s", turn.run.id, error)
        return ()


def _is_of(node: Node, run: str) -> bool:
    origin = origin_of(node)
    return origin is not None and origin.run == run and node.context.startswith("text:")


def _with(questions: Sequence[Node], nodes: Sequence[Node]) -> Sequence[Node]:
    """Add the questions to the nodes of a view. They can be older than all nodes of the view."""
    known = {node.id for node in nodes}
    missing = [node for node in questions if node.id not in known]
    return [*missing, *nodes]
