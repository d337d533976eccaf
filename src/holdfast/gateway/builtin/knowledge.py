"""Knowledge as tools and resources: a caller searches, reads and lists the documents that it may read.

The tools do the same as those of agents (see agents/knowledge_tools.py), but return JSON, because their caller is a
program.
"""

from typing import Any

from holdfast.agents.knowledge_tools import MOST_LISTED, READ_CHARACTERS, Index, Ordinal, SearchLimit
from holdfast.agents.memory_tools import Text
from holdfast.engine import Engine
from holdfast.gateway.runs import authorization_of
from holdfast.gateway.tool_search import note_of
from holdfast.knowledge import Document, Reading
from holdfast.knowledge.document_uri import DOCUMENT, PAGE, document_uri
from holdfast.knowledge.hits import PassageHit
from holdfast.knowledge.readings import MAX_LIMIT
from holdfast.skills.function_tools import tool_of
from holdfast.skills.resource import McpResource, resource_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

MARKDOWN = "text/markdown"
RECENT = 100  # newest documents whose names are completed
SHARE = 2  # of the largest result, that a document gets: JSON can double it


def knowledge_tools(engine: Engine) -> list[Tool]:
    """Return the tools that search, read and list documents."""

    async def search_knowledge(
        run: Run, query: Text, limit: SearchLimit = 5, collection: str | None = None
    ) -> dict[str, Any]:
        """Search the documents of the organization and the user. Each passage has its citation: document and page.

        Args:
            query: a question or a few words.
            limit: how many passages, at most.
            collection: only documents of this collection.
        """
        reader = await authorization_of(engine, run).reader()
        hits = await reader.search(query, limit=limit, collection=collection)
        return {"passages": [_passage(hit) for hit in hits], **note_of(hits.reduced)}

    async def read_document(
        run: Run,
        document: Text,
        section: str | None = None,
        page: Ordinal | None = None,
        chunk: Index | None = None,
        start: Index | None = None,
    ) -> dict[str, Any]:
        """Read a document: a section, a page, around a passage, or from the beginning.

        Args:
            document: its name or its id, as search_knowledge and list_documents tell it.
            section: the heading of a section, or its number, such as 4.2.
            page: the number of a page.
            chunk: the number of a passage that search_knowledge found.
            start: the character to begin at: `next` of the former reading.
        """
        found = await (await authorization_of(engine, run).reader()).document(document)
        around = 0 if chunk is None else 1
        reading = await engine.knowledge.read(
            found.id, section=section, page=page, chunk=chunk, around=around, start=start, limit=READ_CHARACTERS
        )
        return {"document": _document(found), **_reading(reading)}

    async def list_documents(run: Run, collection: str | None = None, cursor: str | None = None) -> dict[str, Any]:
        """List the documents of the organization and the user, the newest first.

        Args:
            collection: only documents of this collection.
            cursor: `cursor` of the former list, to go on.
        """
        reader = await authorization_of(engine, run).reader()
        found = await reader.list(collection=collection, limit=MOST_LISTED, cursor=cursor)
        more = {} if found.cursor is None else {"cursor": found.cursor}
        return {"documents": [_document(each) for each in found], **more}

    return [
        tool_of(search_knowledge, idempotent=True, access="read"),
        tool_of(read_document, idempotent=True, access="read"),
        tool_of(list_documents, idempotent=True, access="read"),
    ]


def knowledge_resources(engine: Engine) -> list[McpResource]:
    """Return the resources that are documents, and pages of documents."""

    async def knowledge_document(collection: str, document: str, run: Run) -> str:
        """A document: all of it, or its beginning if it is large."""
        return await _read(collection, document, None, run)

    async def knowledge_page(collection: str, document: str, page: int, run: Run) -> str:
        """A page of a document."""
        return await _read(collection, document, page, run)

    async def _read(collection: str, document: str, page: int | None, run: Run) -> str:
        reader = await authorization_of(engine, run).reader()
        found = await reader.document(document, collection=collection)
        limit = min(MAX_LIMIT, engine.config.gateway.max_result_bytes // SHARE)
        reading = await engine.knowledge.read(found.id, page=page, limit=limit)
        if reading.next is None:
            return reading.text
        more = f"[… {found.characters - reading.end:,} more characters: read_document with start={reading.next}]"
        return f"{reading.text}\n\n{more}"

    async def collection_names(typed: str, run: Run) -> list[str]:
        counts = await (await authorization_of(engine, run).reader()).count_by_collection()
        return [each.name for each in counts if each.name.startswith(typed)]

    async def document_names(typed: str, run: Run, collection: str = "default") -> list[str]:
        reader = await authorization_of(engine, run).reader()
        found = await reader.list(collection=collection, limit=RECENT)
        return [each.name for each in found if each.name.startswith(typed)]

    completed = {"collection": collection_names, "document": document_names}
    return [
        resource_of(function, uri, name=name, mime_type=MARKDOWN, complete=completed)
        for function, uri, name in (
            (knowledge_document, DOCUMENT, "document"),
            (knowledge_page, PAGE, "page of a document"),
        )
    ]


async def documents_of(
    engine: Engine, run: Run, *, limit: int, cursor: str | None = None
) -> tuple[list[Document], str | None]:
    """Return a page of the documents that a caller may read, newest first, and the cursor of the next page."""
    reader = await authorization_of(engine, run).reader()
    page = await reader.list(limit=limit, cursor=cursor)
    return [*page], page.cursor


def _passage(hit: PassageHit) -> dict[str, Any]:
    fields = {
        "citation": hit.citation,
        "text": hit.text,
        "document": hit.name,
        "id": str(hit.document),
        "chunk": hit.chunk,
        "section": " > ".join(hit.section),
        "page": hit.page,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _reading(reading: Reading) -> dict[str, Any]:
    fields = {
        "text": reading.text,
        "section": " > ".join(reading.section),
        "first_page": reading.first_page,
        "last_page": reading.last_page,
        "start": reading.start,
        "end": reading.end,
        "next": reading.next,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _document(document: Document) -> dict[str, Any]:
    fields = {
        "name": document.name,
        "id": str(document.id),
        "title": document.title,
        "collection": document.collection,
        "pages": document.pages,
        "characters": document.characters,
        "status": None if document.status == "ready" else document.status,
        "uri": document_uri(document.collection, document.name),
    }
    return {name: value for name, value in fields.items() if value is not None}
