"""Arguments: checks arguments against the tool's schema, and adds those that a skill fixes."""

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.policies.calls import GatewayCall, Proceed
from holdfast.skills.arguments import ArgumentRefusal, check_parsed, refuse_large


class ArgumentPolicy:
    """Checks arguments before the tool runs; the outcome tells the caller what is wrong."""

    async def apply(self, call: GatewayCall, proceed: Proceed) -> Outcome:
        """Proceed with a call whose arguments fit."""
        offer = call.listed.offer
        # A message can be larger than arguments may be. To measure small ones takes less than a microsecond.
        if (large := refuse_large(offer.shown, call.arguments)) is not None:
            return Outcome.refusal(large.text, code=TooLarge.code)
        checked = check_parsed(offer.shown, call.arguments, offer.overlay)
        if isinstance(checked, ArgumentRefusal):
            return Outcome.refusal(checked.text, code=InvalidInput.code)
        checked_call = GatewayCall(call.listed, checked, call.caller, call.view, call.timeout, call.client, call.notes)
        return await proceed(checked_call)
