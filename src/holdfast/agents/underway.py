"""A turn under way: what it is done with, and what is known of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.agents.announcements import Announcements
from holdfast.agents.context import Recalled
from holdfast.agents.definitions import Agent
from holdfast.agents.journal import Journal, Past, Replied
from holdfast.agents.runs import Run, Runs
from holdfast.agents.skill_section import Skilled
from holdfast.agents.view import View, Views
from holdfast.agents.watching import Watching
from holdfast.conversations.nodes import Node
from holdfast.conversations.notes import Notes
from holdfast.core.settings import AgentSettings, LlmSettings
from holdfast.execution.executor import Executor
from holdfast.llm import Caller, Reply
from holdfast.memory import Memories
from holdfast.postgres.database import Database
from holdfast.skills.catalog import Catalogs
from holdfast.skills.finding import Finding
from holdfast.skills.offers import Offer
from holdfast.skills.tool import Tool
from holdfast.skills.tools import Tools


@dataclass(frozen=True, slots=True)
class Services:
    """What turns are done with."""

    database: Database
    announcements: Announcements
    runs: Runs
    watching: Watching
    notes: Notes
    memory: Memories
    caller: Caller
    llm: LlmSettings
    settings: AgentSettings
    tools: Tools
    catalogs: Catalogs
    finding: Finding
    executor: Executor
    builtin: Sequence[Tool]  # of every agent with a memory


@dataclass(slots=True)
class Turn:
    """A run under way, and what is known of it."""

    agent: Agent
    run: Run
    journal: Journal
    views: Views
    tools: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    skills: Skilled | None = None
    past: Past = field(default_factory=Past)
    notes: str = ""
    memories: Sequence[Recalled] = ()
    tokens: int = 0  # that the model took so far, in and out
    cost: float = 0.0
    step: int = 0  # that was asked last
    replied: Replied | None = None  # in it, not yet stored
    said: str = ""  # in it, so far
    awaited: set[str] = field(default_factory=set[str])  # keys of calls that workers have

    async def view(self) -> View:
        """The conversation, with all that belongs to the run."""
        return await self.views.current(self.run.conversation, seq=self.journal.seq)

    async def question(self) -> Node | None:
        """What is to be answered."""
        nodes = (await self.view()).nodes
        return next((node for node in nodes if node.seq == self.run.trigger_seq), None)

    def count(self, reply: Reply) -> None:
        """Count what a reply of the model took."""
        self.tokens += reply.usage.input_tokens + reply.usage.output_tokens
        self.cost += reply.cost
