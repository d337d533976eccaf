"""`holdfast research`: answers a question from many documents, and lists, shows, cancels and resumes such research."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from holdfast.cli.api import Api, reach
from holdfast.cli.ids import full_id
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, message, page, table
from holdfast.cli.output import printable, write
from holdfast.core.errors import HoldfastError, InvalidInput, NotFound, Unavailable

POLL = 0.5  # seconds between two looks at the progress
BEGINNING = 60  # characters of a question in the list
ASK = "ask"
WITH_VALUES = frozenset({"--tenant", "--data", "--server"})  # the shared options that have a value


class QuestionGroup(TyperGroup):
    """A group whose first argument can be a question: then the command is `ask`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. If the first word is no command, it belongs to a question."""
        words = [word for place, word in enumerate(args) if place == 0 or args[place - 1] not in WITH_VALUES]
        first = next((word for word in words if not word.startswith("-")), None)
        if args and first not in self.commands and not {"--help", "-h"} & set(args[:1]):
            args = [ASK, *args]
        return super().parse_args(ctx, args)


app = group(
    "Answer questions from many documents, with citations.\n\n"
    "holdfast research QUESTION starts and waits. The other commands list, show, cancel and resume research.",
    cls=QuestionGroup,
)


def _short(question: str) -> str:
    line = " ".join(question.split())
    return line if len(line) <= BEGINNING else line[: BEGINNING - 1] + "…"


def _shown(found: Mapping[str, Any]) -> str:
    research = found["research"]
    spent = f"{research['calls']} calls, {research['tokens']:,} tokens"
    if found["text"] is not None:
        return cast(str, found["text"])
    error = research["error"]
    return f"{research['state']}: {_short(research['question'])} ({spent})" + (f"\n{error['message']}" if error else "")


derive(
    app,
    "ls",
    "list_research",
    table(
        {"id": "ID", "question": "QUESTION", "user": "USER", "state": "STATE", "calls": "CALLS", "tokens": "TOKENS",
         "created_at": "ASKED"},
        ids=["id"],
        question=lambda row: _short(row["question"]),
    ),
)  # fmt: skip
derive(app, "show", "get_research", page(_shown))
derive(app, "cancel", "cancel_research", message("The research {id} stops."))
derive(app, "rm", "remove_research", message("The research {id} is removed."))


@command(app)
async def ask(
    invocation: Invocation,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to find out.")],
    document: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this document, by name or id; repeatable.")
    ] = None,
    collection: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only documents of this collection; repeatable.")
    ] = None,
    calls: Annotated[int | None, typer.Option(metavar="N", min=0, help="Model calls, at most.")] = None,
    tokens: Annotated[int | None, typer.Option(metavar="N", min=0, help="Tokens, at most.")] = None,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="Read all of the text if the budget allows it, not only what is found."),
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the report.")] = True,
) -> None:
    """Answer a question from documents, and print the report. Ctrl-C leaves the research running.

    \b
    holdfast research "How do the fees compare?" --collection contracts
    holdfast research "What does it say about recalls?" --document manual.pdf --whole --calls 50
    """
    given = {"collections": collection or None, "calls": calls, "tokens": tokens}
    body: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    async with reach(invocation) as api:
        if document:
            body["documents"] = [await _document_id(api, name) for name in document]
        started = await api.call("start_research", question=question, whole=whole, **body)
        if not wait:
            invocation.output.record(started)
            invocation.output.say(f"`holdfast research show {started['id']}` shows the report when it is done.")
            return
        await _follow(invocation, api, started["id"])


@command(app)
async def resume(
    invocation: Invocation,
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of a research that failed or was cancelled.")],
    calls: Annotated[int | None, typer.Option(metavar="N", min=0, help="Model calls, at most, in all.")] = None,
    tokens: Annotated[int | None, typer.Option(metavar="N", min=0, help="Tokens, at most, in all.")] = None,
) -> None:
    """Resume a research that failed or was cancelled. It asks for no answer again that it has."""
    if full_id(id) is None:
        raise InvalidInput(f"{id[:80]!r} is not an id", next="Copy it from `holdfast research ls --json`.")
    budget = {name: value for name, value in (("calls", calls), ("tokens", tokens)) if value is not None}
    async with reach(invocation) as api:
        await api.call("resume_research", id=id, **budget)
        await _follow(invocation, api, id)


async def _follow(invocation: Invocation, api: Api, id: str) -> None:
    """Show the progress until the research has ended, then its report."""
    since = 0
    with invocation.output.progress() as progress:
        while True:
            found = await api.call("read_research_events", id=id, since=since)
            for event in found["events"]:
                since = event["seq"]
                progress(_progress(event))
            if found["has_ended"]:
                break
            if not found["events"]:
                await asyncio.sleep(POLL)
    detail = await api.call("get_research", id=id)
    research, error = detail["research"], detail["research"]["error"]
    if detail["text"] is None:
        raise _failure(id, research["state"], error)
    if invocation.json:
        invocation.output.record(detail)
        return
    write(sys.stdout, printable(detail["text"]))
    report = research["report"]
    read = f"{report.get('passages', 0):,} of {report.get('all_passages', 0):,} passages read"
    invocation.output.say(f"{read}, {research['calls']} calls, {research['tokens']:,} tokens ({id})")


def _failure(id: str, state: str, error: dict[str, Any] | None) -> HoldfastError:
    why = "" if error is None else error["message"]
    what = "was cancelled" if state == "cancelled" else "failed"
    next = f"`holdfast research resume {id}` goes on with the answers that it has."
    return Unavailable(f"the research {id} {what}", why=why, next=next)


def _progress(event: Mapping[str, Any]) -> str:
    data = event["data"]
    spent = f"{data['calls']} calls, {data['tokens']:,} tokens"
    match event["kind"]:
        case "corpus":
            doing = f"{data['documents']:,} documents, {data['passages']:,} passages"
        case "queries":
            doing = f"searching: {'; '.join(data['queries'])[:BEGINNING]}"
        case "found":
            doing = f"{data['passages']:,} passages found"
        case "chosen":
            doing = f"{data['passages']:,} passages chosen"
        case "read":
            doing = f"{data['passages']:,} of {data['of']:,} passages read"
        case "combined":
            doing = f"{data['notes']:,} notes left"
        case _:
            doing = "writing the report"
    return f"{doing} ({spent})"


async def _document_id(api: Api, name: str) -> str:
    """Return the id of a document that is given by its name or id."""
    if (id := full_id(name)) is not None:
        return str(id)
    found = (await api.call("list_documents", name=name))["documents"]
    if not found:
        raise NotFound(f"there is no document {name[:200]!r}", next="`holdfast knowledge ls` lists documents.")
    if len(found) > 1:
        ids = ", ".join(each["id"] for each in found)
        raise InvalidInput(f"several documents have the name {name[:200]!r}", why=ids, next="Give the id of one.")
    return cast(str, found[0]["id"])
