"""`holdfast tools`: list, call, enable and disable tools, and set permissions."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast

import typer

from holdfast.cli.api import reach
from holdfast.cli.arguments import arguments_of, types_of, whole_of
from holdfast.cli.chat_output import format_call, shortened
from holdfast.cli.ids import Id, whole_id
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import Fields, derive, message, page, table
from holdfast.cli.output import printable, write_bytes
from holdfast.core.errors import CommandFailed, InvalidInput

app = group("List, call, enable and disable tools, set permissions, and inspect tool calls.")

FOUND = ["score", "name", "description"]
COLUMNS = ["name", "kind", "access", "active", "source", "calls", "description"]
CALLS = ["id", "call", "status", "gave", "who", "ms", "created_at"]

Name = Annotated[str, typer.Argument(metavar="NAME")]
Level = Literal["none", "read", "write", "execute"]


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
        schema: Mapping[str, Any] = {} if whole is not None else (await api.call("get_tool", name=name))["parameters"]
        filled = whole if whole is not None else arguments_of(schema, words or [])
        done = await api.call("call_tool", name=name, arguments=filled, key=key)
    _refuse_failed(done)
    invocation.output.value(_text(done), done)
    if done["has_output"]:
        invocation.output.say(f"The result is shortened. `holdfast tools output {done['id']}` prints all of it.")


@command(app)
async def output(invocation: Invocation, id: Id) -> None:
    """Print the full output of a call."""
    async with reach(invocation) as api:
        await api.download("get_output", write_bytes, id=await whole_id(api, "execution", id))


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
        raise InvalidInput("the arguments name no permission", next="Name an agent and a level, or give --users LEVEL.")
    async with reach(invocation) as api:
        tool = await api.call("get_tool", name=name)
        changed = change_permissions(tool["permissions"], agent, level, users)
        tool = await api.call("permit_tool", name=name, permissions=changed, version=tool["version"])
    invocation.output.record(tool)
    invocation.output.say(f"{name}: {_permissions(tool)}.")


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, on one line."""
    line = " ".join(text.split())
    return re.split(r"(?<=[.!?])\s|(?<=[\u3002\uff01\uff1f])", line, maxsplit=1)[0]


def change_permissions(
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


def format_tool(tool: dict[str, Any]) -> Iterator[str]:
    """Format a tool for the terminal."""
    yield f"{tool['name']} ({tool['kind']})"
    about = {
        "description": shortened(tool["description"]),
        "from": _origin(tool),
        "runs": _target(tool),
        "version": f"{tool['label']}, changed {tool['version'] - 1} times",
        "active": "" if tool["active"] else "no",
        "held": _held(tool),
        "hash": tool["hash"] or "",
        "access": tool["access"],
        "mode": tool["mode"] or "",
        "idempotent": "yes" if tool["idempotent"] else "no: it is never retried automatically",
        "approve": "a person must approve each call of an agent" if tool["approve"] else "",
        "timeout": f"{tool['timeout']:g} s" if tool["timeout"] else "",
        "permissions": _permissions(tool),
        "calls": _counts(tool),
    }
    yield from (f"{name:<11}  {value}" for name, value in about.items() if value)
    yield from (f"warning: {each['code']} in {each['where']}: {each['what']}" for each in tool["warnings"])
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
        fields = cast(dict[str, Any], each) if isinstance(each, dict) else {}
        default = f", default {json.dumps(fields['default'], ensure_ascii=False)}" if "default" in fields else ""
        about = f": {shortened(fields['description'])}" if fields.get("description") else ""
        yield f"  {name} ({kinds}{needed}{default}){about}"


def _held(tool: Mapping[str, Any]) -> str:
    match tool["held"]:
        case "proposal":
            return f"until somebody approves its new definition: `holdfast sources proposals {tool['source']}`"
        case "altered":
            return f"it was changed around the engine; `holdfast sources reload {tool['source']}` restores it"
        case _:
            return ""


def _origin(tool: Mapping[str, Any]) -> str:
    match tool["origin"]:
        case "code":
            return f"a program{', ' + tool['app_name'] if tool['app_name'] else ''}"
        case "source":
            return f"the source {tool['source']}, {tool['operation']}"
        case _:
            return f"{tool['updated_by']}, who registered it" if tool["updated_by"] else "the registry"


def _target(tool: Mapping[str, Any]) -> str:
    request = tool["request"]
    if request:
        return f"{request['method']} {request['url']}"
    return tool["reference"] or ""


def _permissions(tool: Mapping[str, Any]) -> str:
    permissions: Mapping[str, Any] = tool["permissions"] or {}
    levels = [
        *permissions.get("agents", {}).items(),
        *(
            (name, permissions[key])
            for key, name in (("default", "others"), ("users", "users by hand"))
            if key in permissions
        ),
    ]
    return ", ".join(f"{name} {level}" for name, level in levels)


def _counts(tool: Mapping[str, Any]) -> str:
    if not tool["calls"]:
        return "none yet"
    took = "" if tool["latency_ms"] is None else f", {tool['latency_ms']:.1f} ms each"
    return f"{tool['calls']:,}, {tool['failures']:,} of them failed{took}"


def _refuse_failed(done: Mapping[str, Any]) -> None:
    if done["status"] == "done":
        return
    unknown = done["status"] == "unknown"
    decide = f"Find out what happened, then run `holdfast tools decide {done['id']} done|failed|again`."
    raise CommandFailed(
        f"the call of {done['tool']} {'has no known result' if unknown else done['status']}",
        why=done["error"] or "",
        next=decide if unknown else "",
        execution_id=done["id"],
        status=done["status"],
    )


def _text(done: Mapping[str, Any]) -> str:
    """Return the result of a call: in full, unless it is stored separately."""
    result = done["result"]
    text: str = done["text"] if done["has_output"] or result is None else _to_text(result)
    return printable(text) if sys.stdout.isatty() else text


def _to_text(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _caller(row: dict[str, Any]) -> str:
    return " ".join(filter(None, [row["user"] or "", f"by {row['agent']}" if row["agent"] else ""]))


def _ms(row: dict[str, Any]) -> str:
    return "" if row["latency_ms"] is None else f"{row['latency_ms']:.1f}"


def _sandbox_text(found: Fields) -> str:
    return "\n\n".join(map(_format_sandbox, found["sandbox_executions"])) or "Nothing ran in the sandbox for this call."


def _format_sandbox(ran: Fields) -> str:
    usage, reason = ran["resource_usage"], ran["reason"]
    ended = f"stopped: {reason}" if reason else f"exit code {ran['exit_code']}"
    used = f"{usage['cpu_seconds']:.2f} s of CPU time, {usage['memory_bytes'] / 1024**2:.0f} MB"
    lines = [f"{ran['sandbox_type']}, {ended}, {ran['execution_time_ms']:.0f} ms, {used}"]
    for name in ("code", "stdout", "stderr"):
        if ran[name]:
            lines += [f"--- {name}", ran[name].rstrip("\n")]
    return "\n".join(lines)


def _cancel_text(done: Fields) -> str:
    return f"The call {done['id']} is {done['status'] if done['status'] != 'running' else 'being stopped'}."


derive(
    app,
    "ls",
    "list_tools",
    table(COLUMNS, found=FOUND, cut=["description"], description=lambda tool: first_sentence(tool["description"])),
    without=["kind", "after"],
    arguments=["query"],
)
derive(app, "show", "get_tool", page(lambda tool: "\n".join(format_tool(tool))))
derive(
    app,
    "calls",
    "list_executions",
    table(
        CALLS,
        ids=["id"],
        call=format_call,
        gave=lambda row: shortened(row["error"] or row["text"]),
        who=_caller,
        ms=_ms,
    ),
    help="List tool calls, newest first: of agents, through the gateway, and direct ones.",
    without=["user", "before"],
    arguments=["tool"],
)
derive(
    app,
    "sandbox",
    "list_sandbox_executions",
    page(_sandbox_text),
    help="Show what ran in the sandbox for a tool call: code, output and resources.",
)
derive(app, "cancel", "cancel_execution", message(_cancel_text))
derive(
    app,
    "decide",
    "decide_execution",
    message(lambda done: f"{format_call(done)} is {done['status']}."),
    help="Resolve a call with the status `unknown`. Mark it done or failed, or make it again.",
    without=["comment"],
)
derive(app, "rm", "remove_tool", message("Removed the tool {name}."))
derive(
    app,
    "activate",
    "activate_tool",
    message("The tool {name} is now active."),
    help="Enable a tool.",
    fixed={"active": True},
)
derive(
    app,
    "deactivate",
    "activate_tool",
    message("The tool {name} is no longer active."),
    help="Disable a tool.",
    fixed={"active": False},
)
