"""`holdfast sessions`: list, search, show, fork and export conversations; edit and delete messages."""

import json
import sys
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.output import printable, write
from holdfast.core.errors import InvalidInput, NotFound

app = group("Conversations. SESSION is the id of a session or of its conversation.")

PAGE = 1000
INDENT = "    "
COLUMNS = {
    "session_id": "SESSION",
    "app": "APP",
    "user": "USER",
    "agent": "AGENT",
    "last_seq": "NODES",
    "updated_at": "CHANGED",
}

Session = Annotated[str, typer.Argument(metavar="SESSION")]
Number = Annotated[int, typer.Argument(metavar="N", min=1, help="Its number, as `show` prints it.")]


@command(app)
async def ls(
    invocation: Invocation,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Those of one user.")] = None,
    app: Annotated[str | None, typer.Option(metavar="NAME", help="Those of one app.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Those with one agent.")] = None,
    spoken: Annotated[bool, typer.Option("--spoken", help="Those in which something was said.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=PAGE, help="How many.")] = 50,
) -> None:
    """List conversations, the newest first."""
    asked = {"user": user, "app": app, "agent": agent, "spoken": "true" if spoken else None, "limit": limit}
    async with reach(invocation) as api:
        found = await api.get(f"/api/conversations?{_query(asked)}")
    invocation.output.rows(found["conversations"], COLUMNS)
    if found["cursor"] is not None:
        invocation.output.say(f"There are more than these {limit}: --limit shows up to {PAGE}.")


@command(app)
async def search(
    invocation: Invocation,
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Those of one user.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Those with one agent.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=PAGE, help="How many nodes.")] = 50,
) -> None:
    """Print nodes with this text in them, whatever its case, those of the newest conversations first."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    async with reach(invocation) as api:
        while len(found) < limit:  # a page may be empty and not the last
            asked = {"text": text, "user": user, "agent": agent, "limit": limit - len(found), "cursor": cursor}
            page = await api.get(f"/api/conversations/search?{_query(asked)}")
            found += page["found"]
            cursor = page["cursor"]
            if cursor is None:
                break
    if invocation.json:
        invocation.output.rows(found, {})
        return
    for hit in found:
        talk = hit["conversation"]
        write(sys.stdout, f"{_seen(talk['session_id'] or talk['id'])}  {shown(hit['node'])}")
    if cursor is not None:
        invocation.output.say(f"There may be more than these {limit}: --limit shows up to {PAGE}.")


@command(app)
async def show(invocation: Invocation, session: Session) -> None:
    """Print who said what, each node with its number; with --json every node with all there is to it."""
    nodes: list[dict[str, Any]] = []
    async with reach(invocation) as api:
        talk = await _find(api, session)
        async for node in _nodes(api, talk["id"]):
            if invocation.json:
                nodes.append(node)
            else:
                write(sys.stdout, shown(node))
    if invocation.json:
        invocation.output.rows(nodes, {})


@command(app)
async def fork(
    invocation: Invocation,
    session: Session,
    at: Annotated[int | None, typer.Option(metavar="N", help="The last node of the copy. [default: all]")] = None,
    session_id: Annotated[str | None, typer.Option(metavar="ID", help="The copy's session. [default: made]")] = None,
) -> None:
    """Copy a conversation up to a node; the copy's session goes to stdout.

    \b
    holdfast sessions show web-42
    holdfast sessions fork web-42 --at 7
    """
    wanted = {"at": at, "session_id": session_id}
    async with reach(invocation) as api:
        talk = await _find(api, session)
        made = await api.post(
            f"/api/conversations/{talk['id']}/fork",
            {name: value for name, value in wanted.items() if value is not None},
        )
    invocation.output.say(f"Forked {session} at node {made['forked_at']}:")
    invocation.output.value(made["session_id"] or made["id"], made)


@command(app, name="edit-message")
async def edit_message(
    invocation: Invocation,
    session: Session,
    number: Number,
    text: Annotated[str, typer.Argument(metavar="TEXT")],
) -> None:
    """Change a message; what it was stays readable. To have a failed one answered, use `runs retry`.

    \b
    holdfast sessions show web-42
    holdfast sessions edit-message web-42 7 "Where is parcel AB-1?"
    """
    async with reach(invocation) as api:
        node = await _node(api, session, number)
        await api.patch(f"/api/nodes/{node['id']}", {"content": text, "version": node["version"]})
    invocation.output.say(f"Message {number} of {session} was changed.")


@command(app, name="delete-message")
async def delete_message(invocation: Invocation, session: Session, number: Number) -> None:
    """Delete a message: the agent is not shown it any more, and does not answer it if it has not begun to."""
    async with reach(invocation) as api:
        node = await _node(api, session, number)
        await api.delete(f"/api/nodes/{node['id']}?version={node['version']}")
    invocation.output.say(f"Message {number} of {session} was deleted.")


@command(app)
async def export(invocation: Invocation, session: Session) -> None:
    """Print the whole conversation as lines of JSON: first itself, then its nodes with all they were.

    \b
    holdfast sessions export web-42 > web-42.jsonl
    """
    async with reach(invocation) as api:
        talk = await _find(api, session)
        await api.fetch(f"/api/conversations/{talk['id']}/export", _pass_on)


def shown(node: dict[str, Any]) -> str:
    """A node as a person reads it: its number, who speaks and when, then what is said."""
    _, kind, name = node["context"].split(":", 2)
    at = datetime.fromisoformat(node["created_at"]).astimezone().strftime("%Y-%m-%d %H:%M")
    said = "(deleted)" if node["deleted"] else node["content"].replace("\r\n", "\n")
    lines = said.split("\n") if said else []
    text = "\n".join(INDENT + line for line in [*lines, *_calls(node["payload"]), *_retry(node)])
    return printable(f"{node['seq']}  {_seen(name)} ({kind}), {at}\n{text}\n")


def _seen(name: str) -> str:
    """A name on one line: one with a line end in it could forge a line."""
    return name if name.isprintable() else repr(name)


def _calls(payload: dict[str, Any] | None) -> list[str]:
    calls: list[dict[str, Any]] = payload.get("tool_calls") or [] if payload else []
    return [f"calls {call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}" for call in calls]


def _retry(node: dict[str, Any]) -> list[str]:
    """How to have a message answered whose run failed or was stopped."""
    payload: dict[str, Any] = node["payload"] or {}
    is_unanswered = node["context"].startswith("unanswered:") and "run" in payload
    return [f"try again: holdfast runs retry {payload['run']}"] if is_unanswered else []


async def _node(api: Api, session: str, number: int) -> dict[str, Any]:
    """The message of a conversation that has this number."""
    talk = await _find(api, session)
    found = (await api.get(f"/api/conversations/{talk['id']}/nodes?since={number - 1}&limit=1"))["nodes"]
    if not found or found[0]["seq"] != number or found[0]["deleted"]:
        raise NotFound(f"there is no message {number} in {session}", next="`holdfast sessions show` lists them.")
    return found[0]


async def _find(api: Api, session: str) -> dict[str, Any]:
    """The conversation with this id, of the session or its own."""
    try:
        return await api.get(f"/api/conversations/by-session?{_query({'session_id': session})}")
    except NotFound:
        try:
            id = UUID(session)
        except ValueError:
            pass
        else:
            return await api.get(f"/api/conversations/{id}")
        raise


async def _nodes(api: Api, id: str) -> AsyncGenerator[dict[str, Any]]:
    cursor: int | None = 0
    while cursor is not None:
        page = await api.get(f"/api/conversations/{id}/nodes?since={cursor}&limit={PAGE}")
        for node in page["nodes"]:
            yield node
        cursor = page["cursor"]


def _query(asked: dict[str, Any]) -> str:
    try:
        return urlencode({name: value for name, value in asked.items() if value is not None})
    except UnicodeEncodeError:
        raise InvalidInput("a name cannot be used", why="it is not UTF-8", next="Correct it.") from None


def _pass_on(part: bytes) -> None:
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
