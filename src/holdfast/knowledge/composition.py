"""Opens the part of knowledge that all tenants share, and composes the part of each tenant."""

import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from holdfast.access.identities import Identities
from holdfast.core.memory_settings import KnowledgeScoringSettings, KnowledgeSettings, MemorySettings
from holdfast.core.shares import Shares
from holdfast.embeddings import Embeddings
from holdfast.embeddings.store import Store
from holdfast.execution.sandbox import SandboxProcesses
from holdfast.knowledge.chunk_vectors import ChunkVectors
from holdfast.knowledge.document_uri import Announce
from holdfast.knowledge.documents import KnowledgeDocuments
from holdfast.knowledge.ingester import Ingester
from holdfast.knowledge.jobs import Jobs
from holdfast.knowledge.knowledge import Knowledge
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.reader.protocol import ReadOptions
from holdfast.knowledge.reader.readers import Readers
from holdfast.knowledge.readings import Readings
from holdfast.knowledge.search import KnowledgeSearch
from holdfast.knowledge.transfer import KnowledgeTransfer
from holdfast.knowledge.uploads import Uploads
from holdfast.memory.memory_indexer import Indexer
from holdfast.memory.owners import Owners
from holdfast.postgres.database import Database, Postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedKnowledge:
    """What the knowledge of all tenants shares."""

    settings: KnowledgeSettings
    postgres: Postgres
    embeddings: Embeddings
    ingester: Ingester
    scoring: KnowledgeScoringSettings
    searches: Shares
    announce: Announce

    def of(self, database: Database, *, identities: Identities) -> Knowledge:
        """Return the part of a tenant."""
        owners = Owners(database, identities)
        documents = KnowledgeDocuments(database, owners=owners)
        return Knowledge(
            documents=documents,
            uploads=Uploads(database, documents=documents, settings=self.settings),
            jobs=Jobs(database, documents=documents, listen=self.postgres.listen, wake=self.ingester.wake),
            readings=Readings(database),
            search=KnowledgeSearch(
                database, owners=owners, embeddings=self.embeddings, settings=self.scoring, places=self.searches
            ),
            transfer=KnowledgeTransfer(database, documents=documents),
            announce=partial(self.announce, database),
        )


@asynccontextmanager
async def open_knowledge(
    *,
    settings: MemorySettings,
    postgres: Postgres,
    embeddings: Embeddings,
    indexer: Indexer,
    searches: Shares,
    announce: Announce,
) -> AsyncGenerator[SharedKnowledge]:
    """Open it, and start its background jobs. `announce` tells the readers of an address that it has changed."""
    of_documents = settings.knowledge
    indexer.add(ChunkVectors(postgres.system, embeddings))
    readers = Readers(
        SandboxProcesses(),
        processes=of_documents.readers,
        memory_mb=of_documents.parse_memory_mb,
        seconds=of_documents.parse_seconds,
    )
    # While some files are parsed, others are written to the database.
    # While one file is parsed, another one is fetched, and others are embedded and stored.
    most = 3 * (of_documents.readers or max(1, (os.cpu_count() or 1) // 2))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(readers)
        ingester = Ingester(
            postgres,
            readers=readers,
            embeddings=embeddings,
            options=partial(_options, settings),
            most=most,
            announce=announce,
        )
        await stack.enter_async_context(ingester)
        yield SharedKnowledge(
            settings=of_documents,
            postgres=postgres,
            embeddings=embeddings,
            ingester=ingester,
            scoring=settings.knowledge_scoring,
            searches=searches,
            announce=announce,
        )


def _options(settings: MemorySettings) -> ReadOptions:
    """Return how files are read now: the files of a model may come later."""
    found = Store(settings.embedding.folder).find(settings.embedding.model)
    return ReadOptions(
        chunk_size=settings.knowledge.chunk_size,
        overlap=settings.knowledge.overlap,
        tokenizer=None if found is None else found.tokenizer,
        limits=ParseLimits(units=settings.knowledge.max_pages),
    )
