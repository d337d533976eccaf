"""The composition root: opens the parts that the settings ask for, wires the services, and closes in reverse order."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeVar

import msgspec

from holdfast.access.composition import SharedAccess, open_access
from holdfast.access.identities import Identities
from holdfast.agents.composition import SharedAgents, open_agents
from holdfast.agents.serving import Serving
from holdfast.app import App
from holdfast.audit.composition import SharedAudit, open_audit
from holdfast.audit.retention import tend_audit
from holdfast.bus.composition import SharedBus, open_bus
from holdfast.bus.gauges import Gauges
from holdfast.bus.retention import tend
from holdfast.bus.workers import Worker
from holdfast.conversations.composition import conversations_of
from holdfast.core.config import Config, load_config
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.embeddings import Embeddings
from holdfast.execution.composition import SharedExecution, open_execution
from holdfast.execution.issuer_connections import open_fetch
from holdfast.execution.policies.access import AccessPolicy
from holdfast.execution.policies.audit import AuditPolicy
from holdfast.execution.policies.limits import LimitPolicy
from holdfast.execution.policies.policy import GovernedCall, Policy
from holdfast.execution.served_tools import ServedTools
from holdfast.execution.webhooks import open_webhooks
from holdfast.knowledge.composition import SharedKnowledge, open_knowledge
from holdfast.knowledge.research import Research
from holdfast.knowledge.research.researcher import Researcher
from holdfast.llm import Caller
from holdfast.llm.model_calls import ModelCalls
from holdfast.memory.composition import SharedMemory, open_memory
from holdfast.memory.graph.model_reader import ModelReader
from holdfast.memory.owners import Owners
from holdfast.postgres.database import Database, Postgres, Transaction, open_owner
from holdfast.postgres.location import DatabaseLocation, Progress, check_login, connect, open_location
from holdfast.postgres.migrate import migrate
from holdfast.postgres.sql import statements
from holdfast.postgres.tenancy import ensure_login
from holdfast.postgres.version import check_server
from holdfast.quotas import SharedQuotas, open_quotas
from holdfast.skills.composition import SharedSkills, open_skills
from holdfast.skills.sources.reloads import FileWatch, SourceReloads

Result = TypeVar("Result")
PartState = Literal["ok", "reduced", "down"]

REMEMBERED = 1000  # tenants whose engines are cached
CALL_MARGIN = 60.0  # seconds beyond `llm.timeout` after which a model call that has not ended has died

sql = statements("holdfast.postgres.sql")


class EnginePart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of the engine and its state. `reduced` means degraded."""

    name: str
    state: PartState
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the engines of all tenants share."""

    config: Config
    place: DatabaseLocation
    postgres: Postgres
    access: SharedAccess
    quotas: SharedQuotas
    audit: SharedAudit
    bus: SharedBus
    embeddings: Embeddings
    memory: SharedMemory
    knowledge: SharedKnowledge
    researcher: Researcher
    skills: SharedSkills
    execution: SharedExecution
    caller: Caller
    agents: SharedAgents
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    engines: "OrderedDict[str | TenantId, Engine]" = field(default_factory=OrderedDict)  # pyright: ignore[reportUnknownVariableType]


class Engine:
    """The services of one tenant. `tenant(name)` returns those of another tenant."""

    def __init__(self, shared: Shared, tenant: str | TenantId) -> None:  # noqa: PLR0915 - one line per service
        self._shared = shared
        self.config = shared.config
        self.place = shared.place
        self.postgres = shared.postgres
        self.secret = shared.access.secret
        self.tenants = shared.access.tenants
        self.keys = shared.access.keys
        self.tokens = shared.access.tokens
        self.loop = shared.loop  # everything here runs on this event loop
        self.background = shared.bus.background
        self.embeddings = shared.embeddings
        self.memory_gauges = shared.memory.gauges
        self.caller = shared.caller

        self.database: Database = self.postgres.tenant(lambda: self.tenants.id_of(tenant))
        self.identities = Identities(self.database)
        self.quotas = shared.quotas.of(self.database)
        self.shared_quotas = shared.quotas
        self.audit = shared.audit.of(self.database)
        self.audit_gauges = shared.audit.gauges

        bus = shared.bus.of(self.database)
        self.log = bus.log
        self.dead_letters = bus.dead_letters
        self.commands = bus.commands

        conversations = conversations_of(
            self.database,
            identities=self.identities,
            log=bus.log,
            listen=self.postgres.listen,
            notifications=shared.bus.notifications,
        )
        self.conversations = conversations.conversations
        self.snapshots = conversations.snapshots
        self.state = conversations.state
        self.turns = conversations.turns
        self.sessions = conversations.sessions
        self.notes = conversations.notes

        memory = shared.memory.of(self.database, identities=self.identities)
        self.memory = memory.memories
        self.memory_transfer = memory.transfer
        self.knowledge = shared.knowledge.of(self.database, identities=self.identities)
        self.researcher = shared.researcher
        self.research = Research(
            self.database,
            owners=Owners(self.database, self.identities),
            search=self.knowledge.search,
            caller=self.caller,
            model_calls=ModelCalls(self.caller, self.quotas),
            notifications=shared.bus.notifications,
            listen=self.postgres.listen,
            researcher=shared.researcher,
            settings=shared.config.memory.knowledge.research,
            llm=shared.config.llm,
        )
        self.graph = memory.graph

        documents = shared.execution.source_documents(
            self.database, owner=lambda: self.tenants.id_of(self.config.tenant)
        )
        skills = shared.skills.of(
            self.database,
            identities=self.identities,
            runs=shared.execution.runs,
            fetch=documents.fetch,
            fetch_if_changed=documents.fetch_if_changed,
        )
        self.tools = skills.tools
        self.skills = skills.skills
        self.skill_transfer = skills.transfer
        self.history = skills.history
        self.catalogs = skills.catalogs
        self.finding = skills.search
        self.sources = skills.sources
        self.source_checks = skills.checks
        self.rules = skills.rules
        self.rule_trials = shared.skills.trials

        # The policies of every tool call, in the order in which a call passes them.
        self.audit_policy = AuditPolicy(self.audit, shared.config.audit)
        self.call_policies: tuple[Policy[GovernedCall], ...] = (self.audit_policy, LimitPolicy(self.quotas))
        # Those that decide by the arguments come later: when these are checked, with defaults and fixed arguments.
        self.access_policy = AccessPolicy(self.rules)
        self._execution = shared.execution.of(
            self.database,
            tools=skills.tools,
            bus=bus,
            background=shared.bus.background,
            policies=self.call_policies,
            argument_policies=(self.access_policy,),
        )
        self.secrets = self._execution.secrets
        self.executor = self._execution.executor
        self.executions = self._execution.executions
        self.recorder = self._execution.recorder
        self.call_records = shared.execution.records
        self.scripts = self._execution.scripts
        self.mcp = self._execution.mcp
        self.connections = self._execution.connections
        self.identity_keys = shared.execution.identities.keys
        self.backend_identities = self._execution.identities

        self._agents = shared.agents.of(
            self.database,
            identities=self.identities,
            bus=bus,
            conversations=conversations,
            memory=self.memory,
            knowledge=self.knowledge,
            research=self.research,
            skills=skills,
            executor=self.executor,
            audit=self.audit_policy,
            scripts=self.scripts,
            quotas=self.quotas,
        )
        self.definitions = self._agents.definitions
        self.agents = self._agents.agents

    def tenant(self, tenant: str | TenantId) -> "Engine":
        """Return the engine of another tenant, by name or id. An unknown tenant is an error at the first use."""
        engines = self._shared.engines
        found = engines.get(tenant)
        if found is None:
            found = Engine(self._shared, tenant)
            if len(engines) >= REMEMBERED:
                idle = next((known for known, engine in engines.items() if not engine.is_busy), None)
                if idle is not None:
                    del engines[idle]
            engines[tenant] = found
        engines.move_to_end(tenant)
        return found

    def of_state(self, state: str) -> "Engine":
        """Return the engine of the tenant to which the state of a connection belongs that was begun."""
        return self.tenant(self._shared.execution.consent.states.tenant_of(state))

    @property
    def is_busy(self) -> bool:
        """Whether it serves agents, or clients watch its conversations."""
        return self._agents.broadcast.is_busy

    def updated(self, uri: str) -> None:
        """Notify the subscribers of a resource, in all processes, that it has changed. Thread-safe; does not wait."""
        self._shared.skills.updates.send(self.database, uri)

    def worker(self, app: App, *, tools: Iterable[str] = (), concurrency: int = 10) -> Worker:
        """Return a worker. Inside `async with` it runs the app's handlers and event tools, `concurrency` at a time.

        `tools` are registered tools that it serves as well: `github_*`, `source:github`, `kind:rest`, or `*` for all.
        """
        if not isinstance(app, App):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"expected a holdfast.App, got {app!r:.200}", next="Pass the app of the worker.")
        served = ServedTools.parse(tools)
        app.add_publisher(self)
        own = {name: tool for name, tool in app.all_tools.items() if tool.mode == "event"}
        return self._execution.worker(app.name, skills=app.skills, tools=own, served=served, concurrency=concurrency)

    def serving(self, app: App, *, grace: float = 0) -> Serving:
        """Return an object that, inside `async with`, serves the app's agents and the agents stored as rows.

        At the end, current turns have `grace` seconds to finish. Then they are released, and other processes continue
        them.
        """
        app.add_publisher(self)
        tools = app.all_tools

        async def declare() -> None:
            assignments = {agent.name: agent.skills for agent in app.agents.values() if agent.kind == "llm"}
            await self._execution.declare(
                app.name, tools=tools.values(), skills=app.expertise.values(), assignments=assignments
            )

        return self._agents.serving(app.agents.values(), tools=tools, declare=declare, grace=grace)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction. Calls of services with `tx=` take effect together, or not at all."""
        return self.database.transaction()

    async def atomically(self, work: Callable[[Transaction], Awaitable[Result]]) -> Result:
        """Run `work` in a transaction. Retry it after a serialization failure or a deadlock."""
        return await self.database.atomically(work)

    async def parts(self) -> list[EnginePart]:
        """Return the state of each part, for the readiness check and `holdfast doctor`."""
        started = perf_counter()
        try:
            await self.postgres.system.now()
        except HoldfastError as error:
            return [EnginePart("database", "down", str(error))]
        kind = "remote" if self.place.embedded is None else "embedded"
        parts = [
            EnginePart("database", "ok", f"{kind} PostgreSQL, answers in {1000 * (perf_counter() - started):.1f} ms")
        ]
        other_keys = await self.keys.count_of_other_secrets()
        if other_keys:
            detail = (
                f"{other_keys} keys were made under another secret: set HOLDFAST_SECRET_FILE to have them recognised"
            )
            parts.append(EnginePart("keys", "reduced", detail))
        if self.tokens.failures:
            parts.append(EnginePart("issuers", "reduced", "; ".join(self.tokens.failures)))
        parts.append(EnginePart("embeddings", *self.embeddings.state))
        parts.append(EnginePart("memory", *self._shared.memory.indexer.state))
        parts.append(EnginePart("model", *self.caller.state))
        log = self._shared.bus.driver.state
        return [*parts, *([EnginePart("log", *log)] if log else [])]

    def log_gauges(self, tenant: TenantId | None) -> Gauges:
        """Return the gauges of the log, of one tenant or of all."""
        return self._shared.bus.driver.gauges(tenant)


def _announce(skills: SharedSkills, database: Database, uri: str) -> None:
    """Announce that a document has changed. Nobody can have subscribed to an address that is too long."""
    with suppress(InvalidInput):
        skills.updates.send(database, uri)


@asynccontextmanager
async def open_engine(
    url: str | None = None,
    *,
    data: Path | str | None = None,
    tenant: str | None = None,
    config: Config | None = None,
    progress: Progress | None = None,
) -> AsyncGenerator[Engine]:
    """Open an engine on `url`, else on the database of the settings, else on an embedded server in the data folder."""
    flags = {"database.url": url, "data": data, "tenant": tenant}
    config = config or load_config({key: value for key, value in flags.items() if value is not None})
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        place = await enter(open_location(config, progress or (lambda _: None)))
        app_url = await prepare(config, place, progress)
        postgres = connect(config, place, app_url)
        stack.push_async_callback(postgres.close)
        await check_login(config, place, postgres)
        fetch = await enter(open_fetch(config))
        access = await enter(open_access(config=config, postgres=postgres, fetch=fetch))
        quotas = await enter(
            open_quotas(settings=config.quotas, postgres=postgres, longest_call=config.llm.timeout + CALL_MARGIN)
        )
        post = await enter(open_webhooks(config.execution.allow_private, config.audit.publish_url))
        audit = await enter(open_audit(settings=config.audit, postgres=postgres, post=post))
        bus = await enter(
            open_bus(
                settings=config.bus,
                postgres=postgres,
                tenants=access.tenants,
                connect=partial(connect, config, place, app_url, pool_size=1),
            )
        )
        embeddings = await enter(Embeddings(config.memory.embedding))
        memory = await enter(
            open_memory(settings=config.memory, limits=config.limits, postgres=postgres, embeddings=embeddings)
        )
        skills = await enter(
            open_skills(
                settings=config.sources,
                postgres=postgres,
                embeddings=embeddings,
                pass_through=config.execution.pass_through,
            )
        )
        knowledge = await enter(
            open_knowledge(
                settings=config.memory,
                postgres=postgres,
                embeddings=embeddings,
                indexer=memory.indexer,
                searches=memory.searches,
                announce=partial(_announce, skills),
            )
        )
        execution = await enter(
            open_execution(config=config, postgres=postgres, secret=access.secret, tenants=access.tenants)
        )
        caller = await enter(Caller(config.llm, limits=config.limits))
        if config.memory.graph.model and config.memory.graph.tokens_per_day:
            await enter(ModelReader(postgres, caller, quotas, config.memory.graph))
        agents = await enter(open_agents(config=config, postgres=postgres, bus=bus, caller=caller))
        researcher = Researcher(
            postgres, config.memory.knowledge.research, lambda tenant: engine.tenant(tenant).research
        )
        shared = Shared(
            config=config,
            place=place,
            postgres=postgres,
            access=access,
            quotas=quotas,
            audit=audit,
            bus=bus,
            embeddings=embeddings,
            memory=memory,
            knowledge=knowledge,
            researcher=researcher,
            skills=skills,
            execution=execution,
            caller=caller,
            agents=agents,
        )
        engine = Engine(shared, config.tenant)
        reloads = SourceReloads(
            postgres,
            lambda tenant: engine.tenant(tenant).source_checks,
            reads_files=config.sources.folder is not None,
            resumes=config.sources.check_seconds > 0,
        )
        await enter(reloads)
        if config.sources.folder is not None:
            await enter(FileWatch(postgres, reloads, execution.folder.signature))
        execution.servers.on_change = reloads.ask
        await enter(researcher)
        await enter(execution.listener(postgres))
        yield engine


async def prepare(config: Config, place: DatabaseLocation, progress: Progress | None = None) -> str:
    """Apply the migrations, and return the URL with which the engine runs the statements of tenants."""
    async with open_owner(place.owner_url, place.options) as owner:
        found = await owner.one(sql("server_version"))
        assert found is not None
        check_server(found["version"], found["vector"])
        done = await migrate(owner)
        if done.migrations:
            await tend(owner, config.bus)
            await tend_audit(owner, config.audit)
            if progress is not None:
                progress(f"applied {len(done.migrations)} migrations")
        if config.database.url is not None and config.database.owner_url is not None:
            return config.database.url.get_secret_value()
        return await ensure_login(owner, place.owner_url, by_account=place.embedded is not None)
