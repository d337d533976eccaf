"""`holdfast sessions`: list, search, show, fork and export conversations; edit and delete messages."""

import json
import sys
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, table
from holdfast.cli.output import printable, write, write_bytes
from holdfast.core.errors import NotFound

app = group(
    "List, search, show, fork and export conversations, and edit and delete messages. SESSION is the id of a session "
    "or of its conversation."
)

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

derive(app, "ls", "list_conversations", table(COLUMNS), without=["document", "openings"])

Session = Annotated[str, typer.Argument(metavar="SESSION")]
Number = Annotated[int, typer.Argument(metavar="N", min=1, help="Number of the message, as `show` prints it.")]


@command(app)
async def search(
    invocation: Invocation,
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only conversations of this user.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only conversations with this agent.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=PAGE, help="Maximum number of nodes.")] = 50,
) -> None:
    """Search conversations for a text, ignoring case. Print matching nodes, newest conversations first."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    async with reach(invocation) as api:
        while len(found) < limit:  # an empty page may not be the last one
            page = await api.call(
                "search_conversations", text=text, user=user, agent=agent, limit=limit - len(found), cursor=cursor
            )
            found += page["found"]
            cursor = page["cursor"]
            if cursor is None:
                break
    if invocation.json:
        invocation.output.rows(found, {})
        return
    for hit in found:
        conversation = hit["conversation"]
        write(sys.stdout, f"{_one_line(conversation['session_id'] or conversation['id'])}  {format_node(hit['node'])}")
    if cursor is not None:
        invocation.output.say(f"There may be more than these {limit}. See --limit.")


@command(app)
async def show(invocation: Invocation, session: Session) -> None:
    """Show the nodes of a conversation, with their numbers. With --json, print every field of every node."""
    nodes: list[dict[str, Any]] = []
    async with reach(invocation) as api:
        conversation = await _find(api, session)
        async for node in _nodes(api, conversation["id"]):
            if invocation.json:
                nodes.append(node)
            else:
                write(sys.stdout, format_node(node))
    if invocation.json:
        invocation.output.rows(nodes, {})


@command(app)
async def fork(
    invocation: Invocation,
    session: Session,
    at: Annotated[int | None, typer.Option(metavar="N", help="Last node to copy. [default: all nodes]")] = None,
    session_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Session id of the copy. [default: generated]")
    ] = None,
) -> None:
    """Fork a conversation: copy it up to a node. Print the session id of the copy.

    \b
    holdfast sessions show web-42
    holdfast sessions fork web-42 --at 7
    """
    async with reach(invocation) as api:
        conversation = await _find(api, session)
        copy = await api.call("fork_conversation", id=conversation["id"], at=at, session_id=session_id)
    invocation.output.say(f"Forked {session} at node {copy['forked_at']}:")
    invocation.output.value(copy["session_id"] or copy["id"], copy)


@command(app, name="edit-message")
async def edit_message(
    invocation: Invocation,
    session: Session,
    number: Number,
    text: Annotated[str, typer.Argument(metavar="TEXT")],
) -> None:
    """Edit a message. Its old text stays in the history. To retry a failed message, use `runs retry`.

    \b
    holdfast sessions show web-42
    holdfast sessions edit-message web-42 7 "Where is parcel AB-1?"
    """
    async with reach(invocation) as api:
        node = await _node(api, session, number)
        await api.call("edit_node", id=node["id"], content=text, version=node["version"])
    invocation.output.say(f"Changed message {number} of {session}.")


@command(app, name="delete-message")
async def delete_message(invocation: Invocation, session: Session, number: Number) -> None:
    """Delete a message. The agent no longer sees it, and does not answer it unless it has already begun."""
    async with reach(invocation) as api:
        node = await _node(api, session, number)
        await api.call("delete_node", id=node["id"], version=node["version"])
    invocation.output.say(f"Deleted message {number} of {session}.")


@command(app)
async def export(invocation: Invocation, session: Session) -> None:
    """Export a conversation as JSON lines. First the conversation, then its nodes with their old versions.

    \b
    holdfast sessions export web-42 > web-42.jsonl
    """
    async with reach(invocation) as api:
        conversation = await _find(api, session)
        await api.download("export_conversation", write_bytes, id=conversation["id"])


def format_node(node: dict[str, Any]) -> str:
    """Format a node for the terminal: its number, author and time, then its text."""
    _, kind, name = node["context"].split(":", 2)
    at = datetime.fromisoformat(node["created_at"]).astimezone().strftime("%Y-%m-%d %H:%M")
    content = "(deleted)" if node["deleted"] else node["content"].replace("\r\n", "\n")
    lines = content.split("\n") if content else []
    text = "\n".join(INDENT + line for line in [*lines, *_calls(node["payload"]), *_retry(node)])
    return printable(f"{node['seq']}  {_one_line(name)} ({kind}), {at}\n{text}\n")


def _one_line(name: str) -> str:
    """Return a name on one line. A line end in a name could forge a line."""
    return name if name.isprintable() else repr(name)


def _calls(payload: dict[str, Any] | None) -> list[str]:
    calls: list[dict[str, Any]] = payload.get("tool_calls") or [] if payload else []
    return [f"calls {call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}" for call in calls]


def _retry(node: dict[str, Any]) -> list[str]:
    """Return the command that retries a message whose run failed or was cancelled."""
    payload: dict[str, Any] = node["payload"] or {}
    is_unanswered = node["context"].startswith("unanswered:") and "run" in payload
    return [f"retry: holdfast runs retry {payload['run']}"] if is_unanswered else []


async def _node(api: Api, session: str, number: int) -> dict[str, Any]:
    """Return the message with this number."""
    conversation = await _find(api, session)
    found = (await api.call("list_nodes", id=conversation["id"], since=number - 1, limit=1))["nodes"]
    if not found or found[0]["seq"] != number or found[0]["deleted"]:
        raise NotFound(f"there is no message {number} in {session}", next="`holdfast sessions show` lists them.")
    return found[0]


async def _find(api: Api, session: str) -> dict[str, Any]:
    """Find a conversation by the id of its session, or by its own id."""
    try:
        return await api.call("find_conversation", session_id=session)
    except NotFound:
        try:
            id = UUID(session)
        except ValueError:
            pass
        else:
            return await api.call("get_conversation", id=id)
        raise


async def _nodes(api: Api, id: str) -> AsyncGenerator[dict[str, Any]]:
    cursor: int | None = 0
    while cursor is not None:
        page = await api.call("list_nodes", id=id, since=cursor, limit=PAGE)
        for node in page["nodes"]:
            yield node
        cursor = page["cursor"]
