"""Opens the part of the execution of tools that all tenants share, and composes the part of each tenant."""

import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.access.tenants import Tenants
from holdfast.bus.composition import TenantBus
from holdfast.bus.handlers import Handler
from holdfast.bus.workers import Worker, WorkerContext
from holdfast.core.background import Background
from holdfast.core.config import Config
from holdfast.core.settings import AgentSettings, ExecutionSettings
from holdfast.core.shares import Shares, shared_by_tenant
from holdfast.execution.admission import Admission
from holdfast.execution.call_recorder import CallRecorder
from holdfast.execution.call_records import CallRecords
from holdfast.execution.consent.composition import SharedConsent
from holdfast.execution.consent.connections import UserConnections
from holdfast.execution.documents import Documents
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.event_tools import EventTools
from holdfast.execution.executions import Executions
from holdfast.execution.executor import Executor
from holdfast.execution.function_runner import FunctionRunner
from holdfast.execution.identity.authorization_servers import AuthorizationServers
from holdfast.execution.identity.identities import BackendIdentities, SharedIdentities
from holdfast.execution.identity.identity_keys import IdentityKeys
from holdfast.execution.identity.own_tokens import OwnTokens, TokenRequests
from holdfast.execution.identity.signed_tokens import SignedTokens
from holdfast.execution.identity.token_endpoint import TokenEndpoint
from holdfast.execution.identity.token_exchange import TokenExchange
from holdfast.execution.mcp.listener import McpListener
from holdfast.execution.mcp.runner import McpBackends, McpRunner
from holdfast.execution.mcp.servers import McpServers
from holdfast.execution.mcp.stdio import Programs
from holdfast.execution.outputs import Outputs
from holdfast.execution.policies.policy import GovernedCall, Policy
from holdfast.execution.presence import ToolPresence
from holdfast.execution.rest.graphql import GRAPHQL, INTROSPECTION, GraphqlRunner
from holdfast.execution.rest.jsonrpc import JSON_RPC
from holdfast.execution.rest.runner import REST, Dialect, HttpRunner, Identify
from holdfast.execution.running_calls import RunningCalls
from holdfast.execution.sandbox.kinds import InstalledKinds
from holdfast.execution.sandbox.languages import LANGUAGES
from holdfast.execution.sandbox.probe import SandboxProbe
from holdfast.execution.sandbox.processes import SandboxProcesses
from holdfast.execution.sandbox.sandbox import Sandbox
from holdfast.execution.scripts import ScriptRunner, Scripts
from holdfast.execution.secrets import Secrets
from holdfast.execution.served_tools import ServedTools
from holdfast.execution.source_documents import SourceDocuments
from holdfast.execution.source_files import FindTenant, SourceFiles, SourceFolder
from holdfast.execution.sweeper import ExecutionSweeper
from holdfast.execution.usage import ToolUsage
from holdfast.execution.worker_runner import WorkerRunner
from holdfast.mcp.about import SERVER
from holdfast.postgres.database import Database, Postgres
from holdfast.skills.declarations import Declarations
from holdfast.skills.skill import DeclaredSkill
from holdfast.skills.sources.openapi.documents import MAX_DOCUMENT_BYTES
from holdfast.skills.sources.selectable_types import SelectableTypes
from holdfast.skills.tool import Tool
from holdfast.skills.tools import Tools

VERDICTS = "sandbox/verdicts.json"  # in the user's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantExecution:
    """Runs and records the tool calls of a tenant, and stores its secrets."""

    database: Database
    tools: Tools
    secrets: Secrets
    executor: Executor
    executions: Executions
    recorder: CallRecorder
    functions: FunctionRunner
    workers: WorkerContext
    mcp: McpBackends
    scripts: Scripts
    connections: UserConnections
    identities: BackendIdentities

    async def declare(
        self,
        app_name: str,
        *,
        tools: Iterable[Tool],
        skills: Iterable[DeclaredSkill],
        assignments: Mapping[str, Sequence[str]],
    ) -> None:
        """Store all tools and skills that an app declares. Its functions run here."""
        declarations = Declarations(self.database)
        stored = await declarations.declare(app_name, tools, skills, assignments, whole=True)
        self.functions.declare(stored.values())

    def worker(
        self,
        app_name: str,
        *,
        skills: Mapping[str, Handler],
        tools: Mapping[str, Tool],
        served: ServedTools,
        concurrency: int,
    ) -> Worker:
        """Return a worker that runs an app's handlers, its event tools, and the registered tools that it serves."""
        more = EventTools(
            self.executor,
            self.tools,
            self.database,
            functions=tools,
            imports=self.functions.imports,
            served=served,
            max_record_bytes=self.workers.settings.max_record_bytes,
        )
        declared = False

        async def event_tools() -> Mapping[str, Handler]:
            nonlocal declared
            if not declared:  # the tools must be stored before they are first listed
                await Declarations(self.database).declare(app_name, tools.values())
                declared = True
            return await more.skills()

        return Worker(self.workers, skills, more=event_tools, concurrency=concurrency)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedExecution:
    """The connections to back ends, the functions of apps, the counts and records of calls, and their limit."""

    settings: ExecutionSettings
    agents: AgentSettings
    sealing: bytes  # the encryption key of stored secrets is derived from it
    egress: Egress
    documents: Documents
    folder: SourceFolder
    servers: McpServers
    usage: ToolUsage
    records: CallRecords
    functions: FunctionRunner
    tool_calls: Shares
    sandbox: Sandbox
    probe: SandboxProbe
    consent: SharedConsent
    identities: SharedIdentities

    @property
    def runs(self) -> InstalledKinds:
        """The kinds of tools that run in this process."""
        return InstalledKinds(("function", "rest", "graphql", "jsonrpc", "mcp_server"), self.probe)

    def source_documents(self, database: Database, *, owner: FindTenant) -> SourceDocuments:
        """Return what fetches the documents of a tenant's sources. `owner`: whose sources may name files."""
        secrets = Secrets(database, self.sealing)
        files = SourceFiles(self.folder, tenant=database.tenant, owner=owner)
        # An answer to an introspection query is a document, and may be as large as one.
        identify = self._identities(database, secrets).of_engine
        graphql = HttpRunner(
            self.egress,
            secrets.values,
            dialect=INTROSPECTION,
            max_response_bytes=MAX_DOCUMENT_BYTES,
            identify=identify,
        )
        rpc = self._http(secrets, JSON_RPC, identify)
        return SourceDocuments(self.documents, rpc, graphql, self._mcp(database, secrets, identify), files)

    def listener(self, postgres: Postgres) -> McpListener:
        """Return what listens to the MCP servers of all tenants."""

        def backends(database: Database) -> McpBackends:
            secrets = Secrets(database, self.sealing)
            return self._mcp(database, secrets, self._identities(database, secrets).of_engine)

        return McpListener(postgres, backends)

    def _identities(self, database: Database, secrets: Secrets) -> BackendIdentities:
        consent = self.consent.of(database, secrets.values)
        return BackendIdentities(database, self.identities, secrets.values, consent.tokens)

    def _mcp(self, database: Database, secrets: Secrets, identify: Identify) -> McpBackends:
        commands, timeout = self.settings.commands, self.agents.tool_timeout
        return McpBackends(
            database, self.servers, secrets.values, commands=commands, timeout=timeout, identify=identify
        )

    def _http(self, secrets: Secrets, dialect: Dialect, identify: Identify) -> HttpRunner:
        most = self.settings.max_response_bytes
        return HttpRunner(self.egress, secrets.values, dialect=dialect, max_response_bytes=most, identify=identify)

    def of(
        self,
        database: Database,
        *,
        tools: Tools,
        bus: TenantBus,
        background: Background,
        policies: Sequence[Policy[GovernedCall]] = (),
        argument_policies: Sequence[Policy[GovernedCall]] = (),
    ) -> TenantExecution:
        """Return the part of a tenant. Calls that do not come through the gateway pass the policies here.

        The `argument_policies` get a call when the registry has admitted it, with the arguments that are sent.
        """
        secrets = Secrets(database, self.sealing)
        identities = self._identities(database, secrets)
        identify = identities.of_call
        backends = self._mcp(database, secrets, identify)
        scripts = Scripts(database, self.sandbox, self.probe, self.settings.sandbox)
        script_runner = ScriptRunner(database, scripts)
        executor = Executor(
            {
                "function": self.functions,
                "rest": self._http(secrets, REST, identify),
                "graphql": GraphqlRunner(self._http(secrets, GRAPHQL, identify), SelectableTypes(database)),
                "jsonrpc": self._http(secrets, JSON_RPC, identify),
                "mcp_server": McpRunner(backends),
                **dict.fromkeys(LANGUAGES, script_runner),
            },
            admission=Admission(database, tools, self.usage),
            events=WorkerRunner(bus.commands, Outputs(database)),
            presence=ToolPresence(database),
            max_whole_bytes=self.settings.max_response_bytes,
            places=self.tool_calls,
            policies=policies,
            argument_policies=argument_policies,
        )
        running = RunningCalls(database, background)
        executions = Executions(
            database,
            executor,
            tools,
            running=running,
            timeout=self.agents.tool_timeout,
            max_output_bytes=self.agents.max_output_bytes,
        )
        return TenantExecution(
            database=database,
            tools=tools,
            secrets=secrets,
            executor=executor,
            executions=executions,
            recorder=CallRecorder(database, executor, self.records, running),
            functions=self.functions,
            workers=bus.workers,
            mcp=backends,
            scripts=scripts,
            connections=self.consent.of(database, secrets.values).connections,
            identities=identities,
        )


@asynccontextmanager
async def open_execution(
    *, config: Config, postgres: Postgres, secret: bytes, tenants: Tenants
) -> AsyncGenerator[SharedExecution]:
    """Open it. Stored secrets are encrypted by the key of the settings, else by the installation's `secret`."""
    settings, limits = config.execution, config.limits
    sealing = settings.secret_key.get_secret_value().encode() if settings.secret_key else secret
    async with AsyncExitStack() as stack:
        egress = Egress(
            AllowedHosts.parse(settings.allow_private), connections=settings.connections, limits=config.limits
        )
        await stack.enter_async_context(egress)
        processes = SandboxProcesses()
        servers = McpServers(
            egress,
            Programs(processes, settings.folders, settings.writable_folders),
            about=SERVER,
            limit=settings.max_response_bytes,
            patience=60.0 * config.gateway.state_minutes,
        )
        await stack.enter_async_context(servers)
        usage = ToolUsage()
        stack.push_async_callback(usage.close)
        records = CallRecords()
        stack.push_async_callback(records.close)
        await stack.enter_async_context(ExecutionSweeper(postgres, settings))
        sandbox = Sandbox(processes)
        identities = open_identities(config, postgres, egress, sealing, tenants)
        stack.push_async_callback(identities.close)
        consent = SharedConsent(egress, identities.requests.servers, sealing, address=config.resource)
        stack.push_async_callback(consent.close)
        yield SharedExecution(
            settings=settings,
            agents=config.agents,
            sealing=sealing,
            consent=consent,
            egress=egress,
            documents=Documents(egress),
            folder=SourceFolder(config.sources.folder),
            servers=servers,
            usage=usage,
            records=records,
            functions=FunctionRunner(settings.functions),
            sandbox=sandbox,
            probe=open_probe(config, sandbox),
            identities=identities,
            tool_calls=shared_by_tenant(limits, "tool calls", limits.tool_calls, setting="limits.tool_calls"),
        )


def open_identities(
    config: Config, postgres: Postgres, egress: Egress, sealing: bytes, tenants: Tenants
) -> SharedIdentities:
    """Return what says to back ends who calls."""
    keys = IdentityKeys(postgres.system, sealing)
    requests = TokenRequests(AuthorizationServers(egress), TokenEndpoint(egress))
    own = OwnTokens(requests)
    return SharedIdentities(
        keys=keys,
        signed=SignedTokens(keys, issuer=config.resource),
        requests=requests,
        own=own,
        exchange=TokenExchange(requests, own),
        tenants=tenants,
        pass_through=config.execution.pass_through,
    )


def open_probe(config: Config, sandbox: Sandbox) -> SandboxProbe:
    """Return what tries the sandbox. It keeps its verdicts with the user, because they are about the machine."""
    settings = config.execution.sandbox
    programs = {"python": settings.python, "javascript": settings.node}
    named = {language: None if program is None else str(program) for language, program in programs.items()}
    return SandboxProbe(sandbox, verdicts_file(os.environ), named)


def verdicts_file(environ: Mapping[str, str]) -> Path:
    """Return the file with the verdicts on the sandbox of this machine."""
    cache = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/")) / ".cache"
    return Path(cache) / "holdfast" / VERDICTS
