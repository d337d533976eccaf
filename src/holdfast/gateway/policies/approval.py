"""Approval: asks a person before each call of a tool that needs it."""

from typing import Any

from holdfast.core.errors import Forbidden, Unavailable
from holdfast.core.text import render
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.policies.calls import GatewayCall, Proceed

QUESTION = "holdfast_approval"  # name of the input request; no tool uses it
SHOWN = 2000  # characters of the arguments in the question
NOTHING_TO_FILL_IN: dict[str, Any] = {"type": "object", "properties": {}}


class ApprovalPolicy:
    """Asks the user of the client whether a call may run; refuses the call if nobody can be asked."""

    async def apply(self, call: GatewayCall, proceed: Proceed) -> Outcome:
        """Proceed with a call that needs no approval, or that a person allows."""
        if not call.listed.tool.approve:
            return await proceed(call)
        name, agent = call.listed.name, call.caller.agent
        refusal = f"a person has to allow each call of {name}"
        if agent is not None:  # the agent itself would answer the question
            raise Forbidden(
                refusal,
                why=f"the caller acts for the agent {agent!r:.200}",
                next="Have a person call it, with a key of their own.",
            )
        try:
            reply = await call.client.elicit(QUESTION, _question(call), NOTHING_TO_FILL_IN)
        except Unavailable as error:
            raise Forbidden(refusal, why=error.what, next=error.next) from error
        if reply.action != "accept":
            raise Forbidden(f"{name} was not called", why="the person who was asked did not allow it")
        return await proceed(call)


def _question(call: GatewayCall) -> str:
    """Return the question. If it leaves out a part of the arguments, it says so first."""
    arguments = render(call.arguments).decode(errors="replace")
    hidden = len(arguments) - SHOWN
    note = f" {hidden:,} characters of its arguments are not shown here." if hidden > 0 else ""
    return f"Allow {call.listed.name}?{note}\n\n{arguments[:SHOWN]}"
