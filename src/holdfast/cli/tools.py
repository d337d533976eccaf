"""`holdfast tools`: list, call, enable and disable tools, and set permissions."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast

import typer

from holdfast.cli.api import reach
from holdfast.cli.arguments import arguments_of, types_of, whole_of
from holdfast.cli.chat_output import called, shortened
from holdfast.cli.ids import Id, shortened_ids, whole_id
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.output import printable, write
from holdfast.cli.urls import address, given
from holdfast.core.errors import CommandFailed, InvalidInput

app = group("List, call, enable and disable tools, set permissions, and inspect tool calls.")

PAGE = 200
FOUND = {"score": "SCORE", "name": "NAME", "description": "DESCRIPTION"}
COLUMNS = {
    "name": "NAME",
    "kind": "KIND",
    "access": "ACCESS",
    "active": "ACTIVE",
    "source": "SOURCE",
    "calls": "CALLS",
    "description": "DESCRIPTION",
}
CALLS = {"id": "ID", "call": "CALL", "status": "STATUS", "gave": "GAVE", "who": "WHO", "ms": "MS", "created_at": "AT"}

Name = Annotated[str, typer.Argument(metavar="NAME")]
Level = Literal["none", "read", "write", "execute"]
Limit = Annotated[int, typer.Option(metavar="N", min=1, max=PAGE, help="Maximum number of calls.")]


@command(app)
async def ls(
    invocation: Invocation,
    query: Annotated[str | None, typer.Argument(metavar="[QUERY]", help="What to search for.")] = None,
    source: Annotated[str | None, typer.Option(metavar="NAME", help="Only tools of this source.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, max=PAGE, help="Maximum number of tools.")] = None,
) -> None:
    """List tools by name, or search for tools, best match first. --json prints all fields."""
    async with reach(invocation) as api:
        found = await api.get(address("tools", query=query, source=source, limit=limit))
    rows: list[dict[str, Any]] = found["tools"]
    shown = [{**row, "description": first_sentence(row["description"])} for row in scored(rows)]
    columns = COLUMNS if query is None else FOUND
    invocation.output.rows(rows if invocation.json else shown, columns, cut=["description"])
    say_more(invocation, found, len(rows))


@command(app)
async def show(invocation: Invocation, name: Name) -> None:
    """Show a tool: arguments, origin, permissions and call counts."""
    async with reach(invocation) as api:
        tool = await api.get(address("tools", name))
    if invocation.json:
        invocation.output.record(tool)
    else:
        write(sys.stdout, printable("\n".join(shown(tool))))


@command(app)
async def call(
    invocation: Invocation,
    name: Name,
    words: Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE]... | -", show_default=False)] = None,
    arguments: Annotated[str | None, typer.Option(metavar="JSON", help="All arguments as one JSON object.")] = None,
    key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Idempotency key: the same key calls the tool once.")
    ] = None,
) -> None:
    """Call a tool and print its result. Values are parsed according to the tool's schema.

    \b
    holdfast tools call track parcel=AB-123
    holdfast tools call resize 'size=[800, 600]' keep=true
    echo '{"parcel": "AB-123"}' | holdfast tools call track -
    """
    whole = whole_of(words or [], arguments)
    async with reach(invocation) as api:
        schema: Mapping[str, Any] = {} if whole is not None else (await api.get(address("tools", name)))["parameters"]
        filled = whole if whole is not None else arguments_of(schema, words or [])
        done = await api.post(address("tools", name, "call"), given(arguments=filled, key=key))
    _refuse_failed(done)
    invocation.output.value(_text(done), done)
    if done["has_output"]:
        invocation.output.say(f"The result is shortened: `holdfast tools output {done['id']}` prints all of it.")


@command(app)
async def calls(
    invocation: Invocation,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only calls of this tool.")] = None,
    status: Annotated[
        str | None, typer.Option(metavar="NAME", help="One status: running, done, failed, cancelled or unknown.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """List tool calls, of agents and direct ones, newest first."""
    async with reach(invocation) as api:
        found = await api.get(address("executions", tool=name, status=status, limit=limit))
    rows: list[dict[str, Any]] = found["executions"]
    shown = shortened_ids([_call(row) for row in rows], "id")
    invocation.output.rows(rows if invocation.json else shown, CALLS)
    say_more(invocation, found, limit)


@command(app)
async def output(invocation: Invocation, id: Id) -> None:
    """Print the full output of a call."""
    async with reach(invocation) as api:
        await api.fetch(address("executions", await whole_id(api, "execution", id), "output"), _pass_on)


@command(app)
async def cancel(invocation: Invocation, id: Id) -> None:
    """Cancel a call."""
    async with reach(invocation) as api:
        done = await api.post(address("executions", await whole_id(api, "execution", id), "cancel"), {})
    invocation.output.record(done)
    invocation.output.say(
        f"The call {done['id']} is {done['status'] if done['status'] != 'running' else 'being stopped'}."
    )


@command(app)
async def decide(
    invocation: Invocation,
    id: Id,
    decision: Annotated[Literal["done", "failed", "again"], typer.Argument(metavar="done|failed|again")],
) -> None:
    """Resolve a call with the status `unknown`. Mark it done or failed, or make it again."""
    async with reach(invocation) as api:
        call = await whole_id(api, "execution", id)
        decided = await api.post(address("executions", call, "decision"), {"decision": decision})
    invocation.output.record(decided)
    invocation.output.say(f"{called(decided)} is {decided['status']}.")


@command(app)
async def rm(invocation: Invocation, name: Name) -> None:
    """Remove a registered tool. It is removed from all skills."""
    async with reach(invocation) as api:
        await api.delete(address("tools", name))
    invocation.output.record({"name": name})
    invocation.output.say(f"The tool {name} is removed.")


@command(app)
async def activate(invocation: Invocation, name: Name) -> None:
    """Enable a tool."""
    await _activate(invocation, name, active=True)


@command(app)
async def deactivate(invocation: Invocation, name: Name) -> None:
    """Disable a tool."""
    await _activate(invocation, name, active=False)


@command(app)
async def permit(
    invocation: Invocation,
    name: Name,
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="Agent, or `default` for all agents that are not named.")
    ] = None,
    level: Annotated[Level | None, typer.Argument(metavar="[LEVEL]")] = None,
    users: Annotated[
        Level | None, typer.Option(metavar="LEVEL", help="Access level of users who call it directly.")
    ] = None,
) -> None:
    """Set the permissions of a tool.

    An agent gets an access level. --users sets the level of users who call the tool directly. Unless it is set, only
    admins can do that.

    \b
    holdfast tools permit refund default none
    holdfast tools permit refund support execute
    holdfast tools permit track --users read
    """
    if (agent is None) != (level is None) or (agent is None and users is None):
        raise InvalidInput("it is not said who may do what", next="Name an agent and a level, or give --users LEVEL.")
    async with reach(invocation) as api:
        tool = await api.get(address("tools", name))
        body = {"permissions": permitted(tool["permissions"], agent, level, users), "version": tool["version"]}
        tool = await api.put(address("tools", name, "permissions"), body)
    invocation.output.record(tool)
    invocation.output.say(f"{name}: {_permissions(tool)}.")


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, on one line."""
    line = " ".join(text.split())
    return re.split(r"(?<=[.!?])\s|(?<=[\u3002\uff01\uff1f])", line, maxsplit=1)[0]


def scored(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Format the scores of search results for the terminal."""
    return [{**row, "score": "" if row["score"] is None else f"{row['score']:.4f}"} for row in rows]


def say_more(invocation: Invocation, found: Mapping[str, Any], listed: int) -> None:
    """Say if a list is incomplete, or if a search used words only."""
    if found.get("cursor") is not None:
        invocation.output.say(f"There are more than these {listed}: --limit shows up to {PAGE}.")
    if found.get("reduced"):
        invocation.output.say(f"Found by words alone. {found['reduced']}")


def permitted(
    permissions: Mapping[str, Any], agent: str | None, level: str | None, users: str | None = None
) -> dict[str, Any]:
    """Return the changed permissions. `default` is for all agents that are not named."""
    changed = dict(permissions)
    if users is not None:
        changed["users"] = users
    if agent == "default":
        changed["default"] = level
    elif agent is not None:
        changed["agents"] = {**changed.get("agents", {}), agent: level}
    return changed


def shown(tool: dict[str, Any]) -> Iterator[str]:
    """Format a tool for the terminal."""
    yield f"{tool['name']} ({tool['kind']})"
    about = {
        "description": shortened(tool["description"]),
        "from": _origin(tool),
        "runs": _way(tool),
        "version": f"{tool['label']}, changed {tool['version'] - 1} times",
        "active": "" if tool["active"] else "no",
        "access": tool["access"],
        "mode": tool["mode"] or "",
        "idempotent": "yes" if tool["idempotent"] else "no: it is never run twice unasked",
        "approve": "a person has to allow each call of an agent" if tool["approve"] else "",
        "timeout": f"{tool['timeout']:g} s" if tool["timeout"] else "",
        "permissions": _permissions(tool),
        "calls": _counts(tool),
    }
    yield from (f"{name:<11}  {value}" for name, value in about.items() if value)
    yield ""
    yield "arguments"
    yield from _parameters(tool["parameters"])


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    properties: dict[str, Any] = schema.get("properties", {})
    if not properties:
        yield "  none"
    for name, each in properties.items():
        kinds = " or ".join(sorted(types_of(each, schema))) or "any"
        needed = ", required" if name in schema.get("required", ()) else ""
        said = cast(dict[str, Any], each) if isinstance(each, dict) else {}
        default = f", default {json.dumps(said['default'], ensure_ascii=False)}" if "default" in said else ""
        about = f": {shortened(said['description'])}" if said.get("description") else ""
        yield f"  {name} ({kinds}{needed}{default}){about}"


def _origin(tool: Mapping[str, Any]) -> str:
    match tool["origin"]:
        case "code":
            return f"a program{', ' + tool['app_name'] if tool['app_name'] else ''}"
        case "source":
            return f"the source {tool['source']}, {tool['operation']}"
        case _:
            return f"{tool['updated_by']}, who registered it" if tool["updated_by"] else "the registry"


def _way(tool: Mapping[str, Any]) -> str:
    request = tool["request"]
    if request:
        return f"{request['method']} {request['url']}"
    return tool["reference"] or ""


def _permissions(tool: Mapping[str, Any]) -> str:
    permissions: Mapping[str, Any] = tool["permissions"] or {}
    said = [
        *permissions.get("agents", {}).items(),
        *(
            (name, permissions[key])
            for key, name in (("default", "others"), ("users", "users by hand"))
            if key in permissions
        ),
    ]
    return ", ".join(f"{name} {level}" for name, level in said)


def _counts(tool: Mapping[str, Any]) -> str:
    if not tool["calls"]:
        return "none yet"
    took = "" if tool["latency_ms"] is None else f", {tool['latency_ms']:.1f} ms each"
    return f"{tool['calls']:,}, {tool['failures']:,} of them failed{took}"


def _refuse_failed(done: Mapping[str, Any]) -> None:
    if done["status"] == "done":
        return
    unknown = done["status"] == "unknown"
    decide = f"Find out, then say so: `holdfast tools decide {done['id']} done|failed|again`."
    raise CommandFailed(
        f"the call of {done['tool']} {'has no known end' if unknown else done['status']}",
        why=done["error"] or "",
        next=decide if unknown else f"`holdfast tools show {done['tool']}` tells what it takes.",
        execution_id=done["id"],
        status=done["status"],
    )


def _text(done: Mapping[str, Any]) -> str:
    """Return the result of a call: in full, unless it is stored separately."""
    result = done["result"]
    text: str = done["text"] if done["has_output"] or result is None else _written(result)
    return printable(text) if sys.stdout.isatty() else text


def _written(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _call(row: dict[str, Any]) -> dict[str, Any]:
    took = row["latency_ms"]
    who = [row["user"] or "", f"by {row['agent']}" if row["agent"] else ""]
    return {
        **row,
        "call": called(row),
        "gave": shortened(row["error"] or row["text"]),
        "who": " ".join(filter(None, who)),
        "ms": "" if took is None else f"{took:.1f}",
    }


def _pass_on(part: bytes) -> None:
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


async def _activate(invocation: Invocation, name: str, *, active: bool) -> None:
    async with reach(invocation) as api:
        tool = await api.put(address("tools", name, "active"), {"active": active})
    invocation.output.record(tool)
    invocation.output.say(f"{name} is {'active' if active else 'not active any more'}.")
