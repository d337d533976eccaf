"""`holdfast memory`: store, search, correct, export and import memories."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, cast

import typer

from holdfast.cli.api import reach
from holdfast.cli.arguments import json_object
from holdfast.cli.durations import lifetime
from holdfast.cli.ids import Id, shortened_ids, whole_id
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, message
from holdfast.cli.output import write_bytes
from holdfast.core.errors import InvalidInput, TooLarge

app = group("Store, search, correct, delete, export and import memories.")

PART_BYTES = 2 * 1024 * 1024  # of each part of an imported file
DIGITS = 4  # decimal places of a score

# Copies from `holdfast.memory`, which takes too long to load for a command that only calls a server.
MAX_BYTES = 64 * 1024
Trust = Literal["system", "user", "agent", "tool", "untrusted"]
Scope = Literal["session", "user", "agent", "organization"]


def moment(text: str) -> datetime:
    """Parse a time. A date alone means midnight. A time without a time zone is UTC."""
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        given = None
    if given is None or not 1 < given.year < MAXYEAR:
        raise InvalidInput(f"{text[:80]!r} is not a time", next="Write it like 2026-03-01 or 2026-03-01T08:00:00Z.")
    return given.replace(tzinfo=given.tzinfo or UTC).astimezone(UTC)


def not_empty(param: typer.CallbackParam, value: Any) -> Any:
    """Reject an empty value, which usually comes from a variable that is not set."""
    if value == "" or (isinstance(value, list) and "" in value):
        raise InvalidInput(f"{param.opts[0]} is empty", next="Give a value, or omit the option.")
    return cast(Any, value)


def question(text: str) -> str:
    """Reject an empty query."""
    if not text.strip():
        raise InvalidInput("the query is empty", next="Say what to search for.")
    return text


User = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Owner: a user. [default: yourself]", show_default=False, callback=not_empty),
]
Agent = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Owner: an agent. With another owner: the agent that stored them.", callback=not_empty
    ),
]
Session = Annotated[str | None, typer.Option(metavar="ID", help="Owner: a session.", callback=not_empty)]
Org = Annotated[bool, typer.Option("--org", help="Owner: the organization.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="Text of the memory; - reads it from stdin.")]
Query = Annotated[str, typer.Argument(metavar="QUERY", help="What to search for.", parser=question)]
Limit = Annotated[int | None, typer.Option(min=1, max=1000, help="Maximum number of memories.", show_default=False)]
Where = Annotated[str | None, typer.Option(metavar="JSON", help="Only memories whose metadata contains this object.")]
Type = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Only memories of this type. Can be repeated.", callback=not_empty),
]
AsOf = Annotated[
    datetime | None,
    typer.Option(
        metavar="TIME", help="Search what was valid at this time: 2026-03-01 or 2026-03-01T08:00:00Z.", parser=moment
    ),
]
Undo = Annotated[bool, typer.Option("--undo", help="Reverse it: unpin the memory, or recall it again.")]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """A query and the owner of the memories: the options of every command that searches."""

    query: Query
    user: User = None
    agent: Agent = None
    session: Session = None
    org: Org = False
    limit: Limit = None
    where: Where = None
    type: Type = None
    as_of: AsOf = None

    def body(self) -> dict[str, Any]:
        """Return the request body for the API."""
        fields = {
            "query": self.query,
            "owner": owner_of(user=self.user, agent=self.agent, session=self.session, org=self.org),
            "limit": self.limit,
            "where": _object("--where", self.where),
            "types": self.type or None,
            "as_of": None if self.as_of is None else self.as_of.isoformat(),
        }
        return _without_none(fields)


def with_search_options(work: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a command that takes a `SearchOptions` into one that takes its options."""
    *own, _ = inspect.signature(work).parameters.values()
    options = inspect.signature(SearchOptions).parameters

    @wraps(work)
    def run(*args: Any, **given: Any) -> Any:
        question = SearchOptions(**{name: given.pop(name) for name in options})
        return work(*args, **given, question=question)

    run.__signature__ = inspect.Signature([*own, *options.values()])  # type: ignore[attr-defined]
    return run


@command(app)
async def add(
    invocation: Invocation,
    text: Text,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    org: Org = False,
    type: Annotated[
        str | None, typer.Option(metavar="NAME", help="Type, such as fact, preference or summary.", callback=not_empty)
    ] = None,
    importance: Annotated[float | None, typer.Option(min=0, max=1, help="Importance. [default: 1]")] = None,
    ttl: Annotated[str | None, typer.Option(metavar="TIME", help="Time to live, such as 30d or 12h.")] = None,
    trust: Annotated[Trust | None, typer.Option(metavar="NAME", help="system, user, agent, tool or untrusted.")] = None,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="Object that searches can filter by.")] = None,
    source: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Origin of the memory.", callback=not_empty)
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Idempotency key: the same key is stored once.", callback=not_empty),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Conversation in which it was said.", callback=not_empty)
    ] = None,
    seq: Annotated[int | None, typer.Option(metavar="N", help="Position in the conversation.")] = None,
    author: Annotated[str | None, typer.Option(metavar="NAME", help="Who said it.", callback=not_empty)] = None,
    at: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIME", help="When it was said, such as 2026-03-01 or 2026-03-01T08:00:00Z.", parser=moment
        ),
    ] = None,
) -> None:
    """Store a memory and print its id.

    \b
    holdfast memory add "prefers tea over coffee" --user ann --type preference
    """
    draft = {
        "content": _text(text),
        "type": type,
        "importance": importance,
        "ttl": None if ttl is None else lifetime(ttl).total_seconds(),
        "trust": trust,
        "metadata": _object("--metadata", metadata),
        "source": source,
        "key": key,
        "conversation": conversation,
        "seq": seq,
        "author": author,
        "at": None if at is None else at.isoformat(),
    }
    owner = owner_of(user=user, agent=agent, session=session, org=org)
    async with reach(invocation) as api:
        created = await api.call("remember", owner=owner, memories=[_without_none(draft)])
    (memory,) = created["memories"]
    invocation.output.value(memory["id"], memory)


@command(app)
@with_search_options
async def search(invocation: Invocation, question: SearchOptions) -> None:
    """Search memories, best match first."""
    found = await _search(invocation, question, explain=False)
    if not invocation.json:
        rows = shortened_ids([{"score": f"{hit['score']:.{DIGITS}f}", **hit["memory"]} for hit in found["hits"]], "id")
        columns = {"score": "SCORE", "content": "MEMORY", "type": "TYPE", "created_at": "SINCE", "id": "ID"}
        invocation.output.rows(rows, columns)
    _say_limits(invocation, found)


@command(app)
@with_search_options
async def explain(invocation: Invocation, question: SearchOptions) -> None:
    """Search memories and show the parts of each score."""
    found = await _search(invocation, question, explain=True)
    if not invocation.json:
        parts = [summands(hit["parts"], hit["score"]) for hit in found["hits"]]
        named = [name for name in (parts[0] if parts else ()) if any(float(each[name]) for each in parts)]
        rows = [
            {**each, "score": f"= {hit['score']:.{DIGITS}f}", "content": hit["memory"]["content"]}
            for hit, each in zip(found["hits"], parts, strict=True)
        ]
        heads = {name: name.upper() if place == 0 else f"+ {name.upper()}" for place, name in enumerate(named)}
        invocation.output.rows(rows, {**heads, "score": "= SCORE", "content": "MEMORY"})
    _say_limits(invocation, found)


@command(app, "why-not")
@with_search_options
async def why_not(invocation: Invocation, id: Id, question: SearchOptions) -> None:
    """Explain why a search does not return a memory. If it does, say so."""
    async with reach(invocation) as api:
        memory = await whole_id(api, "memory", id)
        found = await api.call("why_not", id=memory, **question.body())
    place = f" (place {found['rank']}, score {found['score']:.{DIGITS}f})" if found["rank"] else ""
    text = f"{found['reason']}: {found['detail']}{place}"
    invocation.output.value(text, found)


@command(app)
async def history(invocation: Invocation, id: Id) -> None:
    """List the versions of a memory, newest first."""
    async with reach(invocation) as api:
        memory = await whole_id(api, "memory", id)
        page = await api.call("memory_history", id=memory)
        revisions = page["revisions"]
        while page["cursor"] is not None:
            page = await api.call("memory_history", id=memory, before=page["cursor"])
            revisions += page["revisions"]
    columns = {"version": "VERSION", "operation": "OPERATION", "at": "AT", "importance": "IMPORTANCE"}
    invocation.output.rows(revisions, {**columns, "content": "MEMORY"})


@command(app)
async def supersede(invocation: Invocation, id: Id, text: Text) -> None:
    """Replace a memory by a new one and print the new id. The old memory is kept as history."""
    content = _text(text)
    async with reach(invocation) as api:
        created = await api.call("supersede_memory", id=await whole_id(api, "memory", id), content=content)
    invocation.output.value(created["id"], created)


derive(app, "forget", "forget_memory", message("Deleted the memory {id}."))


@command(app)
async def pin(invocation: Invocation, id: Id, undo: Undo = False) -> None:
    """Pin a memory, so that it does not fade and is not evicted."""
    async with reach(invocation) as api:
        memory = await api.call("pin_memory", id=await whole_id(api, "memory", id), pinned=not undo)
    invocation.output.record(memory)
    invocation.output.say(f"The memory {memory['id']} is {'no longer' if undo else 'now'} pinned.")


@command(app)
async def bury(invocation: Invocation, id: Id, undo: Undo = False) -> None:
    """Exclude a memory from recall without deleting it."""
    async with reach(invocation) as api:
        memory = await api.call("bury_memory", id=await whole_id(api, "memory", id), buried=not undo)
    invocation.output.record(memory)
    invocation.output.say(f"The memory {memory['id']} is {'no longer' if undo else 'now'} buried.")


@command(app)
async def sweep(
    invocation: Invocation,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete these memories instead of only counting them.")
    ] = False,
) -> None:
    """Count memories that have expired or faded. A running engine deletes them from time to time."""
    async with reach(invocation) as api:
        report = await api.call("sweep_memories", dry_run=not delete)
    invocation.output.record(report)
    if not invocation.json:
        invocation.output.rows(report["counts"], {"scope": "SCOPE", "reason": "REASON", "memories": "MEMORIES"})
    invocation.output.say(f"{report['total']} memories {'were deleted' if delete else 'would be deleted'}.")


@command(app)
async def export(
    invocation: Invocation,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    org: Org = False,
    scope: Annotated[
        Scope | None,
        typer.Option(metavar="NAME", help="All memories of a memory scope: user, session, agent or organization."),
    ] = None,
) -> None:
    """Export memories as JSON lines, with their vectors and versions.

    \b
    holdfast memory export --user ann > ann.jsonl
    """
    query = owner_of(user=user, agent=agent, session=session, org=org)
    query.pop("agent", None)
    if scope is not None:
        query = {"scope": scope, "all": True}
    lines = 0

    async with reach(invocation) as api:
        with invocation.output.progress() as progress:

            def pass_on(part: bytes) -> None:
                nonlocal lines
                write_bytes(part)
                lines += part.count(b"\n")
                progress(f"{lines - 1} memories")

            await api.download("export_memories", pass_on, **query)
    invocation.output.say(f"Exported {lines - 1} memories.")


@command(app, "import")
async def import_(
    invocation: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Exported file; - reads stdin.", allow_dash=True)],
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    org: Org = False,
) -> None:
    """Import exported memories. They go to their original owners, or all to one owner.

    Importing the same file twice changes nothing. An invalid line stops the import; the lines before it are imported.

    \b
    holdfast memory import ann.jsonl --user bob
    """
    owner: dict[str, Any] = {}
    if org or any(each is not None for each in (user, agent, session)):
        owner = owner_of(user=user, agent=agent, session=session, org=org)
    done = {"added": 0, "folded": 0, "expired": 0}
    async with reach(invocation) as api:
        with _open_file(file) as lines, invocation.output.progress() as progress:
            for line, part in parts_of(lines):
                counts = await api.upload("import_memories", part, **owner, line=line)
                done = {name: count + counts[name] for name, count in done.items()}
                progress(f"{sum(done.values())} memories")
    invocation.output.record(done)
    expired = f", {done['expired']} had expired" if done["expired"] else ""
    invocation.output.say(f"Imported {done['added']} memories; {done['folded']} existed already{expired}.")


def owner_of(*, user: str | None, agent: str | None, session: str | None, org: bool) -> dict[str, Any]:
    """Return the owner that the options name."""
    if org + (user is not None) + (session is not None) > 1:
        raise InvalidInput("the options name several owners", next="Give only one of --user, --session and --org.")
    if org:
        owner = {"scope": "organization", "agent": agent}
    elif session is not None:
        owner = {"scope": "session", "name": session, "agent": agent}
    elif user is None and agent is not None:
        owner = {"scope": "agent", "name": agent}
    else:
        owner = {"scope": "user", "name": user, "agent": agent}
    return _without_none(owner)


def summands(parts: Mapping[str, float], score: float) -> dict[str, str]:
    """Round the parts of a score so that they add up to the rounded score."""
    unit = 10**DIGITS
    rounded = {name: round(value * unit) for name, value in parts.items()}
    missing = round(score * unit) - sum(rounded.values())
    # Correct the values with the largest rounding errors, by one unit each.
    step = 1 if missing > 0 else -1
    for name in sorted(parts, key=lambda name: step * (rounded[name] - parts[name] * unit))[: abs(missing)]:
        rounded[name] += step
    return {name: f"{value / unit:.{DIGITS}f}" for name, value in rounded.items()}


def parts_of(lines: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Split a file into parts for requests, each with the header line. Yield the line before a part, and the part."""
    header, part, size, begins = lines.readline(), list[bytes](), 0, 1
    for number, line in enumerate(lines, 2):
        if part and size + len(line) > PART_BYTES:
            yield begins, b"".join([header, *part])
            part, size, begins = [], 0, number - 1
        part.append(line)
        size += len(line)
    yield begins, b"".join([header, *part])


def _open_file(file: Path) -> BinaryIO:
    try:
        return sys.stdin.buffer if str(file) == "-" else file.open("rb")
    except OSError as error:
        next = "Give a file that `holdfast memory export` wrote, or - for stdin."
        raise InvalidInput(f"{file} cannot be read", why=error.strerror or str(error), next=next) from None


async def _search(invocation: Invocation, question: SearchOptions, *, explain: bool) -> dict[str, Any]:
    async with reach(invocation) as api:
        found = await api.call("search_memories", **question.body(), explain=explain)
    invocation.output.record(found)
    return found


def _say_limits(invocation: Invocation, found: dict[str, Any]) -> None:
    if found["reduced"]:
        invocation.output.say(found["reduced"])
    if found["omitted"]:
        invocation.output.say(f"{found['omitted']} more were found, but the response would be too large.")


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _object(option: str, text: str | None) -> dict[str, Any] | None:
    return json_object(option, text, '{"topic": "food"}')


def _text(given: str) -> str:
    text = sys.stdin.read() if given == "-" else given
    if not text.strip():
        raise InvalidInput("the memory is empty", next="Give the text to store.")
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        raise TooLarge(
            "the memory is too large",
            why=f"it has {size} bytes; the limit is {MAX_BYTES}",
            next="Store the important parts as several short memories.",
            size=size,
            limit=MAX_BYTES,
        )
    return text
