"""A policy: a check that every call passes, and that may change, refuse or observe it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from holdfast.access.principals import Principal
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.views import CallerView, Listed
from holdfast.skills.client import SILENT, Client


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """A call of a tool from the caller's `view`; `timeout` is how many seconds the caller waits.

    `notes` is what policies say of the call without refusing it, such as a rule on trial. The audit records it.
    """

    listed: Listed
    arguments: Mapping[str, Any]
    caller: Principal
    view: CallerView
    timeout: float
    client: Client = SILENT
    notes: list[str] = field(default_factory=list[str])


Proceed = Callable[[GatewayCall], Awaitable[Outcome]]


class Policy(Protocol):
    """A check of every call. It decides from memory: except to ask the client, it does not wait before the tool runs.

    It returns what `proceed` returns for the call or for a changed call, or its own outcome, or raises an error for the
    caller. What it does after `proceed`, it does for failed calls, too.
    """

    async def apply(self, call: GatewayCall, proceed: Proceed) -> Outcome:
        """Proceed with a call, or refuse it."""
        ...


def chain(policies: Sequence[Policy], last: Proceed) -> Proceed:
    """Return a function that applies the policies in order, and then calls `last`."""
    proceed = last
    for policy in reversed(policies):
        proceed = partial(policy.apply, proceed=proceed)
    return proceed
