"""Limits: admits calls within the rate limits of their user, agent, key, tool and tenant."""

from collections.abc import Awaitable, Callable

from holdfast.execution.outcomes import Outcome
from holdfast.execution.policies.policy import GovernedCall
from holdfast.quotas import Quotas
from holdfast.skills.client import InputRequired


class LimitPolicy:
    """Admits calls from memory, or raises RateLimited.

    A call that stops to ask its client does not count until it is made again.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas

    async def apply(self, call: GovernedCall, proceed: Callable[[GovernedCall], Awaitable[Outcome]]) -> Outcome:
        """Proceed with a call within the limits."""
        if call.resumed:
            return await proceed(call)
        caller = call.user, call.agent, call.key, call.tool.name
        admission = self._quotas.try_admit(caller) or await self._quotas.admit(caller)
        try:
            outcome = await proceed(call)
        except InputRequired:
            admission.undo()
            raise
        except BaseException:
            admission.end()
            raise
        admission.end()
        return outcome
