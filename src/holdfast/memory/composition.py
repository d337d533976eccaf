"""Opens the part of memory that all tenants share, and composes the part of each tenant."""

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from holdfast.access.identities import Identities
from holdfast.core.errors import HoldfastError
from holdfast.core.limits import LimitSettings
from holdfast.core.memory_settings import MemorySettings
from holdfast.core.shares import Shares
from holdfast.embeddings import Embeddings
from holdfast.memory.gauges import MemoryGauges
from holdfast.memory.graph.entity_sweeper import EntitySweeper
from holdfast.memory.graph.graph import Graph
from holdfast.memory.import_export import MemoryTransfer
from holdfast.memory.indexes import Indexes
from holdfast.memory.memories import Memories
from holdfast.memory.memory_indexer import Indexer
from holdfast.memory.owners import Owners
from holdfast.memory.recall import Recall
from holdfast.memory.sweeper import Sweeper
from holdfast.memory.usage import RecallUsage
from holdfast.postgres.database import Database, Postgres, Statements
from holdfast.postgres.sql import statements

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantMemory:
    """The memories of a tenant, their import and export, and the graph of what they name."""

    memories: Memories
    transfer: MemoryTransfer
    graph: Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory:
    """The indexer and the gauges of memories, the counts of their use, and the limit of searches."""

    settings: MemorySettings
    embeddings: Embeddings
    usage: RecallUsage
    indexer: Indexer
    gauges: MemoryGauges
    searches: Shares

    def of(self, database: Database, *, identities: Identities) -> TenantMemory:
        """Return the part of a tenant."""
        owners = Owners(database, identities)
        recall = Recall(
            database,
            owners=owners,
            embeddings=self.embeddings,
            usage=self.usage,
            settings=self.settings,
            places=self.searches,
        )
        return TenantMemory(
            memories=Memories(
                database, owners=owners, embeddings=self.embeddings, recall=recall, settings=self.settings
            ),
            transfer=MemoryTransfer(database, owners=owners, embeddings=self.embeddings, settings=self.settings),
            graph=Graph(database, owners=owners, recall=recall),
        )


@asynccontextmanager
async def open_memory(
    *, settings: MemorySettings, limits: LimitSettings, postgres: Postgres, embeddings: Embeddings
) -> AsyncGenerator[SharedMemory]:
    """Open it, and start its background jobs."""
    async with AsyncExitStack() as stack:
        usage = RecallUsage()
        stack.push_async_callback(usage.close)
        await store_settings(postgres.system, settings)
        indexer = await stack.enter_async_context(Indexer(postgres, embeddings, settings))
        await stack.enter_async_context(Sweeper(postgres, settings))
        await stack.enter_async_context(EntitySweeper(postgres))
        await stack.enter_async_context(Indexes(postgres.owner, settings))
        yield SharedMemory(
            settings=settings,
            embeddings=embeddings,
            usage=usage,
            indexer=indexer,
            gauges=MemoryGauges(postgres.system, embeddings),
            searches=search_limit(limits, cores=len(os.sched_getaffinity(0))),
        )


async def store_settings(system: Statements, settings: MemorySettings) -> None:
    """Store the lifetime of session memories for plain SQL, which has no access to the settings.

    The views of `functions/spec_names.sql` read it, and use a default if it is missing. It is one value for the
    installation, from the process that opened last.
    """
    try:
        await system.run(sql("store_setting"), "session_lifetime", f"{settings.short_term.ttl_minutes} minutes")
    except HoldfastError as error:  # a read-only server also refuses inserts by plain SQL
        log.warning("could not store the lifetime of session memories for plain SQL: %s", error)


def search_limit(limits: LimitSettings, *, cores: int) -> Shares:
    """Return the limit of searches: one per core, as each keeps a core busy. A tenant leaves one for the others."""
    total = limits.searches or max(2, cores)
    alone = (total - 1) / total if total > 1 else 1.0
    return Shares(
        "searches",
        total,
        setting="limits.searches",
        tenant_share=min(limits.tenant_share, alone),
        user_share=limits.user_share,
    )
