"""Exports and erases the documents of an owner."""

from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

import msgspec

from holdfast.core.text import render, restore
from holdfast.knowledge.document import Document, ErasedKnowledge
from holdfast.knowledge.documents import KnowledgeDocuments, document_owner
from holdfast.knowledge.readings import Mark
from holdfast.memory import Owner
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

FORMAT = "holdfast-knowledge"
VERSION = 1
PAGE = 100  # documents or chunks per statement

sql = statements(__name__)


class KnowledgeTransfer:
    """Exports and erases any number of documents, a page at a time."""

    def __init__(self, database: Database, *, documents: KnowledgeDocuments) -> None:
        self._database = database
        self._documents = documents

    async def export(self, owner: Owner | None, *, vectors: bool = False) -> AsyncGenerator[str]:
        """Yield a header, then each document, followed by its chunks, as JSON lines."""
        of = [document_owner(owner)]
        yield _line({"format": FORMAT, "version": VERSION})
        cursor: str | None = None
        while True:
            page = await self._documents.list(owners=of, limit=PAGE, cursor=cursor)
            for document in page:
                yield _line({"document": _exported(document)})
                async for line in self._chunks(document.id, vectors=vectors):
                    yield line
            cursor = page.cursor
            if cursor is None:
                return

    async def erase(self, owner: Owner) -> ErasedKnowledge:
        """Remove the documents of an owner, each with every trace."""
        scopes, ids = await self._documents.scopes_and_ids([owner])
        documents = chunks = 0
        while (id := await self._database.value(sql("next_document"), scopes[0], ids[0])) is not None:
            removed: int | None = await self._database.value(sql("remove_document"), id)
            if removed is not None:  # nobody else removed it meanwhile
                documents += 1
                chunks += removed
        return ErasedKnowledge(documents, chunks)

    async def _chunks(self, document: UUID, *, vectors: bool) -> AsyncGenerator[str]:
        after = -1
        while True:
            rows = await self._database.all(sql("export_chunks"), document, after, vectors, PAGE)
            for row in rows:
                yield _line({"chunk": _exported_chunk(row, vectors=vectors)})
            if len(rows) < PAGE:
                return
            after = rows[-1]["chunk_index"]


def _exported(document: Document) -> dict[str, Any]:
    owner = document.owner
    return {**msgspec.to_builtins(document), "owner": {"scope": owner.scope, "name": owner.name, "agent": owner.agent}}


def _exported_chunk(row: Row, *, vectors: bool) -> dict[str, Any]:
    marks = [] if row["marks"] is None else [Mark(*each) for each in msgspec.json.decode(row["marks"])]
    found = {
        "document": row["document_id"],
        "index": row["chunk_index"],
        "id": row["id"],
        "section": [restore(each) for each in row["section"]],
        "first_page": row["first_page"],
        "last_page": row["last_page"],
        "start": row["char_start"],
        "end": row["char_end"],
        "tokens": row["tokens"],
        "language": row["language"],
        "passages": row["passages"],
        "marks": [[mark.start, mark.page, mark.level, restore(mark.title)] for mark in marks],
        "text": restore(row["content"]),
    }
    if vectors:
        found["model"] = row["embedded"]
        found["vectors"] = row["vectors"]
    return found


def _line(value: object) -> str:
    return render(value).decode()
