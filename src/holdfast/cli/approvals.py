"""`holdfast approvals`: list, approve and deny pending tool calls."""

from typing import Annotated, Any

import typer

from holdfast.cli.api import reach
from holdfast.cli.chat_output import called
from holdfast.cli.ids import Id, shortened_ids, whole_id
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.urls import address, given

app = group("List, approve and deny tool calls of agents that wait for a person's decision.")

COLUMNS = {"id": "ID", "call": "CALL", "why": "WHY", "user": "USER", "run_id": "RUN", "created_at": "ASKED"}
WHY = {"listed": "the agent's list", "unknown": "it may have run before"}

Comment = Annotated[str | None, typer.Option(metavar="TEXT", help="Comment that the agent sees.")]


@command(app)
async def ls(invocation: Invocation) -> None:
    """List pending approvals, oldest first."""
    async with reach(invocation) as api:
        found: list[dict[str, Any]] = (await api.get(address("approvals")))["approvals"]
    shown = [{**each, "call": called(each), "why": WHY.get(each["reason"], each["reason"])} for each in found]
    invocation.output.rows(found if invocation.json else shortened_ids(shown, "id", "run_id"), COLUMNS)


@command(app)
async def approve(invocation: Invocation, id: Id, comment: Comment = None) -> None:
    """Approve a tool call. The agent continues."""
    await _decide(invocation, id, "approve", comment)


@command(app)
async def deny(invocation: Invocation, id: Id, comment: Comment = None) -> None:
    """Deny a tool call. The agent sees the denial and continues without the call."""
    await _decide(invocation, id, "deny", comment)


async def _decide(invocation: Invocation, id: str, decision: str, comment: str | None) -> None:
    async with reach(invocation) as api:
        approval = await whole_id(api, "approval", id)
        decided = await api.post(address("approvals", approval), {"decision": decision, **given(comment=comment)})
    invocation.output.record(decided)
    invocation.output.say(f"{called(decided)} is {decided['state']}. The agent goes on where it is served.")
