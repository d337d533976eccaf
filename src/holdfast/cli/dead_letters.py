"""`holdfast dead-letters`: list, redrive (retry) and drop dead letters."""

import json
import sys
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from holdfast.cli.api import reach
from holdfast.cli.ids import Id, shortened_ids, whole_id
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.output import printable, write
from holdfast.cli.urls import address, given
from holdfast.core.errors import InvalidInput

app = group("List, redrive (retry) and drop dead letters: records that a consumer group or the workers gave up on.")

PAGE = 100
COLUMNS = {
    "id": "ID",
    "group": "GROUP",
    "topic": "TOPIC",
    "place": "PLACE",
    "key": "KEY",
    "attempts": "ATTEMPTS",
    "failed_at": "FAILED",
    "state": "STATE",
    "error": "ERROR",
}
SHOWN_ERROR = 80  # characters in the list

Group = Annotated[str | None, typer.Option(metavar="NAME", help="Only dead letters of this consumer group.")]
Topic = Annotated[str | None, typer.Option(metavar="NAME", help="Only dead letters of this topic.")]


@command(app)
async def ls(
    invocation: Invocation,
    group: Group = None,
    topic: Topic = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=PAGE, help="Maximum number of dead letters.")] = 50,
    before: Annotated[UUID | None, typer.Option(metavar="ID", help="Only dead letters older than this one.")] = None,
) -> None:
    """List dead letters, newest first."""
    async with reach(invocation) as api:
        found = await api.get(address("dead-letters", group=group, topic=topic, limit=limit, before=before))
    letters = found["dead_letters"]
    rows = letters if invocation.json else shortened_ids([_row(letter) for letter in letters], "id")
    invocation.output.rows(rows, COLUMNS)


@command(app)
async def show(invocation: Invocation, id: Id) -> None:
    """Show a dead letter: its error and the whole record."""
    async with reach(invocation) as api:
        letter = await api.get(address("dead-letters", await whole_id(api, "dead_letter", id)))
    if invocation.json:
        invocation.output.record(letter)
    else:
        write(sys.stdout, shown(letter))


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
    narrowed = given(group=group, topic=topic)
    if (id is None) != all or (id is not None and narrowed):
        raise InvalidInput(
            "it is not clear which dead letters are meant",
            next="Give one ID, or --all, with --group and --topic to narrow it down.",
        )
    async with reach(invocation) as api:
        if id is None:
            number = (await api.post("/api/dead-letters/redrive", narrowed))["redriven"]
        else:
            await api.post(address("dead-letters", await whole_id(api, "dead_letter", id), "redrive"), {})
            number = 1
    invocation.output.record({"redriven": number})
    invocation.output.say(f"{number} on their way again." if number != 1 else "One is on its way again.")


@command(app)
async def drop(invocation: Invocation, id: Id) -> None:
    """Delete a dead letter permanently."""
    async with reach(invocation) as api:
        letter = await whole_id(api, "dead_letter", id)
        await api.delete(address("dead-letters", letter))
    invocation.output.record({"id": str(letter)})
    invocation.output.say(f"Dropped {letter}.")


def shown(letter: dict[str, Any]) -> str:
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


def _row(letter: dict[str, Any]) -> dict[str, Any]:
    error = letter["error"].split("\n", 1)[0]
    shortened = error if len(error) <= SHOWN_ERROR else error[:SHOWN_ERROR] + "…"
    return {**letter, "place": _place(letter), "error": shortened}


def _place(letter: dict[str, Any]) -> str:
    return f"{letter['partition']}/{letter['offset']}"
