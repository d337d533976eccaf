"""A policy: a check that every call passes, and that may change, refuse or observe it."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from holdfast.execution.outcomes import Outcome
from holdfast.gateway.calls import GatewayCall

Proceed = Callable[[GatewayCall], Awaitable[Outcome]]


class Policy(Protocol):
    """A check of every call. It decides from memory: except to ask the client, it does not wait before the tool runs.

    It returns what `proceed` returns for the call or for a changed call, or its own outcome, or raises an error for the
    caller. What it does after `proceed`, it does for failed calls, too.
    """

    async def apply(self, call: GatewayCall, proceed: Proceed) -> Outcome:
        """Proceed with a call, or refuse it."""
        ...


def chained(policies: Sequence[Policy], last: Proceed) -> Proceed:
    """Return a function that applies the policies in order, and then calls `last`."""
    proceed = last
    for policy in reversed(policies):
        proceed = partial(policy.apply, proceed=proceed)
    return proceed
