"""A policy: something that every call passes, and that may change, refuse or watch it."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from holdfast.execution.outcomes import Outcome
from holdfast.gateway.calls import ToolCall

Proceed = Callable[[ToolCall], Awaitable[Outcome]]


class Policy(Protocol):
    """One thing that is asked of every call. It decides from memory: nothing is waited for on the way to a back end.

    It gives what `proceed` gives of the call, or of the call as it has to be; or an outcome of its own; or it raises
    what the caller is told. What it does after `proceed` it does for calls that failed, too.
    """

    async def apply(self, call: ToolCall, proceed: Proceed) -> Outcome:
        """Let a call go on, or not."""
        ...


def chained(policies: Sequence[Policy], last: Proceed) -> Proceed:
    """The policies one after another, the first first, and then `last`."""
    proceed = last
    for policy in reversed(policies):
        proceed = partial(policy.apply, proceed=proceed)
    return proceed
