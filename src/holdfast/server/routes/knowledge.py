"""Knowledge: add, search, read, change, remove, export and erase documents."""

from collections.abc import Mapping
from typing import Annotated, Any, cast
from uuid import UUID

import msgspec
from starlette.responses import Response

from holdfast.authorization import DocumentOwner, DocumentScope, Name
from holdfast.core.config import Config
from holdfast.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from holdfast.core.text import parse
from holdfast.knowledge import (
    CollectionCount,
    Document,
    DocumentChunk,
    DocumentStatus,
    ErasedKnowledge,
    IngestJob,
    Reading,
    Section,
)
from holdfast.knowledge.readings import LIMIT, MAX_LIMIT
from holdfast.memory import Owner, ScoreParts
from holdfast.memory.query import MAX_QUESTION
from holdfast.server.attachments import json_lines
from holdfast.server.fields import Cursor, Limit, NotBlank, ShortName, about, documented, present
from holdfast.server.middleware import UPLOAD_SECONDS
from holdfast.server.operations import JSON_LINES, ApiCall, ApiOperations, BodyStream
from holdfast.server.pages import page_of, page_of_items, within_a_page
from holdfast.server.problems import WrongMediaType

operations = ApiOperations("knowledge")

FORM_TYPES = ("multipart/form-data",)
# What programs send if nobody has told them what a file is.
UNTOLD_TYPES = ("", "application/octet-stream", "application/x-www-form-urlencoded")
MEGABYTE = 1024 * 1024

DocumentName = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Text = Annotated[NotBlank, msgspec.Meta(min_length=1)]
Question = Annotated[NotBlank, msgspec.Meta(max_length=MAX_QUESTION)]
Found = Annotated[int, msgspec.Meta(ge=1, le=100, description="Maximum number of results.")]
Ordinal = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Index = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Around = Annotated[int, msgspec.Meta(ge=0, le=1000)]
Character = Annotated[int, msgspec.Meta(ge=0, le=2**60)]
ReadLimit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT, description="Maximum number of characters.")]
Collection = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Scope = Annotated[DocumentScope, about("Whose it is: the organization's, an agent's or a user's.")]
OwnedBy = Annotated[Name | None, about("Name of the agent, or of the user. Without a name, the user is yourself.")]

# An agent needs a name, a user can have one, and the organization has none.
NamedDocumentOwner = Annotated[
    DocumentOwner,
    documented(
        anyOf=[
            {"properties": {"scope": {"const": "user"}}, "required": ["scope"]},
            {
                "properties": {"scope": {"const": "agent"}, "name": {"type": "string"}},
                "required": ["scope", "name"],
            },
            {"properties": {"scope": {"const": "organization"}, "name": {"type": "null"}}},
        ]
    ),
]


class NewText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document as text: plain text or Markdown. With `wait`, the response comes when it is ingested."""

    text: Text
    name: DocumentName
    collection: Collection = "default"
    owner: NamedDocumentOwner = DocumentOwner()
    title: ShortName | None = None
    source: Name | None = None
    metadata: dict[str, Any] | None = None
    media_type: Annotated[str, msgspec.Meta(pattern=r"^text/[a-z0-9.+-]{1,100}$")] | None = None
    wait: bool = False


class DocumentChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to what is known about a document. Omitted fields are unchanged. To change its text, add it again."""

    metadata: dict[str, Any] | None = None
    title: ShortName | None = None
    collection: Collection | None = None


class KnowledgeQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A search. `where` must be contained in the metadata of the documents.

    By default, it searches the documents of the organization and of the caller.
    """

    query: Question
    limit: Found = 10
    owners: Annotated[list[NamedDocumentOwner], msgspec.Meta(min_length=1, max_length=20)] | None = None
    collections: Annotated[list[Collection], msgspec.Meta(max_length=100)] | None = None
    documents: Annotated[list[UUID], msgspec.Meta(max_length=1000)] | None = None
    where: dict[str, Any] | None = None
    explain: bool = False


class Erasure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose documents to erase."""

    owner: NamedDocumentOwner


class AddedDocument(msgspec.Struct, frozen=True):
    """A document, and the job that ingests it; null if nothing has changed, or if it has ended."""

    document: Document
    job: IngestJob | None


class DocumentPage(msgspec.Struct, frozen=True):
    """Documents, newest first. Pass `cursor` to get the next page; it is null on the last page."""

    documents: list[Document]
    cursor: str | None


class ChunkPage(msgspec.Struct, frozen=True):
    """Chunks of a document, in order. Pass `cursor` as `after` to get the next page; null on the last page."""

    chunks: list[DocumentChunk]
    cursor: int | None


class FoundPassage(msgspec.Struct, frozen=True):
    """A passage of a document. `text` is `document_text[start:end]`, of the chunk with the index `chunk`.

    `parts` add up to the score; they are there with `explain`.
    """

    id: UUID
    document: UUID
    name: str
    citation: str
    text: str
    section: tuple[str, ...]
    page: int | None
    last_page: int | None
    start: int
    end: int
    chunk: int
    collection: str
    owner: Owner
    title: str | None
    source: str | None
    metadata: dict[str, Any]
    score: float
    parts: ScoreParts | None


class FoundPassages(msgspec.Struct, frozen=True):
    """Hits, best first. If the search used words only, `reduced` says why."""

    hits: list[FoundPassage]
    reduced: str


class DocumentOutline(msgspec.Struct, frozen=True):
    """The sections of a document. `is_cut`: it has more."""

    sections: list[Section]
    is_cut: bool


class Collections(msgspec.Struct, frozen=True):
    """Collections with the number of their documents and chunks."""

    collections: list[CollectionCount]


def _largest(config: Config) -> int:
    return config.memory.knowledge.max_file_mb * MEGABYTE


@operations.declare(
    "POST", "/api/knowledge", needs="write", status=202, or_status=200, errors=[NotFound, Conflict, Unavailable],
    body_format="application/octet-stream", max_body_bytes=_largest, audit=True,
)  # fmt: skip
async def add_document(
    call: ApiCall,
    body: BodyStream,
    name: Annotated[DocumentName, about("Name of the document; the same name replaces it.")],
    collection: Annotated[Collection, about("Collection to add it to.")] = "default",
    scope: Scope = "organization",
    owner: OwnedBy = None,
    title: Annotated[ShortName | None, about("Title; by default the document's own.")] = None,
    source: Annotated[Name | None, about("Where it comes from, such as its address.")] = None,
    metadata: Annotated[str | None, about("JSON object that searches can filter by.")] = None,
    wait: Annotated[bool, about("Respond when it is ingested.")] = False,
) -> AddedDocument:
    """Add a document, or a new version of it. The body is the file, with its media type if it is known.

    The file is stored as it arrives, and ingested in the background. If it is the same as before, nothing happens, and
    the status is 200.
    """
    named = DocumentOwner(scope, owner)
    media_type = _media_type(body)
    owned = await _owner_to_change(call, named, name, collection)
    call.slot.stay(UPLOAD_SECONDS)
    found = await call.engine.knowledge.add(
        aiter(body),
        name=name,
        collection=collection,
        owner=owned,
        metadata=_metadata(metadata),
        source=source,
        media_type=media_type,
        title=title,
        wait=wait,
    )
    return await _added(call, found)


# Fixed paths come before `{id}`: the first route that matches is used.
@operations.declare(
    "POST", "/api/knowledge/text", needs="write", status=202, or_status=200, errors=[NotFound, Conflict, Unavailable],
    audit=True,
)  # fmt: skip
async def add_text(call: ApiCall, body: NewText) -> AddedDocument:
    """Add a document that is a text, or a new version of it."""
    owned = await _owner_to_change(call, body.owner, body.name, body.collection)
    call.slot.stay(UPLOAD_SECONDS)
    found = await call.engine.knowledge.add(
        text=body.text,
        name=body.name,
        collection=body.collection,
        owner=owned,
        metadata=body.metadata,
        source=body.source,
        media_type=body.media_type,
        title=body.title,
        wait=body.wait,
    )
    return await _added(call, found)


@operations.declare("GET", "/api/knowledge", needs="read", errors=[NotFound])
async def list_documents(
    call: ApiCall,
    scope: Annotated[DocumentScope | None, about("Only those of the organization, an agent or a user.")] = None,
    owner: OwnedBy = None,
    collection: Annotated[Collection | None, about("Only documents of this collection.")] = None,
    name: Annotated[DocumentName | None, about("Only documents of this name.")] = None,
    status: Annotated[DocumentStatus | None, about("Only documents in this state.")] = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> DocumentPage:
    """List documents, newest first: those of the organization and your own, or of another owner."""
    reader = await call.authorization.reader(None if scope is None else [DocumentOwner(scope, owner)])

    async def read(most: int, cursor: str | None) -> tuple[list[Document], str | None]:
        page = await reader.list(collection=collection, name=name, status=status, limit=most, cursor=cursor)
        return page, page.cursor

    return DocumentPage(*await page_of(read, limit=limit, start=cursor))


@operations.declare("POST", "/api/knowledge/search", needs="read", errors=[NotFound])
async def search_knowledge(call: ApiCall, body: KnowledgeQuery) -> FoundPassages:
    """Search documents: the passages that answer a question, each with its document, page and section."""
    reader = await call.authorization.reader(body.owners)
    hits = await call.engine.knowledge.search(
        body.query,
        limit=body.limit,
        owners=reader.owners,
        collections=await call.authorization.within(body.collections),
        documents=body.documents,
        where=body.where,
        explain=body.explain,
    )
    found = [FoundPassage(**{name: getattr(hit, name) for name in FoundPassage.__struct_fields__}) for hit in hits]
    return FoundPassages(await within_a_page(found), hits.reduced)


@operations.declare("GET", "/api/knowledge/collections", needs="read", errors=[NotFound])
async def list_collections(
    call: ApiCall,
    scope: Annotated[DocumentScope | None, about("Only those of the organization, an agent or a user.")] = None,
    owner: OwnedBy = None,
) -> Collections:
    """List collections, with the number of their documents and chunks."""
    reader = await call.authorization.reader(None if scope is None else [DocumentOwner(scope, owner)])
    return Collections([*await reader.count_by_collection()])


@operations.declare(
    "GET", "/api/knowledge/export", needs="read", errors=[NotFound], response_format=JSON_LINES, audit=True
)
async def export_knowledge(call: ApiCall, scope: Scope = "organization", owner: OwnedBy = None) -> Response:
    """Export an owner's documents with their text as JSON lines, with a header."""
    _say_owner(call, DocumentOwner(scope, owner))
    owned = await call.authorization.whole_document_owner(DocumentOwner(scope, owner), to_change=False)
    return json_lines(call.engine.knowledge.export(owned))


@operations.declare("POST", "/api/knowledge/erase", needs="write", errors=[NotFound], audit=True)
async def erase_knowledge(call: ApiCall, body: Erasure) -> ErasedKnowledge:
    """Erase all documents of an owner, with everything that was made of them."""
    _say_owner(call, body.owner)
    owned = await call.authorization.whole_document_owner(body.owner, to_change=True)
    return await call.engine.knowledge.erase(owned)


@operations.declare("GET", "/api/knowledge/{id}", needs="read", errors=[NotFound])
async def get_document(call: ApiCall, id: UUID) -> Document:
    """Get what is known about a document."""
    return await call.authorization.document(id)


@operations.declare(
    "PATCH", "/api/knowledge/{id}", needs="write", errors=[NotFound, Conflict], audit=["title", "collection"]
)
async def change_document(
    call: ApiCall,
    id: UUID,
    body: Annotated[DocumentChange, documented(anyOf=present(*DocumentChange.__struct_fields__))],
) -> Document:
    """Change the title, the metadata or the collection of a document."""
    found = await call.authorization.document_to_change(id)
    if body.collection is not None:
        named = DocumentOwner(cast(DocumentScope, found.owner.scope), found.owner.name or None)
        await call.authorization.document_owner_to_change(named, body.collection)
    return await call.engine.knowledge.update(id, metadata=body.metadata, title=body.title, collection=body.collection)


@operations.declare("DELETE", "/api/knowledge/{id}", needs="write", status=204, errors=[NotFound], audit=True)
async def remove_document(call: ApiCall, id: UUID) -> None:
    """Remove a document, with everything that was made of it."""
    found = await call.authorization.document_to_change(id)
    call.details["name"] = found.name
    await call.engine.knowledge.remove(id)


@operations.declare("GET", "/api/knowledge/{id}/text", needs="read", errors=[NotFound])
async def read_document(
    call: ApiCall,
    id: UUID,
    section: Annotated[Name | None, about("Heading of a section, or its number, such as 4.2.")] = None,
    page: Annotated[Ordinal | None, about("Number of a page, slide or sheet.")] = None,
    chunk: Annotated[Index | None, about("Number of a chunk.")] = None,
    around: Annotated[Around, about("Chunks to read before and after it.")] = 0,
    start: Annotated[Character | None, about("First character.")] = None,
    end: Annotated[Character | None, about("Character after the last one.")] = None,
    limit: ReadLimit = LIMIT,
) -> Reading:
    """Read the text of a document: a section, a page, a chunk, a range of characters, or from the beginning."""
    await call.authorization.document(id)
    return await call.engine.knowledge.read(
        id, section=section, page=page, chunk=chunk, around=around, start=start, end=end, limit=limit
    )


@operations.declare("GET", "/api/knowledge/{id}/outline", needs="read", errors=[NotFound])
async def document_outline(call: ApiCall, id: UUID) -> DocumentOutline:
    """List the sections of a document, with the page and the characters of each."""
    await call.authorization.document(id)
    outline = await call.engine.knowledge.outline(id)
    return DocumentOutline([*outline], outline.is_cut)


@operations.declare("GET", "/api/knowledge/{id}/chunks", needs="read", errors=[NotFound])
async def list_chunks(call: ApiCall, id: UUID, after: Index | None = None, limit: Limit = 50) -> ChunkPage:
    """List the chunks of a document in order; with `after`, those after a chunk."""
    await call.authorization.document(id)

    async def read(most: int, after: int | None) -> list[DocumentChunk]:
        return await call.engine.knowledge.chunks(id, limit=most, after=-1 if after is None else after)

    return ChunkPage(*await page_of_items(read, lambda chunk: chunk.index, limit=limit, start=after))


def _media_type(body: BodyStream) -> str | None:
    media_type = body.media_type
    if media_type in FORM_TYPES:
        raise WrongMediaType(media_type, "the media type of the file, with the file itself as the body")
    return None if media_type in UNTOLD_TYPES else media_type


def _metadata(text: str | None) -> Mapping[str, Any] | None:
    if text is None:
        return None
    try:
        value: object = parse(text.encode(errors="surrogatepass"))
    except InvalidInput as error:
        raise InvalidInput("the parameter 'metadata' is invalid", why=error.why, next="Send a JSON object.") from None
    if not isinstance(value, dict):
        raise InvalidInput("the parameter 'metadata' is invalid", why="it is no object", next="Send a JSON object.")
    return cast(dict[str, Any], value)


async def _owner_to_change(call: ApiCall, named: DocumentOwner, name: str, collection: str) -> Owner:
    """Return the owner of a new document, if the caller may add it; and say in the audit what it is."""
    call.target = name
    call.details["collection"] = collection
    _say_owner(call, named)
    return await call.authorization.document_owner_to_change(named, collection)


def _say_owner(call: ApiCall, named: DocumentOwner) -> None:
    call.details["scope"] = named.scope
    call.details |= {} if named.name is None else {"owner": named.name}


async def _added(call: ApiCall, document: Document) -> AddedDocument:
    if document.status == "ready":
        call.status = 200
        return AddedDocument(document, None)
    jobs = await call.engine.knowledge.jobs(document=document.id, limit=1)
    return AddedDocument(document, jobs[0] if jobs else None)
