"""Approval: of tools that a person has to allow, each call is asked about."""

from typing import Any

from holdfast.core.errors import Forbidden, Unavailable
from holdfast.core.text import render
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.calls import ToolCall
from holdfast.gateway.policies.policy import Proceed

QUESTION = "holdfast_approval"  # what it is asked under: no tool asks anything by that name
SHOWN = 2000  # characters of the arguments
NOTHING_TO_FILL_IN: dict[str, Any] = {"type": "object", "properties": {}}


class Approval:
    """Asks the person in front of the client; where nobody can be asked, the call is refused."""

    async def apply(self, call: ToolCall, proceed: Proceed) -> Outcome:
        """Let a call go on that a person allows."""
        if not call.listed.tool.approve:
            return await proceed(call)
        name, agent = call.listed.name, call.caller.agent
        refusal = f"a person has to allow each call of {name}"
        if agent is not None:  # who answers for its client is the agent itself
            raise Forbidden(
                refusal,
                why=f"the caller speaks for the agent {agent!r:.200}",
                next="Have a person call it, with a key of their own.",
            )
        try:
            reply = await call.client.elicit(QUESTION, _question(call), NOTHING_TO_FILL_IN)
        except Unavailable as error:
            raise Forbidden(refusal, why=error.what, next=error.next) from error
        if reply.action != "accept":
            raise Forbidden(f"{name} was not called", why="the person who was asked did not allow it")
        return await proceed(call)


def _question(call: ToolCall) -> str:
    """What a person is asked: nothing is left out without that they are told so first."""
    arguments = render(call.arguments).decode(errors="replace")
    hidden = len(arguments) - SHOWN
    note = f" {hidden:,} characters of its arguments are not shown here." if hidden > 0 else ""
    return f"Allow {call.listed.name}?{note}\n\n{arguments[:SHOWN]}"
