"""The service for documents: add, find, search, read and remove them."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from holdfast.core.cursors import Page
from holdfast.core.errors import InvalidInput
from holdfast.core.names import stored_name
from holdfast.knowledge.document import CollectionCount, Document, DocumentStatus, ErasedKnowledge
from holdfast.knowledge.document_uri import document_uri
from holdfast.knowledge.documents import DEFAULT, KnowledgeDocuments, check_limit
from holdfast.knowledge.job import IngestJob, JobState
from holdfast.knowledge.jobs import Jobs
from holdfast.knowledge.readings import LIMIT, DocumentChunk, Outline, Reading, Readings, TextSelection
from holdfast.knowledge.search import KnowledgeSearch, PassageHits
from holdfast.knowledge.transfer import KnowledgeTransfer
from holdfast.knowledge.uploads import Content, Upload, Uploads
from holdfast.memory import Owner

MARKDOWN = "text/markdown"
PLAIN = "text/plain"


class Knowledge:
    """Adds, finds, searches, reads and removes documents of the organization, of agents and of users."""

    def __init__(
        self,
        *,
        documents: KnowledgeDocuments,
        uploads: Uploads,
        jobs: Jobs,
        readings: Readings,
        search: KnowledgeSearch,
        transfer: KnowledgeTransfer,
        announce: Callable[[str], None],
    ) -> None:
        self._documents = documents
        self._uploads = uploads
        self._jobs = jobs
        self._readings = readings
        self._search = search
        self._transfer = transfer
        self._announce = announce  # that the document at an address has changed

    async def add(
        self,
        content: Content | None = None,
        *,
        text: str | None = None,
        name: str | None = None,
        collection: str = DEFAULT,
        owner: Owner | None = None,
        metadata: Mapping[str, Any] | None = None,
        source: str | None = None,
        media_type: str | None = None,
        title: str | None = None,
        wait: bool = True,
    ) -> Document:
        """Add a document: a file by its path, its bytes, a stream of bytes, or a `text`.

        A document of the same name in the same collection of the same owner is replaced, and an unchanged one is
        returned as it is. The work is done in the background; the former version is searched until it has ended.
        With `wait`, this returns then, and raises InvalidInput with the reason if the file cannot be ingested.
        """
        if (content is None) == (text is None):
            raise InvalidInput(
                "the document has no content" if content is None else "both content and text were given",
                next="Pass a path, bytes or a stream, or a text as text=.",
            )
        if name:
            stored_name("document", name)  # raises an error if it cannot be one
        given: Content
        if text is not None:
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(f"{text!r:.100} is not a string", next="Pass bytes as the first argument.")
            given = text.replace("\0", "\ufffd").encode("utf-8", "replace")  # a file with NUL would not be text
            media_type = media_type or _media_type_of_text(name)
        else:
            assert content is not None
            given = content
            if name is None and isinstance(content, str | Path):
                name = Path(content).name
        if not name:
            raise InvalidInput("the document has no name", next="Pass a name, by which it is found and replaced.")
        upload = Upload(
            name=name,
            collection=collection,
            owner=owner,
            metadata=metadata,
            source=source,
            media_type=media_type,
            title=title,
        )
        added = await self._uploads.add(given, upload)
        if added.job is not None:
            self._jobs.wake()
            if wait:
                await self._jobs.wait(added.job, added.row["id"], name)
                return await self._documents.get(added.row["id"])
        return (await self._documents.from_rows([added.row]))[0]

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        owners: Sequence[Owner] | None = None,
        collections: Sequence[str] | None = None,
        documents: Sequence[UUID] | None = None,
        where: Mapping[str, Any] | None = None,
        explain: bool = False,
    ) -> PassageHits:
        """Find the chunks that answer `query`, best first: by default in the documents of the organization.

        `where` must be contained in the metadata of the document.
        """
        return await self._search.search(
            query,
            limit=limit,
            owners=owners,
            collections=collections,
            documents=documents,
            where=where,
            explain=explain,
        )

    async def read(
        self,
        id: UUID,
        *,
        section: str | Sequence[str] | None = None,
        page: int | None = None,
        chunk: int | None = None,
        around: int = 0,
        start: int | None = None,
        end: int | None = None,
        limit: int = LIMIT,
    ) -> Reading:
        """Read a section, a page, a chunk with those `around` it, or a range of characters; at most `limit` characters.

        Without any of these, it reads from the beginning. Pass `next` of the reading as `start` to go on.
        """
        selection = TextSelection(section=section, page=page, chunk=chunk, around=around, start=start, end=end)
        return await self._readings.read(id, selection, limit=limit)

    async def outline(self, id: UUID) -> Outline:
        """Return the sections of a document, with their pages and characters."""
        return await self._readings.outline(id)

    async def chunks(self, id: UUID, *, limit: int = 50, after: int = -1) -> "list[DocumentChunk]":
        """Return the chunks of a document in order: those `after` an index, at most `limit`."""
        check_limit(limit)
        await self._documents.get(id)
        return await self._readings.chunks(id, limit=limit, after=after)

    async def get(self, id: UUID) -> Document:
        """Return a document."""
        return await self._documents.get(id)

    async def find(self, name: str, *, collection: str = DEFAULT, owner: Owner | None = None) -> Document | None:
        """Return the document of this name in a collection of an owner, if there is one."""
        return await self._documents.find(name, collection=collection, owner=owner)

    async def list(
        self,
        *,
        owners: Sequence[Owner] | None = None,
        collection: str | None = None,
        collections: Sequence[str] | None = None,
        name: str | None = None,
        status: DocumentStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Document]:
        """Return documents, newest first: of all owners, or of some; of all collections, or of some; of one name."""
        if collection is not None:
            collections = [collection] if collections is None or collection in collections else []
        return await self._documents.list(
            owners=owners, collections=collections, name=name, status=status, limit=limit, cursor=cursor
        )

    async def collections(
        self, owners: Sequence[Owner] | None = None, *, collections: Sequence[str] | None = None
    ) -> "list[CollectionCount]":
        """Return the collections, by name, and how many documents and chunks each has."""
        return await self._documents.collections(owners, collections=collections)

    async def update(
        self,
        id: UUID,
        *,
        metadata: Mapping[str, Any] | None = None,
        title: str | None = None,
        collection: str | None = None,
    ) -> Document:
        """Change what is known about a document. Omitted fields are unchanged."""
        former = await self._documents.get(id)
        changed = await self._documents.update(id, metadata=metadata, title=title, collection=collection)
        for each in {former.collection, changed.collection}:
            self._announce(document_uri(each, changed.name))
        return changed

    async def remove(self, id: UUID) -> None:
        """Remove a document with every trace: its chunks, vectors, words, entities, jobs and uploads."""
        former = await self._documents.get(id)
        await self._documents.remove(id)
        self._announce(document_uri(former.collection, former.name))

    async def jobs(
        self,
        *,
        document: UUID | None = None,
        ids: Sequence[UUID] | None = None,
        owners: Sequence[Owner] | None = None,
        collections: Sequence[str] | None = None,
        state: JobState | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[IngestJob]:
        """Return jobs, newest first: of all documents or of one, of all owners or of some, all or those of `ids`."""
        return await self._jobs.list(
            document=document,
            ids=ids,
            owners=owners,
            collections=collections,
            state=state,
            limit=limit,
            cursor=cursor,
        )

    async def job(self, id: UUID) -> IngestJob:
        """Return a job."""
        return await self._jobs.get(id)

    async def retry(self, job: UUID) -> IngestJob:
        """Run a failed job again, from where it was."""
        return await self._jobs.retry(job)

    def export(self, owner: Owner | None = None, *, vectors: bool = False) -> AsyncGenerator[str]:
        """Yield the documents of an owner with their chunks as JSON lines."""
        return self._transfer.export(owner, vectors=vectors)

    async def erase(self, owner: Owner) -> ErasedKnowledge:
        """Remove all documents of an owner with every trace."""
        return await self._transfer.erase(owner)


def _media_type_of_text(name: str | None) -> str | None:
    """Return the media type of a text: what its name says, else Markdown, which plain text is, too."""
    suffix = Path(name or "").suffix.lower()
    if suffix in ("", ".md", ".markdown"):
        return MARKDOWN
    return PLAIN if suffix == ".txt" else None
