"""Policies: checks that every tool call passes, one after another.

The gateway has a chain of policies for its calls, and the executor one for all others: calls of agents' turns and
direct calls.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import UUID

from holdfast.execution.outcomes import Outcome
from holdfast.skills.run import Run
from holdfast.skills.tool import Mode, Tool

Call = TypeVar("Call")
Call_contra = TypeVar("Call_contra", contravariant=True)


class Policy(Protocol[Call_contra]):
    """A check of every call. It may change, refuse or observe the call.

    It decides from memory: except to ask the client, it does not wait before the tool runs. It returns what `proceed`
    returns for the call or for a changed call, or its own outcome, or raises an error for the caller. What it does
    after `proceed`, it does for failed calls, too.
    """

    async def apply(self, call: Call_contra, proceed: Callable[[Any], Awaitable[Outcome]]) -> Outcome:
        """Proceed with a call, or refuse it."""
        ...


@dataclass(frozen=True, slots=True)
class ExecutorCall:
    """A call that does not come through the gateway: of an agent's turn, or a direct call.

    The fields are the parameters of `Executor.run`. `awaited`: a worker already has the call, and it passed the
    policies when it was sent. `notes` is what policies say of the call without refusing it.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    run: Run
    timeout: float
    max_output_bytes: int
    skill: UUID | None = None
    mode: Mode | None = None
    awaited: bool = False
    notes: list[str] = field(default_factory=list[str])


def chain(
    policies: Sequence[Policy[Call]], last: Callable[[Call], Awaitable[Outcome]]
) -> Callable[[Call], Awaitable[Outcome]]:
    """Return a function that applies the policies in order, and then calls `last`."""
    proceed = last
    for policy in reversed(policies):
        proceed = partial(policy.apply, proceed=proceed)
    return proceed
