"""Opens the part of the registry of skills and tools that all tenants share, and composes the part of each tenant."""

from collections.abc import AsyncGenerator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from holdfast.core.processes import ProcessCalls
from holdfast.core.settings import ReloadSettings
from holdfast.embeddings import Embeddings
from holdfast.postgres.database import Database, PooledStatements, Postgres
from holdfast.skills.catalog import Catalogs
from holdfast.skills.history import ChangeHistory
from holdfast.skills.registry_indexer import RegistryIndexer
from holdfast.skills.resource_updates import ResourceUpdates
from holdfast.skills.runnable_kinds import RunnableKinds
from holdfast.skills.search import RegistrySearch
from holdfast.skills.skill_transfer import SkillTransfer
from holdfast.skills.skills import Skills
from holdfast.skills.sources.checks import FetchIfChanged, SourceChecks
from holdfast.skills.sources.sources import Fetch, Sources
from holdfast.skills.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSkills:
    """The skills and tools of a tenant: stored, listed for agents, searched, imported."""

    tools: Tools
    skills: Skills
    transfer: SkillTransfer
    history: ChangeHistory
    catalogs: Catalogs
    search: RegistrySearch
    sources: Sources
    checks: SourceChecks


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSkills:
    """Embeddings for searches, announcements that resources have changed, and the processes of large imports."""

    settings: ReloadSettings
    system: PooledStatements
    embeddings: Embeddings
    updates: ResourceUpdates
    processes: ProcessCalls
    pass_through: Collection[str]  # hosts that may get callers' own tokens

    def of(
        self, database: Database, *, runs: RunnableKinds, fetch: Fetch, fetch_if_changed: FetchIfChanged
    ) -> TenantSkills:
        """Return the part of a tenant. `runs` says which kinds of tools run here. `fetch` reads documents of APIs."""
        tools = Tools(database, runs)
        catalogs = Catalogs(database, tools)
        sources = Sources(
            database,
            tools,
            fetch,
            self.processes,
            check_seconds=self.settings.check_seconds,
            pass_through=self.pass_through,
        )
        return TenantSkills(
            tools=tools,
            skills=Skills(database, tools),
            transfer=SkillTransfer(database, runs),
            history=ChangeHistory(database),
            catalogs=catalogs,
            search=RegistrySearch(database, self.embeddings, catalogs),
            sources=sources,
            checks=SourceChecks(database, self.system, sources, fetch_if_changed),
        )


@asynccontextmanager
async def open_skills(
    *, settings: ReloadSettings, postgres: Postgres, embeddings: Embeddings, pass_through: Collection[str] = ()
) -> AsyncGenerator[SharedSkills]:
    """Open it, and start the indexer."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(RegistryIndexer(postgres, embeddings))
        updates = ResourceUpdates(postgres.system)
        stack.push_async_callback(updates.close)
        yield SharedSkills(
            settings=settings,
            system=postgres.system,
            embeddings=embeddings,
            updates=updates,
            processes=ProcessCalls(),
            pass_through=pass_through,
        )
