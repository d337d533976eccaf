"""`holdfast runs`: list, show, cancel and retry runs of agents."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any
from uuid import UUID

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.chat_output import format_call, shortened
from holdfast.cli.ids import Id, whole_id
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, message, table
from holdfast.cli.output import printable, write
from holdfast.core.errors import InvalidInput

app = group("List, show, cancel and retry runs. A run is an attempt of an agent to answer a message.")

PAGE = 100
BEGINNING = 40  # characters of a question in the list
COLUMNS = {
    "id": "ID",
    "question": "QUESTION",
    "agent": "AGENT",
    "user": "USER",
    "state": "STATE",
    "steps": "STEPS",
    "input_tokens": "IN",
    "output_tokens": "OUT",
    "cost": "COST",
    "created_at": "ASKED",
}

derive(app, "cancel", "cancel_run", message("The run {id} stops."))


@command(app)
async def ls(
    invocation: Invocation,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only runs of this session.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=PAGE, help="Maximum number of runs.")] = 50,
) -> None:
    """List runs, newest first."""
    async with reach(invocation) as api:
        conversation: str | None = None
        if session is not None:
            conversation = (await api.call("find_conversation", session_id=session))["id"]
        found = await api.call("list_runs", conversation=conversation, limit=limit)
    runs = [{**run, "question": found["questions"].get(run["id"], "")} for run in found["runs"]]
    show = table(
        COLUMNS,
        ids=["id"],
        cut=["question"],
        question=lambda run: _shorten_question(run["question"]),
        cost=lambda run: rounded(run["cost"]),
    )
    show(invocation, {}, {"runs": runs, "cursor": found["cursor"]})


@command(app)
async def show(invocation: Invocation, id: Id) -> None:
    """Show a run: prompt, reply and tool results of each step. Each part of a prompt is shown with its reason."""
    async with reach(invocation) as api:
        run = await whole_id(api, "run", id)
        page = details = await api.call("get_run", id=run)
        while page["cursor"] is not None:
            page = await api.call("get_run", id=run, since=page["cursor"])
            for part in ("steps", "executions", "asked"):
                details[part] += page[part]
        details |= {"run": page["run"], "cursor": None}
    if invocation.json:
        invocation.output.record(details)
    else:
        write(sys.stdout, printable("\n".join(format_run(details))))


@command(app)
async def retry(
    invocation: Invocation,
    id: Id,
    message: Annotated[
        str | None, typer.Option(metavar="TEXT", help="New text of the message, which is edited before the retry.")
    ] = None,
) -> None:
    """Retry a run that failed or was cancelled.

    \b
    holdfast runs retry ID --message "Where is parcel AB-1?"
    """
    async with reach(invocation) as api:
        run = await whole_id(api, "run", id)
        if message is not None:
            await _edit_message(api, run, message)
        again = await api.call("retry_run", id=run)
    invocation.output.record(again)
    invocation.output.say(f"The retry is the run {again['id']}.")


async def _edit_message(api: Api, id: UUID, message: str) -> None:
    """Edit the message of a run, if the run can be retried."""
    run = (await api.call("get_run", id=id))["run"]
    if run["state"] not in ("failed", "cancelled"):
        raise InvalidInput(f"the run {id} cannot be retried", why=f"it is {run['state']}", next="Send another message.")
    if run["merged"]:
        raise InvalidInput(
            f"the run {id} answers several messages",
            next="Edit them with `holdfast sessions edit-message`, then retry without --message.",
        )
    node = await api.call("read_node", id=run["trigger"])
    await api.call("edit_node", id=run["trigger"], content=message, version=node["version"])


def format_run(details: dict[str, Any]) -> Iterator[str]:
    """Format a run for the terminal."""
    run = details["run"]
    yield f"{run['id']} {run['state']}"
    yield f"agent     {run['agent']}" + (f", for {run['user']}" if run["user"] else "")
    yield from [f"model     {run['model']}"] if run["model"] else []
    yield f"tokens    {run['input_tokens']:,} in, {run['output_tokens']:,} out" + _cost(run["cost"])
    yield f"asked     {run['created_at']}"
    yield from [f"finished  {run['finished_at']}"] if run["finished_at"] else []
    yield from [f"error     {run['error']['message']}"] if run["error"] else []
    for step in details["steps"]:
        here = {each["call_id"]: each for each in details["executions"] if each["step"] == step["number"]}
        approvals = {each["call_id"]: each for each in details["asked"] if each["step"] == step["number"]}
        yield from _step(step, here, approvals)


def _step(step: dict[str, Any], ran: Mapping[str, Any], approvals: Mapping[str, Any]) -> Iterator[str]:
    sent, reply = step["sent"], step["reply"]
    yield f"\nstep {step['number']}: shown {sent['tokens']:,} tokens, counted by {sent['counter']}"
    for part in sent["parts"]:
        yield f"  {part['name']:<12}  {part['tokens']:>7,}  {part['kept']:>4}  {part['reason']}"
    if reply is None:
        yield "  no reply"
        return
    yield f"  replied in {reply['usage']['output_tokens']:,} tokens{_cost(reply['cost'])}"
    yield from [f"    {shortened(reply['text'])}"] if reply["text"] else []
    for call in reply["calls"]:
        yield f"  → {format_call({'tool': call['name'], 'arguments': _arguments(call['arguments'])})}"
        yield from [f"  ? {_decision(approvals[call['id']])}"] if call["id"] in approvals else []
        yield from [f"  ← {_outcome(ran[call['id']])}"] if call["id"] in ran else []


def _decision(approval: dict[str, Any]) -> str:
    return f"{approval['state']}: {shortened(approval['comment'])}" if approval["comment"] else approval["state"]


def _outcome(execution: dict[str, Any]) -> str:
    output: dict[str, Any] = execution["output"] or {}
    return f"{execution['status']}: {shortened(execution['error'] or output.get('text', ''))}"


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _cost(cost: float) -> str:
    return f", cost {rounded(cost)}" if cost else ""


def rounded(cost: float) -> str:
    """Format a cost with four decimal places, without trailing zeros."""
    return f"{cost:.4f}".rstrip("0").rstrip(".") if cost >= 0.0001 or not cost else "<0.0001"


def _shorten_question(question: str) -> str:
    line = " ".join(question.split())
    return line if len(line) <= BEGINNING else line[: BEGINNING - 1] + "…"
