"""A turn under way: what it is done with, and what is known of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.agents.announcements import Announcements
from holdfast.agents.context import Assembled, Material, Recalled
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
    questions: Sequence[Node] = ()  # what is to be answered, as it was when the turn began
    material: Material | None = None  # what the prompt is made of, as it was then
    prompt: Assembled | None = None  # of the step before
    tokens: int = 0  # that the model took so far, in and out
    cost: float = 0.0
    step: int = 0  # that was asked last
    replied: Replied | None = None  # in it, not yet stored
    said: str = ""  # in it, so far
    awaited: set[str] = field(default_factory=set[str])  # keys of calls that workers have

    async def view(self) -> View:
        """The conversation, with all that belongs to the run."""
        run = self.run
        return await self.views.current(run.conversation, seq=self.journal.seq, revision=run.claimed_revision or 0)

    @property
    def question(self) -> str:
        """What is to be answered."""
        return "\n\n".join(node.content for node in self.questions)

    def count(self, reply: Reply) -> None:
        """Count what a reply of the model took."""
        self.tokens += reply.usage.input_tokens + reply.usage.output_tokens
        self.cost += reply.cost
