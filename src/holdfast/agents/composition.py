"""Opens the part of agents that all tenants share, and composes the part of each tenant."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from holdfast.access.identities import Identities
from holdfast.agents.agents import Agents
from holdfast.agents.broadcast import Broadcast, Watchers
from holdfast.agents.code_tools import code_tools
from holdfast.agents.definitions import Agent, Definitions
from holdfast.agents.operator_limits import OperatorLimits
from holdfast.agents.runner import AgentRunner
from holdfast.agents.runs import RunSweeper
from holdfast.agents.serving import Serving
from holdfast.agents.turn_loop import TurnLoop
from holdfast.agents.turn_state import TurnServices
from holdfast.bus.composition import SharedBus, TenantBus
from holdfast.bus.log import Log
from holdfast.conversations.composition import TenantConversations
from holdfast.conversations.notes import Notes
from holdfast.core.config import Config
from holdfast.core.ids import TenantId
from holdfast.core.settings import AgentSettings, LlmSettings
from holdfast.core.shares import Shares, shared_by_tenant
from holdfast.execution.executor import Executor
from holdfast.execution.policies.audit import AuditPolicy
from holdfast.execution.scripts import Scripts
from holdfast.knowledge import Knowledge
from holdfast.knowledge.research import Research
from holdfast.llm import Caller
from holdfast.llm.model_calls import ModelCalls
from holdfast.memory import Memories
from holdfast.postgres.database import Database, Postgres
from holdfast.quotas import Quotas
from holdfast.skills.composition import TenantSkills
from holdfast.skills.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAgents:
    """The models that agents call, the limits of runs and messages, and the watchers of all tenants."""

    settings: AgentSettings
    llm: LlmSettings
    caller: Caller
    bus: SharedBus
    turns: Shares
    messages: Shares
    audiences: WeakValueDictionary[TenantId, Watchers]

    def of(
        self,
        database: Database,
        *,
        identities: Identities,
        bus: TenantBus,
        conversations: TenantConversations,
        memory: Memories,
        knowledge: Knowledge,
        research: Research,
        skills: TenantSkills,
        executor: Executor,
        audit: AuditPolicy,
        scripts: Scripts,
        quotas: Quotas,
    ) -> "TenantAgents":
        """Return the part of a tenant."""
        ceilings = OperatorLimits(self.settings, self.llm)
        definitions = Definitions(database, identities=identities, log=bus.log, ceilings=ceilings)
        broadcast = Broadcast(
            database,
            bus.log,
            background=self.bus.background,
            audiences=self.audiences,
            max_bytes=self.settings.watch_bytes,
        )
        agents = Agents(
            database,
            bus.log,
            notifications=self.bus.notifications,
            conversations=conversations.conversations,
            definitions=definitions,
            broadcast=broadcast,
            settings=self.settings,
            places=self.messages,
        )
        return TenantAgents(
            shared=self,
            database=database,
            log=bus.log,
            definitions=definitions,
            agents=agents,
            broadcast=broadcast,
            notes=conversations.notes,
            memory=memory,
            knowledge=knowledge,
            research=research,
            skills=skills,
            executor=executor,
            audit=audit,
            scripts=scripts,
            quotas=quotas,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantAgents:
    """The agents of a tenant: their definitions, messages to them, and what their runs need."""

    shared: SharedAgents
    database: Database
    log: Log
    definitions: Definitions
    agents: Agents
    broadcast: Broadcast
    notes: Notes
    memory: Memories
    knowledge: Knowledge
    research: Research
    skills: TenantSkills
    executor: Executor
    audit: AuditPolicy
    scripts: Scripts
    quotas: Quotas

    def serving(
        self,
        declared: Iterable[Agent],
        *,
        tools: Mapping[str, Tool],
        declare: Callable[[], Awaitable[None]],
        grace: float,
    ) -> Serving:
        """Return an object that, inside `async with`, serves declared agents and those that are stored as rows.

        `declare` stores what the app declares besides its agents.
        """
        shared = self.shared
        turns = TurnLoop(
            TurnServices(
                database=self.database,
                runs=self.agents.runs,
                broadcast=self.broadcast,
                notes=self.notes,
                memory=self.memory,
                knowledge=self.knowledge,
                research=self.research,
                caller=shared.caller,
                model_calls=ModelCalls(shared.caller, self.quotas),
                llm=shared.llm,
                settings=shared.settings,
                tools=self.skills.tools,
                catalogs=self.skills.catalogs,
                finding=self.skills.search,
                rules=self.skills.rules,
                executor=self.executor,
                audit=self.audit,
                granted=code_tools(self.scripts, timeout=shared.settings.tool_timeout),
            )
        )
        runner = AgentRunner(
            self.database,
            self.agents.runs,
            shared.bus.postgres.listen,
            executor=turns,
            lease=shared.settings.lease,
            places=shared.turns,
            grace=grace,
        )
        return Serving(self.agents, self.log, runner, turns=turns, declared=declared, tools=tools, declare=declare)


@asynccontextmanager
async def open_agents(
    *, config: Config, postgres: Postgres, bus: SharedBus, caller: Caller
) -> AsyncGenerator[SharedAgents]:
    """Open it, and start the sweeper of runs."""
    limits, concurrency, pool_size = config.limits, config.agents.concurrency, config.database.pool_size
    async with RunSweeper(postgres, config.agents, config.bus):
        yield SharedAgents(
            settings=config.agents,
            llm=config.llm,
            caller=caller,
            bus=bus,
            turns=shared_by_tenant(limits, "runs of agents", concurrency, setting="agents.concurrency"),
            # With more, messages would only wait for each other at the database, at each of their steps.
            messages=shared_by_tenant(
                limits, "messages that are being stored", pool_size, setting="database.pool_size"
            ),
            audiences=WeakValueDictionary(),
        )
