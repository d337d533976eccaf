"""LangChain's retriever on Holdfast's documents."""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr
from typing_extensions import override

from holdfast.adapters.engine_thread import SharedEngine
from holdfast.engine import Engine
from holdfast.knowledge.hits import PassageHit
from holdfast.knowledge.knowledge_reader import KnowledgeReader, readable_owners
from holdfast.memory.query import MAX_QUESTION


class HoldfastRetriever(BaseRetriever):
    """Finds passages of documents: those of the organization and, if they are named, of the user and the agent.

    `engine`: an open engine, an address, or None for the database of the settings. `collections` limits the documents;
    None means all. `where` must be contained in their metadata. `k`: maximum number of passages.
    """

    collections: Sequence[str] | None = None
    where: dict[str, Any] | None = None
    user: str | None = None
    agent: str | None = None
    k: int = 5
    _hosted: SharedEngine = PrivateAttr()

    def __init__(self, engine: Engine | str | None = None, *, tenant: str | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._hosted = SharedEngine.of(engine, tenant)

    @override
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return self._hosted.run_sync(lambda engine: self._search(engine, query))

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return await self._hosted.run(lambda engine: self._search(engine, query))

    def close(self) -> None:
        """Release the engine. An engine that was opened for an address is closed with its last user."""
        self._hosted.close_sync()

    async def aclose(self) -> None:
        """Release the engine, like `close`."""
        await self._hosted.close()

    async def _search(self, engine: Engine, query: str) -> list[Document]:
        owners = readable_owners(user_name=self.user, agent_name=self.agent)
        collections = None if self.collections is None else tuple(self.collections)
        reader = KnowledgeReader(engine.knowledge, owners, collections)
        hits = await reader.search(query[:MAX_QUESTION], limit=self.k, where=self.where)
        return [document_of(hit) for hit in hits]


def document_of(hit: PassageHit) -> Document:
    """Convert a passage to a document of LangChain. `source` is the name of the document, `page` begins at 1."""
    metadata = {
        **hit.metadata,
        "source": hit.name,
        "document_id": str(hit.document),
        "title": hit.title,
        "collection": hit.collection,
        "section": " > ".join(hit.section),
        "page": hit.page,
        "chunk": hit.chunk,
        "start": hit.start,
        "end": hit.end,
        "score": hit.score,
        "citation": hit.citation,
    }
    return Document(id=str(hit.id), page_content=hit.text, metadata=metadata)
