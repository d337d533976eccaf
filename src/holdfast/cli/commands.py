"""`holdfast commands`: send commands to workers and get their results."""

import json
import sys
import time
from typing import Annotated, Any

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, message, table
from holdfast.cli.output import printable, write
from holdfast.core.errors import CommandFailed, InvalidInput, TimedOut

app = group("Send commands to workers, and list, show and cancel them. ID is the correlation id of a command.")

COLUMNS = ["correlation_id", "skill", "state", "attempts", "worker", "created_at", "finished_at"]

derive(app, "ls", "list_commands", table(COLUMNS), without=["before"])
derive(
    app,
    "cancel",
    "cancel_command",
    message(lambda fields: f"The command {fields['id']} is {fields['command']['state']}."),
)


@command(app)
async def show(invocation: Invocation, id: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Show a command and its result. With --json, print every completion, also late ones."""
    async with reach(invocation) as api:
        found = await api.call("get_command", id=id)
        if invocation.json:
            more = await api.call("list_completions", id=id)
            invocation.output.record({**found, **more})
            return
    write(sys.stdout, format_command(found))


@command(app)
async def invoke(
    invocation: Invocation,
    skill: Annotated[str, typer.Argument(metavar="SKILL", help="Name of the handler: `@app.skill(NAME)`.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", show_default=False)] = None,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Time to wait for the result; 0 prints the id.")
    ] = 60,
    id: Annotated[str | None, typer.Option(metavar="TEXT", help="Correlation id. [default: generated]")] = None,
    priority: Annotated[int, typer.Option(metavar="N", help="Commands with the highest priority run first.")] = 0,
) -> None:
    """Invoke a handler in a worker and print its result as JSON. A value is JSON, or else text.

    \b
    holdfast commands invoke translate text=hello to=de
    holdfast commands invoke resize 'size=[800, 600]' --wait 0
    """
    values = dict(map(argument, arguments or ()))
    deadline = time.monotonic() + wait
    async with reach(invocation) as api:
        found = await api.call(
            "submit_command", skill=skill, arguments=values, correlation_id=id, priority=priority, wait=wait
        )
        if wait:
            found = await _wait_until_finished(api, found, deadline)
    if not wait:
        invocation.output.value(found["command"]["correlation_id"], found)
        return
    invocation.output.value(json.dumps(_result(found), ensure_ascii=False), found)


def argument(text: str) -> tuple[str, Any]:
    """Parse a name and its value: JSON if it is valid, else text."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidInput(f"{text[:80]!r} is not an argument", next="Write it like name=value.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def format_command(found: dict[str, Any]) -> str:
    """Format a command for the terminal."""
    request, completion = found["command"], found["completion"]
    lines = [
        f"{request['correlation_id']!r} {request['state']}",
        f"skill      {request['skill']!r}",
        f"arguments  {json.dumps(request['arguments'], ensure_ascii=False)}",
        f"attempts   {request['attempts']}",
        *([f"worker     {request['worker']}"] if request["worker"] else []),
        f"asked      {request['created_at']}",
        *([f"finished   {request['finished_at']}"] if request["finished_at"] else []),
    ]
    if completion is None:
        lines += [f"error      {request['error']!r}"] if request["error"] else []
    elif completion["error"] is None:
        lines.append(f"result     {json.dumps(completion['result'], ensure_ascii=False)}")
    else:
        lines.append(f"error      {json.dumps(completion['error'], ensure_ascii=False)}")
    return printable("\n".join(lines))


async def _wait_until_finished(api: Api, found: dict[str, Any], deadline: float) -> dict[str, Any]:
    """Wait until the command has a result. Each request waits only a part of the time."""
    id = found["command"]["correlation_id"]
    while found["completion"] is None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimedOut(
                f"the command {id} is not finished yet",
                why=f"it is {found['command']['state']}",
                next=f"It continues. `holdfast commands show {id}` shows its result.",
                correlation_id=id,
            )
        found = await api.call("get_command", id=id, wait=left)
    return found


def _result(found: dict[str, Any]) -> Any:
    error = found["completion"]["error"]
    if error is None:
        return found["completion"]["result"]
    id = found["command"]["correlation_id"]
    raise CommandFailed(
        f"the command {id} failed",
        why=str(error.get("message", "")),
        next=f"`holdfast commands show {id}` shows more. `holdfast dead-letters ls` lists dead commands.",
        correlation_id=id,
        error=error,
    )
