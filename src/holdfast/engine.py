"""The composition root: opens the parts that the settings ask for, wires the services, and closes in reverse order."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeVar
from weakref import WeakValueDictionary

from holdfast.access.identities import Identities
from holdfast.access.keys import Keys
from holdfast.access.secret import installation_secret
from holdfast.access.tenants import Tenants
from holdfast.access.tokens import Tokens
from holdfast.agents import Agents, Definitions, Serving
from holdfast.agents.broadcast import Broadcast, Watchers
from holdfast.agents.builtin_tools import builtin_tools
from holdfast.agents.operator_limits import OperatorLimits
from holdfast.agents.runner import AgentRunner
from holdfast.agents.sweeper import RunSweeper
from holdfast.agents.turn_loop import TurnLoop as AgentTurns
from holdfast.agents.turn_state import TurnServices
from holdfast.app import App
from holdfast.bus import Commands, DeadLetters, Log, Worker
from holdfast.bus.background import Background
from holdfast.bus.buses import Bus, open_bus
from holdfast.bus.command_queue import CommandQueue
from holdfast.bus.completions import Completions
from holdfast.bus.gauges import Gauges
from holdfast.bus.handlers import Handler
from holdfast.bus.ingest import Ingest
from holdfast.bus.notifications import Notifications
from holdfast.bus.retention import Retention, tend
from holdfast.bus.waiters import Waiters
from holdfast.bus.workers import WorkerContext
from holdfast.conversations import Conversations, Notes, Sessions, Snapshots, State, TurnClaims
from holdfast.core.config import Config, load_config
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.core.process_limits import places_of
from holdfast.core.shares import Shares
from holdfast.embeddings import Embeddings
from holdfast.execution.admission import Admission
from holdfast.execution.documents import Documents
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.event_tools import EventTools
from holdfast.execution.executions import Executions
from holdfast.execution.executor import Executor
from holdfast.execution.function_runner import FunctionRunner
from holdfast.execution.issuer_connections import open_tokens
from holdfast.execution.outputs import Outputs
from holdfast.execution.presence import ToolPresence
from holdfast.execution.rest.runner import RestRunner
from holdfast.execution.secrets import Secrets
from holdfast.execution.sweeper import ExecutionSweeper
from holdfast.execution.usage import ToolUsage
from holdfast.execution.worker_runner import WorkerRunner
from holdfast.llm import Caller
from holdfast.memory import Memories
from holdfast.memory.gauges import MemoryGauges
from holdfast.memory.import_export import MemoryTransfer
from holdfast.memory.indexes import Indexes
from holdfast.memory.memory_indexer import Indexer
from holdfast.memory.owners import Owners
from holdfast.memory.recall import Recall
from holdfast.memory.sql_settings import tell_settings
from holdfast.memory.sweeper import Sweeper
from holdfast.memory.usage import RecallUsage
from holdfast.postgres.database import Database, Postgres, Transaction, open_owner
from holdfast.postgres.database_errors import REFUSED_LOGIN
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.postgres.folder import DataFolder
from holdfast.postgres.logins import LoginLimits
from holdfast.postgres.migrate import migrate
from holdfast.postgres.options import Options
from holdfast.postgres.sql import statements
from holdfast.postgres.tenancy import ensure_login, refuse_bypass
from holdfast.postgres.version import check_server
from holdfast.skills.catalog import Catalogs
from holdfast.skills.declarations import Declarations
from holdfast.skills.history import ChangeHistory
from holdfast.skills.registry_indexer import RegistryIndexer
from holdfast.skills.resource_updates import ResourceUpdates
from holdfast.skills.search import RegistrySearch
from holdfast.skills.skill_transfer import SkillTransfer
from holdfast.skills.skills import Skills
from holdfast.skills.sources.sources import Sources
from holdfast.skills.tool import Kind
from holdfast.skills.tools import Tools

Result = TypeVar("Result")
Progress = Callable[[str], None]

REMEMBERED = 1000  # tenants whose engines are cached

sql = statements("holdfast.postgres.sql")


@dataclass(frozen=True, slots=True)
class EnginePart:
    """A part of the engine and its state. `reduced` means degraded."""

    name: str
    state: Literal["ok", "reduced", "down"]
    detail: str


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """The URL of the database's owner, the options of connections, and the embedded server, if one is used."""

    owner_url: str
    options: Options
    embedded: EmbeddedServer | None


@dataclass(frozen=True, slots=True)
class Shared:
    """The services that the engines of all tenants share."""

    config: Config
    place: DatabaseLocation
    postgres: Postgres
    secret: bytes
    tenants: Tenants
    keys: Keys
    tokens: Tokens
    wakes: Notifications
    bus: Bus
    background: Background
    embeddings: Embeddings
    usage: RecallUsage
    indexer: Indexer
    memory_gauges: MemoryGauges
    caller: Caller
    egress: Egress
    sealing: bytes  # the encryption key of stored secrets is derived from it
    tool_usage: ToolUsage
    functions: FunctionRunner
    updates: ResourceUpdates
    connect: Callable[[], Postgres]  # opens another `Postgres`, with a pool of one connection
    tool_calls: Shares
    turns: Shares
    searches: Shares
    messages: Shares
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    engines: "OrderedDict[str | TenantId, Engine]" = field(default_factory=OrderedDict)  # pyright: ignore[reportUnknownVariableType]
    audiences: "WeakValueDictionary[TenantId, Watchers]" = field(default_factory=WeakValueDictionary)  # pyright: ignore[reportUnknownVariableType]


class Engine:
    """The services of one tenant. `tenant(name)` returns those of another tenant."""

    def __init__(self, shared: Shared, tenant: str | TenantId) -> None:
        self._shared = shared
        self.config = shared.config
        self.place = shared.place
        self.postgres = shared.postgres
        self.secret = shared.secret
        self.tenants = shared.tenants
        self.keys = shared.keys
        self.tokens = shared.tokens
        self.loop = shared.loop  # everything here runs on this event loop
        self.database: Database = self.postgres.tenant(lambda: self.tenants.id_of(tenant))
        self.log: Log = shared.bus.log(self.database)
        self.dead_letters = DeadLetters(self.database, shared.wakes)
        orders = CommandQueue(self.database, self.log, shared.wakes, self.config.bus)
        completions = Completions(self.database, self.log, shared.wakes, self.config.bus)
        waiters = Waiters(self.database, self.postgres.listen, shared.background)
        ingest = Ingest(self.database, self.log, orders, completions, shared.background)
        self.commands = Commands(self.database, orders, completions, waiters, ingest)
        self._shop = WorkerContext(
            self.database,
            orders,
            completions,
            ingest,
            shared.wakes,
            self.postgres.listen,
            self.config.bus,
            shared.connect,
        )
        self.identities = Identities(self.database)
        self.conversations = Conversations(self.database, self.identities, self.log)
        self.snapshots = Snapshots(self.database, self.identities)
        self.state = State(self.database, self.log)
        self.turns = TurnClaims(self.database, self.conversations, self.postgres.listen)
        self.sessions = Sessions(self.database, self.identities)
        self.notes = Notes(self.database, self.identities)
        self.embeddings = shared.embeddings
        self.memory_gauges = shared.memory_gauges
        owners = Owners(self.database, self.identities)
        recall = Recall(
            self.database, owners, self.embeddings, shared.usage, self.config.memory, places=shared.searches
        )
        self.memory = Memories(self.database, owners, self.embeddings, recall, self.config.memory)
        self.memory_transfer = MemoryTransfer(self.database, owners, self.embeddings, self.config.memory)
        self.caller = shared.caller
        self.background = shared.background
        self.tools = Tools(self.database, self._runs)
        self.skills = Skills(self.database, self.tools)
        self.skill_transfer = SkillTransfer(self.database, self._runs)
        self.history = ChangeHistory(self.database)
        self.catalogs = Catalogs(self.database, self.tools)
        self.finding = RegistrySearch(self.database, self.embeddings, self.catalogs)
        self.sources = Sources(self.database, self.tools, Documents(shared.egress).fetch)
        self._wire_execution()
        ceilings = OperatorLimits(self.config.agents, self.config.llm)
        self.definitions = Definitions(self.database, self.identities, self.log, ceilings)
        settings = self.config.agents
        self._watching = Broadcast(
            self.database, self.log, shared.background, shared.audiences, max_bytes=settings.watch_bytes
        )
        self.agents = Agents(
            self.database,
            self.log,
            shared.wakes,
            self.conversations,
            self.definitions,
            self._watching,
            settings,
            places=shared.messages,
        )

    def _runs(self, kind: Kind) -> bool:
        return self.executor.runs(kind)

    def _wire_execution(self) -> None:
        shared, execution, agents = self._shared, self.config.execution, self.config.agents
        self.secrets = Secrets(self.database, shared.sealing)
        rest = RestRunner(shared.egress, self.secrets.values, max_response_bytes=execution.max_response_bytes)
        self.executor = Executor(
            {"function": shared.functions, "rest": rest},
            admission=Admission(self.database, self.tools, shared.tool_usage),
            events=WorkerRunner(self.commands, Outputs(self.database)),
            presence=ToolPresence(self.database),
            max_whole_bytes=execution.max_response_bytes,
            places=shared.tool_calls,
        )
        self.executions = Executions(
            self.database,
            self.executor,
            self.tools,
            shared.background,
            timeout=agents.tool_timeout,
            max_output_bytes=agents.max_output_bytes,
        )

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

    @property
    def is_busy(self) -> bool:
        """Whether it serves agents, or clients watch its conversations."""
        return self._watching.is_busy

    def updated(self, uri: str) -> None:
        """Notify the subscribers of a resource, in all processes, that it has changed. Thread-safe; does not wait."""
        self._shared.updates.send(self.database, uri)

    def worker(self, app: App, *, concurrency: int = 10) -> Worker:
        """Return a worker. Inside `async with` it runs the app's handlers and event tools, `concurrency` at a time."""
        if not isinstance(app, App):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{app!r:.200} is no holdfast.App", next="Give the app whose skills the worker has.")
        app.run_by(self)
        brought = {name: tool for name, tool in app.brought.items() if tool.mode == "event"}
        more = EventTools(
            self.executor,
            self.tools,
            self.database,
            functions=brought,
            imports=self._shared.functions.imports,
            max_record_bytes=self.config.bus.max_record_bytes,
        )
        declared = False

        async def skills() -> Mapping[str, Handler]:
            nonlocal declared
            if not declared:  # the tools must be stored before they are first listed
                await Declarations(self.database).declare(app.name, brought.values())
                declared = True
            return await more.skills()

        return Worker(self._shop, app.skills, more=skills, concurrency=concurrency)

    def serving(self, app: App, *, grace: float = 0) -> Serving:
        """Return an object that, inside `async with`, serves the app's agents and the agents stored as rows.

        At the end, current turns have `grace` seconds to finish. Then they are released, and other processes continue
        them.
        """
        app.run_by(self)
        settings = self.config.agents
        turns = AgentTurns(
            TurnServices(
                self.database,
                self.agents.announcements,
                self.agents.runs,
                self._watching,
                self.notes,
                self.memory,
                self.caller,
                self.config.llm,
                settings,
                self.tools,
                self.catalogs,
                self.finding,
                self.executor,
                builtin_tools(self.notes, self.memory),
            )
        )
        runner = AgentRunner(
            self.database,
            self.agents.runs,
            self.postgres.listen,
            turns,
            lease=settings.lease,
            places=self._shared.turns,
            grace=grace,
        )
        brought = app.brought

        async def declare() -> None:
            assignments = {agent.name: agent.skills for agent in app.agents.values() if agent.kind == "llm"}
            stored = await Declarations(self.database).declare(
                app.name, brought.values(), app.expertise.values(), assignments, whole=True
            )
            self._shared.functions.declare(stored.values())

        return Serving(self.agents, self.log, runner, turns, app.agents.values(), brought, declare)

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
        strangers = await self.keys.made_elsewhere()
        if strangers:
            detail = (
                f"{strangers} keys were made under another secret: set HOLDFAST_SECRET_FILE to have them recognised"
            )
            parts.append(EnginePart("keys", "reduced", detail))
        if self.tokens.failures:
            parts.append(EnginePart("issuers", "reduced", "; ".join(self.tokens.failures)))
        parts.append(EnginePart("embeddings", *self.embeddings.state))
        parts.append(EnginePart("memory", *self._shared.indexer.state))
        parts.append(EnginePart("model", *self.caller.state))
        return [*parts, *([EnginePart("log", *self._shared.bus.state)] if self._shared.bus.state else [])]

    def log_gauges(self, tenant: TenantId | None) -> Gauges:
        """Return the gauges of the log, of one tenant or of all."""
        return self._shared.bus.gauges(tenant)


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
        place = await stack.enter_async_context(open_place(config, progress or (lambda _: None)))
        app_url = await prepare(config, place, progress)
        listen_url = config.database.listen_url

        def connect(options: Options) -> Postgres:
            listened = listen_url.get_secret_value() if listen_url else None
            return Postgres(app_url, options, owner_url=place.owner_url, listen_url=listened)

        postgres = connect(place.options)
        stack.push_async_callback(postgres.close)
        await _check_login(config, place, postgres)
        given = config.secret.get_secret_value() if config.secret else None
        secret = installation_secret(given, DataFolder(config.data).secret)
        tenants, keys, wakes = Tenants(postgres.system), Keys(postgres, secret), Notifications(postgres.system)
        stack.push_async_callback(wakes.close)
        tokens = await stack.enter_async_context(open_tokens(config, tenants))
        await stack.enter_async_context(Retention(postgres.owner, config.bus))
        bus = await stack.enter_async_context(open_bus(config.bus, postgres, tenants, wakes))
        background = Background()
        stack.push_async_callback(background.close)
        embeddings = await stack.enter_async_context(Embeddings(config.memory.embedding))
        usage = RecallUsage()
        stack.push_async_callback(usage.close)
        await tell_settings(postgres.system, config.memory)
        indexer = await stack.enter_async_context(Indexer(postgres, embeddings, config.memory))
        await stack.enter_async_context(Sweeper(postgres, config.memory))
        await stack.enter_async_context(RunSweeper(postgres, config.agents, config.bus))
        await stack.enter_async_context(Indexes(postgres.owner, config.memory))
        small = partial(connect, replace(place.options, pool_size=1))
        memory = (embeddings, usage, indexer, MemoryGauges(postgres.system, embeddings))
        caller = await stack.enter_async_context(Caller(config.llm, limits=config.limits))
        tools = await _open_tools(stack, config, postgres, embeddings, secret)
        yield Engine(
            Shared(
                *(config, place, postgres, secret, tenants, keys, tokens, wakes, bus, background),
                *(*memory, caller, *tools, small, *places_of(config)),
            ),
            config.tenant,
        )


async def _open_tools(
    stack: AsyncExitStack, config: Config, postgres: Postgres, embeddings: Embeddings, secret: bytes
) -> tuple[Egress, bytes, ToolUsage, FunctionRunner, ResourceUpdates]:
    """Open the services for tools and resources that all tenants share."""
    settings = config.execution
    allowed = AllowedHosts.parse(settings.allow_private)
    egress = await stack.enter_async_context(Egress(allowed, connections=settings.connections, limits=config.limits))
    usage = ToolUsage()
    stack.push_async_callback(usage.close)
    await stack.enter_async_context(ExecutionSweeper(postgres, settings))
    await stack.enter_async_context(RegistryIndexer(postgres, embeddings))
    given = settings.secret_key
    sealing = given.get_secret_value().encode() if given else secret
    updates = ResourceUpdates(postgres.system)
    stack.push_async_callback(updates.close)
    return egress, sealing, usage, FunctionRunner(settings.functions), updates


@asynccontextmanager
async def open_place(config: Config, progress: Progress) -> AsyncGenerator[DatabaseLocation]:
    """Hold the embedded server, and start it if necessary; or use the server that the settings name."""
    settings = config.database
    if settings.url is not None:
        owner = settings.owner_url or settings.url
        yield DatabaseLocation(owner.get_secret_value(), _options(config, None), None)
        return
    server = EmbeddedServer(config.data)
    progress(f"starting PostgreSQL in {server.folder.root}")
    holding = asyncio.ensure_future(asyncio.to_thread(server.hold))
    try:
        await asyncio.shield(holding)
    except asyncio.CancelledError:
        holding.add_done_callback(lambda held: held.cancelled() or held.exception() or server.release())
        raise
    try:
        yield DatabaseLocation(server.url, _options(config, lambda: asyncio.to_thread(server.ensure)), server)
    finally:
        server.release()


async def prepare(config: Config, place: DatabaseLocation, progress: Progress | None = None) -> str:
    """Apply the migrations, and return the URL with which the engine runs the statements of tenants."""
    async with open_owner(place.owner_url, place.options) as owner:
        found = await owner.one(sql("server_version"))
        assert found is not None
        check_server(found["version"], found["vector"])
        done = await migrate(owner)
        if done.migrations:
            await tend(owner, config.bus)
            if progress is not None:
                progress(f"applied {len(done.migrations)} migrations")
        if config.database.url is not None and config.database.owner_url is not None:
            return config.database.url.get_secret_value()
        return await ensure_login(owner, place.owner_url, by_account=place.embedded is not None)


async def _check_login(config: Config, place: DatabaseLocation, postgres: Postgres) -> None:
    try:
        await refuse_bypass(postgres.system)
    except HoldfastError as error:
        # The password of the login is derived from the owner's. If the owner's has changed, renew the login's.
        if error.details.get("sqlstate") not in REFUSED_LOGIN or config.database.owner_url is not None:
            raise
        async with open_owner(place.owner_url, place.options) as owner:
            await ensure_login(owner, place.owner_url, by_account=place.embedded is not None, renew=True)
        await refuse_bypass(postgres.system)


def login_limits(config: Config) -> LoginLimits:
    """Return the limits of a tenant's own login to the database."""
    settings = config.database
    return LoginLimits(settings.login_connections, settings.login_statement_timeout, settings.login_idle_timeout)


def _options(config: Config, revive: Callable[[], Awaitable[None]] | None) -> Options:
    settings = config.database
    return Options(
        tenancy=settings.tenancy,
        pool_size=settings.pool_size,
        statement_cache_size=settings.statement_cache_size,
        connect_timeout=settings.connect_timeout,
        host_timeout=settings.host_timeout,
        acquire_timeout=settings.acquire_timeout,
        statement_timeout=settings.statement_timeout,
        lock_timeout=settings.lock_timeout,
        tenant_share=config.limits.tenant_share,
        user_share=config.limits.user_share,
        revive=revive,
    )
