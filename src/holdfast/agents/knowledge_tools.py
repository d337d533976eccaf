"""Built-in tools of agents with knowledge: they search, read and list documents.

The run determines whose documents these are: those of the organization, the agent and its user. The definition of the
agent limits the collections. The gateway has tools of the same names that return JSON (gateway/builtin/knowledge.py).
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from holdfast.agents.memory_tools import Text
from holdfast.agents.quotation import excerpt, short_citation
from holdfast.core.cursors import Page
from holdfast.knowledge import Document, Knowledge, Reading
from holdfast.knowledge.hits import PassageHit, PassageHits
from holdfast.knowledge.knowledge_reader import KnowledgeReader, readable_owners
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

MOST_FOUND = 20
MOST_LISTED = 50
READ_CHARACTERS = 8000  # of a document that one call returns

SearchLimit = Annotated[int, Meta(ge=1, le=MOST_FOUND)]
Ordinal = Annotated[int, Meta(ge=1)]
Index = Annotated[int, Meta(ge=0)]


def knowledge_tools(knowledge: Knowledge, collections: Sequence[str] | None) -> list[Tool]:
    """Return the tools of an agent that reads the documents of these collections; None means all."""
    limited = None if collections is None else tuple(collections)

    def reader_of(run: Run) -> KnowledgeReader:
        return KnowledgeReader(knowledge, readable_owners(user_name=run.user, agent_name=run.agent), limited)

    async def search_knowledge(run: Run, query: Text, limit: SearchLimit = 5, collection: str | None = None) -> str:
        """Search the documents. Each passage comes with its source: cite it in brackets where you use it.

        Args:
            query: a question or a few words.
            limit: how many passages, at most.
            collection: only documents of this collection.
        """
        hits = await reader_of(run).search(query, limit=limit, collection=collection)
        return describe_hits(hits)

    async def read_document(
        run: Run,
        document: Text,
        section: str | None = None,
        page: Ordinal | None = None,
        chunk: Index | None = None,
        start: Index | None = None,
    ) -> str:
        """Read a document: a section, a page, around a passage, or from the beginning.

        Args:
            document: its name or its id, as search_knowledge and list_documents tell it.
            section: the heading of a section, or its number, such as 4.2.
            page: the number of a page.
            chunk: the number of a passage that search_knowledge found.
            start: the character to begin at, to go on where a reading ended.
        """
        reader = reader_of(run)
        found = await reader.document(document)
        reading = await knowledge.read(
            found.id,
            section=section,
            page=page,
            chunk=chunk,
            around=0 if chunk is None else 1,
            start=start,
            limit=READ_CHARACTERS,
        )
        return describe_reading(found, reading)

    async def list_documents(run: Run, collection: str | None = None, cursor: str | None = None) -> str:
        """List the documents that you can search.

        Args:
            collection: only documents of this collection.
            cursor: as the end of the former list told it, to go on.
        """
        return describe_list(await reader_of(run).list(collection=collection, limit=MOST_LISTED, cursor=cursor))

    return [
        tool_of(search_knowledge, idempotent=True, access="read"),
        tool_of(read_document, idempotent=True, access="read"),
        tool_of(list_documents, idempotent=True, access="read"),
    ]


def describe_hits(hits: PassageHits) -> str:
    """Return the hits as a model reads them: each with its source, its chunk and its section."""
    passages = [excerpt(_source(hit), hit.text) for hit in hits]
    return "\n".join(passages) or "Nothing was found in the documents."


def describe_reading(document: Document, reading: Reading) -> str:
    """Return a part of a document as a model reads it."""
    more = [] if reading.next is None else [f"(There is more: go on with start={reading.next})"]
    return "\n".join([excerpt(document.name + _pages(reading), reading.text), *more])


def describe_list(page: Page[Document]) -> str:
    """Return a page of documents as a model reads it, a line for each."""
    more = [f"(There are more: cursor={page.cursor})"] if page.cursor is not None else []
    return "\n".join([*map(describe_document, page), *more]) or "There are no documents."


def describe_document(document: Document) -> str:
    """Return a document as one line."""
    title = f" “{' '.join(document.title.split())}”" if document.title and document.title != document.name else ""
    pages = "" if document.pages is None else f", {document.pages} pages"
    state = "" if document.status == "ready" else f", {document.status}"
    return f"- {document.name}{title} (collection {document.collection}{pages}{state})"


def _source(hit: PassageHit) -> str:
    section = f", section {' > '.join(hit.section)}" if hit.section else ""
    return f"{short_citation(hit.citation)}, chunk {hit.chunk}{section}"


def _pages(reading: Reading) -> str:
    if reading.first_page is None:
        return ""
    if reading.last_page in (None, reading.first_page):
        return f", p. {reading.first_page}"
    return f", pp. {reading.first_page}-{reading.last_page}"
