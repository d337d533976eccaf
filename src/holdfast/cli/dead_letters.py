"""`holdfast dead-letters`: list, redrive (retry) and drop dead letters."""

import json
from datetime import datetime
from typing import Annotated, Any

import typer

from holdfast.cli.api import reach
from holdfast.cli.ids import whole_id
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, message, page, table
from holdfast.cli.output import printable
from holdfast.core.errors import InvalidInput

app = group("List, redrive (retry) and drop dead letters: records that a consumer group or the workers gave up on.")

COLUMNS = ["id", "group", "topic", "place", "key", "attempts", "failed_at", "state", "error"]
SHOWN_ERROR = 80  # characters in the list

Group = Annotated[str | None, typer.Option(metavar="NAME", help="Only dead letters of this consumer group.")]
Topic = Annotated[str | None, typer.Option(metavar="NAME", help="Only dead letters of this topic.")]


@command(app)
async def redrive(
    invocation: Invocation,
    id: Annotated[str | None, typer.Argument(metavar="ID", show_default=False)] = None,
    all: Annotated[
        bool, typer.Option("--all", help="All dead letters, or those that --group and --topic select.")
    ] = False,
    group: Group = None,
    topic: Topic = None,
) -> None:
    """Retry dead letters: deliver them once more. One that fails again is a dead letter again.

    \b
    holdfast dead-letters redrive 019a…
    holdfast dead-letters redrive --all --group billing
    """
    if (id is None) != all or (id is not None and (group is not None or topic is not None)):
        raise InvalidInput(
            "it is not clear which dead letters are meant",
            next="Give one ID, or --all, with --group and --topic to select some of them.",
        )
    async with reach(invocation) as api:
        if id is None:
            number = (await api.call("redrive_dead_letters", group=group, topic=topic))["redriven"]
        else:
            await api.call("redrive_dead_letter", id=await whole_id(api, "dead_letter", id))
            number = 1
    invocation.output.record({"redriven": number})
    invocation.output.say(f"Redrove {number} dead letter{'' if number == 1 else 's'}.")


def format_dead_letter(letter: dict[str, Any]) -> str:
    """Format a dead letter for the terminal."""
    at = datetime.fromisoformat(letter["failed_at"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    lines = [
        f"{letter['id']} ({letter['state']})",
        f"group     {letter['group']}",
        f"record    {letter['topic']} {_place(letter)}, id {letter['record_id']}",
        f"key       {json.dumps(letter['key'], ensure_ascii=False)}",
        *([f"command   {letter['correlation_id']!r}"] if letter["correlation_id"] else []),
        f"failed    {at}, attempt {letter['attempts']}",
        *_block("error", letter["error"]),
        *_block("headers", json.dumps(letter["headers"], ensure_ascii=False, indent=2)),
        *_block("value", json.dumps(letter["value"], ensure_ascii=False, indent=2)),
    ]
    return printable("\n".join(lines))


def _block(name: str, text: str) -> list[str]:
    return [name, *(f"    {line}" for line in text.replace("\r\n", "\n").split("\n"))]


def _error(letter: dict[str, Any]) -> str:
    error = letter["error"].split("\n", 1)[0]
    return error if len(error) <= SHOWN_ERROR else error[:SHOWN_ERROR] + "…"


def _place(letter: dict[str, Any]) -> str:
    return f"{letter['partition']}/{letter['offset']}"


derive(app, "ls", "list_dead_letters", table(COLUMNS, ids=["id"], place=_place, error=_error))
derive(app, "show", "get_dead_letter", page(format_dead_letter))
derive(app, "drop", "drop_dead_letter", message("Dropped {id}."))
