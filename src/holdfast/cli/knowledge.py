"""`holdfast knowledge`: add, search, read, change and remove documents."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.arguments import json_object
from holdfast.cli.document_files import find_files
from holdfast.cli.document_uploads import AddedFiles, Destination, DocumentUploads
from holdfast.cli.graph import add_graph_commands
from holdfast.cli.ids import DIGITS, full_id, whole_id
from holdfast.cli.ingest_progress import ingest_progress
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.memory import DIGITS as SCORE_DIGITS
from holdfast.cli.memory import not_empty, question, summands
from holdfast.cli.operation_commands import Fields, derive, table
from holdfast.cli.output import printable, write, write_bytes
from holdfast.core.errors import InvalidInput, NotFound

app = group(
    "Add documents, search and read them. By default, they are the organization's; with --user or --agent, those of a "
    "user or an agent."
)

PAGE = 200  # documents in one request
EXCERPT = 300  # characters of a passage in a list
FAILED = 1  # exit code

# A copy from `holdfast.knowledge`, which takes too long to load for a command that only calls a server.
Status = Literal["pending", "running", "ready", "failed"]

Paths = Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders, patterns, or - for stdin.")]
Document = Annotated[str, typer.Argument(metavar="DOCUMENT", help="Name or id.", callback=not_empty)]
User = Annotated[
    str | None, typer.Option(metavar="NAME", help="Documents of a user.", show_default=False, callback=not_empty)
]
Agent = Annotated[str | None, typer.Option(metavar="NAME", help="Documents of an agent.", callback=not_empty)]
Collection = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only documents of this collection.", callback=not_empty)
]


@command(app)
async def add(
    invocation: Invocation,
    paths: Paths,
    collection: Annotated[
        str, typer.Option(metavar="NAME", help="Collection to add them to.", callback=not_empty)
    ] = "default",
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of the document. [default: its path in the folder]", callback=not_empty
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Metadata that searches can filter by. Can be repeated."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Where they come from.", callback=not_empty)
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the document.", callback=not_empty)
    ] = None,
    user: User = None,
    agent: Agent = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return when they are uploaded.")] = False,
) -> int:
    """Add files as documents: text, Markdown, HTML, PDF, Office files, EPUB and source code.

    A document of the same name is replaced. An unchanged file is not uploaded again. A file that fails is reported, and
    the others go on.

    \b
    holdfast knowledge add handbook/ --collection handbook
    holdfast knowledge add report.pdf --user ann
    """
    scope, owner = owner_of(user, agent) or ("organization", None)
    given = _metadata(metadata)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        found = await asyncio.to_thread(find_files, paths, name, Path(folder))
        if title is not None and len(found.files) != 1:
            raise InvalidInput(f"--title is of one document, and there are {len(found.files)} files", next="Omit it.")
        destination = Destination(scope, owner, collection, given, source, title)
        async with reach(invocation) as api:
            size = sum(file.size for file in found.files)
            text = None if given is None else json.dumps(given)
            uploads = DocumentUploads(api, destination, metadata_text=text)
            try:
                with ingest_progress(size=size, files=len(found.files), quiet=invocation.json) as progress:
                    await uploads.add(found.files, progress, wait=not no_wait)
            except asyncio.CancelledError:
                _say_stopped(invocation, uploads.open_jobs)
                raise
    return _report(invocation, uploads.result, found.skipped, waited=not no_wait)


@command(app)
async def search(
    invocation: Invocation,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to search for.", parser=question)],
    collection: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only documents of this collection. Can be repeated.", callback=not_empty),
    ] = None,
    document: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DOCUMENT", help="Only this document, by name or id. Can be repeated.", callback=not_empty
        ),
    ] = None,
    user: User = None,
    agent: Agent = None,
    where: Annotated[
        str | None, typer.Option(metavar="JSON", help="Only documents whose metadata contains this object.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of passages.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
) -> None:
    """Search documents: the passages that answer a question, best first."""
    owner = owner_of(user, agent)
    async with reach(invocation) as api:
        ids = None if not document else [(await _document(api, each, owner))["id"] for each in document]
        given = {
            "query": query,
            "limit": limit,
            "collections": collection or None,
            "documents": ids,
            "owners": None if owner is None else [_named(owner)],
            "where": json_object("--where", where, '{"year": 2026}'),
            "explain": explain,
        }
        found = await api.call(
            "search_knowledge", **{name: value for name, value in given.items() if value is not None}
        )
    invocation.output.record(found)
    if not invocation.json:
        _show_hits(invocation, found["hits"], explain=explain)
    if found["reduced"]:
        invocation.output.say(found["reduced"])


@command(app)
async def ls(
    invocation: Invocation,
    collection: Collection = None,
    status: Annotated[
        Status | None, typer.Option(metavar="NAME", help="Only these: pending, running, ready or failed.")
    ] = None,
    user: User = None,
    agent: Agent = None,
    limit: Annotated[int, typer.Option(min=1, max=PAGE, help="Maximum number of documents.")] = 50,
) -> None:
    """List documents, newest first: the organization's and your own."""
    given = {**_place(owner_of(user, agent)), "collection": collection, "status": status, "limit": limit}
    async with reach(invocation) as api:
        found = await api.call("list_documents", **given)
    columns = ["name", "collection", "owner", "status", "pages", "chunks", "size", "updated_at", "id"]
    show = table(columns, ids=["id"], owner=lambda row: _owner_text(row["owner"]), size=lambda row: _size(row["size"]))
    show(invocation, given, found)
    for each in found["documents"]:
        if each["status"] == "failed":
            invocation.output.say(f"{each['name']}: {each['error']}")


@command(app)
async def show(invocation: Invocation, document: Document, collection: Collection = None) -> None:
    """Show a document: what is known about it, and its sections."""
    async with reach(invocation) as api:
        found = await _document(api, document, None, collection)
        found["sections"] = (await api.call("document_outline", id=found["id"]))["sections"]
    if invocation.json:
        invocation.output.record(found)
    else:
        write(sys.stdout, format_document(found))


@command(app)
async def read(
    invocation: Invocation,
    document: Document,
    section: Annotated[
        str | None, typer.Option(metavar="HEADING", help="Only this section: its heading, or its number.")
    ] = None,
    page: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only this page.")] = None,
    chunk: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only this chunk.")] = None,
    around: Annotated[int, typer.Option(metavar="N", min=0, max=1000, help="Chunks before and after it, too.")] = 0,
    collection: Collection = None,
) -> None:
    """Print the text of a document, as it is searched: all of it, a section, a page or a chunk."""
    async with reach(invocation) as api:
        found = await _document(api, document, None, collection)
        part = {"section": section, "page": page, "chunk": chunk, "around": around}
        reading = await api.call("read_document", id=found["id"], **part)
        if invocation.json:
            invocation.output.record(reading)
            return
        write_bytes(printable(reading["text"]).encode(errors="replace"))
        while reading["next"] is not None:
            reading = await api.call("read_document", id=found["id"], **part, start=reading["next"])
            write_bytes(printable(reading["text"]).encode(errors="replace"))
    write(sys.stdout, "")


@command(app)
async def edit(
    invocation: Invocation,
    document: Document,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="New title.", callback=not_empty)] = None,
    move: Annotated[
        str | None, typer.Option(metavar="NAME", help="Collection to move it to.", callback=not_empty)
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="New metadata. Can be repeated.")
    ] = None,
) -> None:
    """Change the title, the metadata or the collection of a document."""
    async with reach(invocation) as api:
        found = await _document(api, document, None)
        given = {"title": title, "collection": move, "metadata": _metadata(metadata)}
        changed = await api.call("change_document", id=found["id"], **given)
    invocation.output.record(changed)
    invocation.output.say(f"Changed {changed['name']}.")


@command(app)
async def rm(
    invocation: Invocation,
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="[DOCUMENT]...", help="Names or ids.", callback=not_empty)
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Collection of the documents; without any, all of it.", callback=not_empty),
    ] = None,
    user: User = None,
    agent: Agent = None,
) -> None:
    """Remove documents, or all documents of a collection, with everything that was made of them.

    \b
    holdfast knowledge rm handbook.pdf
    holdfast knowledge rm --collection drafts
    """
    if not documents and collection is None:
        raise InvalidInput("nothing is named", next="Give documents, or --collection NAME.")
    owner = owner_of(user, agent)
    removed: list[str] = []
    async with reach(invocation) as api:
        if documents:
            # Find all of them before the first is removed.
            found = [await _document(api, each, owner, collection) for each in documents]
        else:
            place = _place(owner or ("organization", None))
            found = await _all(api, **place, collection=collection)
        for each in {each["id"]: each for each in found}.values():
            await api.call("remove_document", id=each["id"])
            removed.append(each["name"])
    invocation.output.record({"removed": removed})
    invocation.output.say(f"Removed {_count(len(removed), 'document')}.")


derive(
    app,
    "jobs",
    "list_ingest_jobs",
    table(
        {
            "name": "DOCUMENT",
            "collection": "COLLECTION",
            "state": "STATE",
            "units": "READ",
            "chunks": "CHUNKS",
            "embedded": "EMBEDDED",
            "error": "ERROR",
            "updated_at": "UPDATED",
            "id": "ID",
        },
        ids=["id"],
        units=lambda row: row["units"] if row["total_units"] is None else f"{row['units']}/{row['total_units']}",
    ),
)


@command(app)
async def retry(
    invocation: Invocation,
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Id. [default: all that failed]")] = None,
) -> None:
    """Retry jobs that failed."""
    async with reach(invocation) as api:
        if job is not None:
            ids = [str(await whole_id(api, "ingest_job", job))]
        else:
            ids = [each["id"] for each in await _all(api, "list_ingest_jobs", "jobs", state="failed")]
        retried = [await api.call("retry_ingest_job", id=id) for id in ids]
    invocation.output.record({"jobs": retried})
    invocation.output.say(f"Retrying {_count(len(retried), 'job')}.")


@command(app)
async def collections(invocation: Invocation, user: User = None, agent: Agent = None) -> None:
    """List collections, with the number of their documents and chunks."""
    given = _place(owner_of(user, agent))
    async with reach(invocation) as api:
        found = await api.call("list_collections", **given)
    table(["name", "documents", "chunks"])(invocation, given, found)


@command(app)
async def export(invocation: Invocation, user: User = None, agent: Agent = None) -> None:
    """Export documents with their text as JSON lines.

    \b
    holdfast knowledge export --user ann > ann.jsonl
    """
    place = _place(owner_of(user, agent) or ("organization", None))
    lines = 0

    def pass_on(part: bytes) -> None:
        nonlocal lines
        write_bytes(part)
        lines += part.count(b"\n")

    async with reach(invocation) as api:
        await api.download("export_knowledge", pass_on, **place)
    invocation.output.say(f"Exported {_count(max(0, lines - 1), 'line')}.")


@command(app)
async def erase(
    invocation: Invocation,
    user: User = None,
    agent: Agent = None,
    org: Annotated[bool, typer.Option("--org", help="Documents of the organization.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase all documents of a user, an agent or the organization."""
    owner = owner_of(user, agent)
    if (owner is None) != org:
        raise InvalidInput("it is not clear whose documents are meant", next="Give one of --user, --agent and --org.")
    owner = owner or ("organization", None)
    whose = " ".join(filter(None, owner))
    if not yes:
        if invocation.json or not sys.stdin.isatty():
            raise InvalidInput(f"the documents of {whose} were not erased", next="Confirm it with --yes.")
        if not typer.confirm(f"Erase all documents of {whose}?", err=True):
            return
    async with reach(invocation) as api:
        erased = await api.call("erase_knowledge", owner=_named(owner))
    invocation.output.record(erased)
    invocation.output.say(f"Erased {_count(erased['documents'], 'document')} of {whose}.")


add_graph_commands(app)


def owner_of(user: str | None, agent: str | None) -> tuple[str, str | None] | None:
    """Return the scope and the name of the owner that the options name; None if they name none."""
    if user is not None and agent is not None:
        raise InvalidInput("the options name several owners", next="Give only one of --user and --agent.")
    if user is not None:
        return "user", user
    return None if agent is None else ("agent", agent)


def format_document(document: Mapping[str, Any]) -> str:
    """Format a document for the terminal."""
    about = {
        "title": document["title"],
        "owner": _owner_text(document["owner"]),
        "collection": document["collection"],
        "status": document["status"] + (f": {document['error']}" if document["error"] else ""),
        "source": document["source"],
        "type": document["media_type"],
        "size": _size(document["size"]),
        "version": document["version"],
        "pages": document["pages"],
        "chunks": document["chunks"],
        "characters": document["characters"],
        "metadata": json.dumps(document["metadata"], ensure_ascii=False) if document["metadata"] else "",
        "id": document["id"],
    }
    lines = [document["name"], *(f"{name:<11}  {value}" for name, value in about.items() if value not in (None, ""))]
    sections = [
        f"{'  ' * (len(each['path']) - 1)}{each['path'][-1]}" + (f"  (p. {each['page']})" if each["page"] else "")
        for each in document["sections"]
    ]
    return printable("\n".join([*lines, *(["", *sections] if sections else [])]))


def _show_hits(invocation: Invocation, hits: Sequence[Fields], *, explain: bool) -> None:
    rows = [
        {
            **hit,
            "document": hit["name"],
            "section": " > ".join(hit["section"]),
            "score": f"{hit['score']:.{SCORE_DIGITS}f}",
            "excerpt": " ".join(hit["text"].split())[:EXCERPT],
        }
        for hit in hits
    ]
    columns = {"document": "DOCUMENT", "section": "SECTION", "page": "PAGE", "score": "SCORE"}
    if explain:
        rows = [{**row, **summands(hit["parts"], hit["score"])} for row, hit in zip(rows, hits, strict=True)]
        parts: list[dict[str, float]] = [hit["parts"] for hit in hits]
        names = [name for name in (parts[0] if parts else ()) if any(each[name] for each in parts)]
        columns |= {name: f"+ {name.upper()}" for name in names}
    invocation.output.rows(rows, {**columns, "excerpt": "EXCERPT"}, cut=["excerpt"])


def _report(invocation: Invocation, result: AddedFiles, skipped: Mapping[str, str], *, waited: bool) -> int:
    """Say what became of the files, and return the exit code."""
    output = invocation.output
    output.record({"added": result.added, "unchanged": result.unchanged, "skipped": skipped, "failed": result.failed})
    if not invocation.json:
        for each in result.added:
            pages = "" if each["pages"] is None else f"{_count(each['pages'], 'page')}, "
            write(
                sys.stdout,
                printable(f"{each['name']}" + (f" ({pages}{_count(each['chunks'], 'chunk')})" if waited else "")),
            )
    for name, why in skipped.items():
        output.say(f"Skipped {name}: {why}.")
    for name, why in result.failed.items():
        output.say(f"Failed {name}: {why}")
    counts = [
        f"{'Added' if waited else 'Uploaded'} {_count(len(result.added), 'document')}",
        *([f"{len(result.unchanged)} unchanged"] if result.unchanged else []),
        *([f"{len(skipped)} skipped"] if skipped else []),
        *([f"{len(result.failed)} failed"] if result.failed else []),
    ]
    output.say(", ".join(counts) + ".")
    return FAILED if result.failed else 0


def _say_stopped(invocation: Invocation, open_jobs: int) -> None:
    goes_on = f"The server goes on with {_count(open_jobs, 'uploaded file')}. " if open_jobs else ""
    invocation.output.say(f"Stopped. {goes_on}Run the command again to add the rest.")


async def _document(
    api: Api, named: str, owner: tuple[str, str | None] | None, collection: str | None = None
) -> dict[str, Any]:
    """Return the document with this name, or with an id that begins so."""
    if (id := full_id(named) if DIGITS.fullmatch(named) else None) is not None:
        return await api.call("get_document", id=id)
    found = (await api.call("list_documents", **_place(owner), collection=collection, name=named))["documents"]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(f"{each['id']} ({_owner_text(each['owner'])}, {each['collection']})" for each in found)
        raise InvalidInput(f"several documents are called {named[:200]!r}", why=places, next="Give the id of one.")
    if DIGITS.fullmatch(named):
        return await api.call("get_document", id=await whole_id(api, "document", named))
    raise NotFound(f"there is no document {named[:200]!r}", next="`holdfast knowledge ls` lists them.")


async def _all(
    api: Api, operation: str = "list_documents", of: str = "documents", **given: Any
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = await api.call(operation, **given, limit=PAGE, cursor=cursor)
        found += page[of]
        cursor = page["cursor"]
        if cursor is None:
            return found


def _place(owner: tuple[str, str | None] | None) -> dict[str, Any]:
    """Return an owner as parameters of an operation."""
    if owner is None:
        return {}
    scope, name = owner
    return {"scope": scope} if name is None else {"scope": scope, "owner": name}


def _named(owner: tuple[str, str | None]) -> dict[str, Any]:
    """Return an owner as a field of a body."""
    scope, name = owner
    return {"scope": scope} if name is None else {"scope": scope, "name": name}


def _metadata(given: Sequence[str] | None) -> dict[str, Any] | None:
    """Parse words like `key=value`: JSON, or else text."""
    if not given:
        return None
    metadata: dict[str, Any] = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise InvalidInput(f"{word[:80]!r} is not metadata", next="Write it like --metadata year=2026.")
        try:
            metadata[name] = json.loads(text)
        except (ValueError, RecursionError):
            metadata[name] = text
    return metadata


def _owner_text(owner: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (owner["scope"], owner["name"])))


def _size(size: int) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = round(size / 1000)
    return f"{size} GB"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
