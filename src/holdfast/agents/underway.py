"""The state of a turn in progress, and the services that turns use."""

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
    """The services that turns use."""

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
    builtin: Sequence[Tool]  # of every agent with memory


@dataclass(slots=True)
class Turn:
    """A run in progress, and its state."""

    agent: Agent
    run: Run
    journal: Journal
    views: Views
    tools: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    skills: Skilled | None = None
    past: Past = field(default_factory=Past)
    notes: str = ""
    memories: Sequence[Recalled] = ()
    questions: Sequence[Node] = ()  # the messages to answer, as they were when the turn began
    material: Material | None = None  # the inputs of the prompt, read when the turn began
    prompt: Assembled | None = None  # of the previous step
    tokens: int = 0  # input and output tokens so far
    cost: float = 0.0
    step: int = 0  # of the last model call
    replied: Replied | None = None  # its reply, not yet stored
    said: str = ""  # its streamed text so far
    awaited: set[str] = field(default_factory=set[str])  # keys of calls that workers have

    async def view(self) -> View:
        """Return the view of the conversation, with all nodes of the run."""
        run = self.run
        return await self.views.current(run.conversation, seq=self.journal.seq, revision=run.claimed_revision or 0)

    @property
    def question(self) -> str:
        """The text of the messages to answer."""
        return "\n\n".join(node.content for node in self.questions)

    def count(self, reply: Reply) -> None:
        """Add the tokens and the cost of a model's reply."""
        self.tokens += reply.usage.input_tokens + reply.usage.output_tokens
        self.cost += reply.cost
