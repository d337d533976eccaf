"""ADK knowledge service: agents of Google ADK search, read and list documents.

    knowledge = PostgresKnowledgeService(engine, collections=["handbook"])
    agent = LlmAgent(…, tools=knowledge.tools)

An agent reads the documents of the organization, those of its user, and those of the agent that is called like the app.
"""

from collections.abc import Sequence
from typing import Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.retrieval.base_retrieval_tool import BaseRetrievalTool
from google.adk.tools.tool_context import ToolContext
from typing_extensions import override

from holdfast.adapters.engine_thread import EngineUser, SharedEngine
from holdfast.agents.knowledge_tools import (
    MOST_FOUND,
    MOST_LISTED,
    READ_CHARACTERS,
    describe_hits,
    describe_list,
    describe_reading,
)
from holdfast.core.cursors import Page
from holdfast.core.errors import HoldfastError
from holdfast.engine import Engine
from holdfast.knowledge import Document, PassageHits, Reading
from holdfast.knowledge.knowledge_reader import KnowledgeReader, readable_owners
from holdfast.memory.query import MAX_QUESTION


class PostgresKnowledgeService(EngineUser):
    """The documents that ADK's agents read, on an open engine or on the database at an address.

    `collections` limits them; None means all. A search returns at most `max_results` passages.
    """

    def __init__(
        self,
        engine_or_url: Engine | str | None = None,
        *,
        tenant: str | None = None,
        collections: Sequence[str] | None = None,
        max_results: int = 5,
    ) -> None:
        super().__init__(SharedEngine.of(engine_or_url, tenant))
        self._collections = None if collections is None else tuple(collections)
        self.max_results = min(max_results, MOST_FOUND)

    @property
    def tools(self) -> list[BaseTool]:
        """The tools `search_knowledge`, `read_document` and `list_documents` for an agent."""
        return [KnowledgeTool(self), FunctionTool(self._read_document()), FunctionTool(self._list_documents())]

    async def search(self, *, app_name: str, user_id: str, query: str) -> PassageHits:
        """Find the passages that answer a question, best first."""
        question = query[:MAX_QUESTION]
        if not question.strip():
            return PassageHits()

        async def work(engine: Engine) -> PassageHits:
            return await self._reader(engine, app_name, user_id).search(question, limit=self.max_results)

        return await self._hosted.run(work)

    async def read(
        self, *, app_name: str, user_id: str, document: str, limit: int = READ_CHARACTERS, **part: Any
    ) -> tuple[Document, Reading]:
        """Read a document by its name or id: a `section`, a `page`, around a `chunk`, or from `start` on."""

        async def work(engine: Engine) -> tuple[Document, Reading]:
            found = await self._reader(engine, app_name, user_id).document(document)
            return found, await engine.knowledge.read(found.id, limit=limit, **part)

        return await self._hosted.run(work)

    async def list(
        self, *, app_name: str, user_id: str, collection: str | None = None, cursor: str | None = None
    ) -> Page[Document]:
        """Return a page of the documents, newest first."""

        async def work(engine: Engine) -> Page[Document]:
            reader = self._reader(engine, app_name, user_id)
            return await reader.list(collection=collection, limit=MOST_LISTED, cursor=cursor)

        return await self._hosted.run(work)

    def _reader(self, engine: Engine, app_name: str, user_id: str) -> KnowledgeReader:
        owners = readable_owners(user_name=user_id, agent_name=app_name)
        return KnowledgeReader(engine.knowledge, owners, self._collections)

    def _read_document(self) -> Any:
        async def read_document(
            document: str,
            tool_context: ToolContext,
            section: str | None = None,
            page: int | None = None,
            chunk: int | None = None,
            start: int | None = None,
        ) -> str:
            """Read a document: a section, a page, around a passage, or from the beginning.

            Args:
                document: its name or its id, as search_knowledge and list_documents tell it.
                section: the heading of a section, or its number, such as 4.2.
                page: the number of a page.
                chunk: the number of a passage that search_knowledge found.
                start: the character to begin at, to go on where a reading ended.
            """
            around = 0 if chunk is None else 1
            part: dict[str, Any] = {"section": section, "page": page, "chunk": chunk, "around": around, "start": start}
            try:
                found, reading = await self.read(**_who(tool_context), document=document, **part)
            except HoldfastError as error:  # the model reads what is wrong
                return str(error)
            return describe_reading(found, reading)

        return read_document

    def _list_documents(self) -> Any:
        async def list_documents(
            tool_context: ToolContext, collection: str | None = None, cursor: str | None = None
        ) -> str:
            """List the documents that you can search.

            Args:
                collection: only documents of this collection.
                cursor: as the end of the former list told it, to go on.
            """
            try:
                return describe_list(await self.list(**_who(tool_context), collection=collection, cursor=cursor))
            except HoldfastError as error:
                return str(error)

        return list_documents


class KnowledgeTool(BaseRetrievalTool):
    """The tool `search_knowledge`: passages of documents, each with its source."""

    def __init__(self, service: PostgresKnowledgeService) -> None:
        super().__init__(
            name="search_knowledge",
            description="Search the documents. Each passage comes with its source: "
            "cite it in brackets where you use it.",
        )
        self._service = service

    @override
    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return describe_hits(await self._service.search(**_who(tool_context), query=str(args.get("query", ""))))


def _who(context: ToolContext) -> dict[str, str]:
    return {"app_name": context.session.app_name, "user_id": context.user_id}
