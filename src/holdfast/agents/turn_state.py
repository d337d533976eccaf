"""The state of a turn in progress, and the services that turns use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.agents.broadcast import Broadcast
from holdfast.agents.conversation_views import ConversationView, ConversationViews
from holdfast.agents.definitions import Agent
from holdfast.agents.journal import Journal, RunHistory, StepReply
from holdfast.agents.prompt import Prompt, PromptInputs, RecalledMemory
from holdfast.agents.prompt_sections import AgentSkills
from holdfast.agents.runs import AgentRun, Runs
from holdfast.conversations.nodes import Node
from holdfast.conversations.notes import Notes
from holdfast.core.settings import AgentSettings, LlmSettings
from holdfast.execution.executor import Executor
from holdfast.execution.policies.audit import AuditPolicy
from holdfast.knowledge import Knowledge
from holdfast.knowledge.research import Research
from holdfast.llm import Caller, ModelReply
from holdfast.llm.model_calls import ModelCalls
from holdfast.memory import Memories
from holdfast.postgres.database import Database
from holdfast.skills.catalog import Catalogs
from holdfast.skills.offers import Offer
from holdfast.skills.rules.access_rules import AccessRules
from holdfast.skills.search import RegistrySearch
from holdfast.skills.tool import Tool
from holdfast.skills.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnServices:
    """The services that turns use."""

    database: Database
    runs: Runs
    broadcast: Broadcast
    notes: Notes
    memory: Memories
    knowledge: Knowledge
    research: Research
    caller: Caller
    model_calls: ModelCalls
    llm: LlmSettings
    settings: AgentSettings
    tools: Tools
    catalogs: Catalogs
    finding: RegistrySearch
    rules: AccessRules
    executor: Executor
    audit: AuditPolicy
    granted: Sequence[Tool]  # of the agents that name them


@dataclass(slots=True)
class TurnState:
    """A run in progress, and its state."""

    agent: Agent
    run: AgentRun
    journal: Journal
    views: ConversationViews
    tools: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    skills: AgentSkills | None = None
    past: RunHistory = field(default_factory=RunHistory)
    notes: str = ""
    memories: Sequence[RecalledMemory] = ()
    questions: Sequence[Node] = ()  # the messages to answer, as they were when the turn began
    material: PromptInputs | None = None  # the inputs of the prompt, read when the turn began
    prompt: Prompt | None = None  # of the previous step
    tokens: int = 0  # input and output tokens so far
    cost: float = 0.0
    step: int = 0  # of the last model call
    replied: StepReply | None = None  # its reply, not yet stored
    streamed_text: str = ""  # its streamed text so far
    awaited: set[str] = field(default_factory=set[str])  # keys of calls that workers have

    async def view(self) -> ConversationView:
        """Return the view of the conversation, with all nodes of the run."""
        run = self.run
        return await self.views.current(run.conversation, seq=self.journal.seq, revision=run.claimed_revision or 0)

    @property
    def question(self) -> str:
        """The text of the messages to answer."""
        return "\n\n".join(node.content for node in self.questions)

    def count(self, reply: ModelReply) -> None:
        """Add the tokens and the cost of a model's reply."""
        self.tokens += reply.usage.input_tokens + reply.usage.output_tokens
        self.cost += reply.cost
