"""Arguments: a tool is called with what its schema takes, and with what its skill fixes."""

from holdfast.core.errors import InvalidInput
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.calls import ToolCall
from holdfast.gateway.policies.policy import Proceed
from holdfast.skills.arguments import Refusal, fitted


class Arguments:
    """Checks arguments before anything is run; what is wrong is told to the caller as the outcome."""

    async def apply(self, call: ToolCall, proceed: Proceed) -> Outcome:
        """Let a call go on with arguments that fit."""
        offer = call.listed.offer
        checked = fitted(offer.shown, call.arguments, offer.overlay)
        if isinstance(checked, Refusal):
            return Outcome.refused(checked.text, code=InvalidInput.code)
        return await proceed(ToolCall(call.listed, checked, call.caller, call.view, call.timeout, call.client))
