"""Policies: checks that every tool call passes, one after another.

The gateway has a chain of policies for its calls, and the executor one for all others: calls of agents' turns and
direct calls. Policies for a `GovernedCall` are in both chains.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import UUID

from holdfast.execution.outcomes import Outcome
from holdfast.skills.tool import Tool

Call = TypeVar("Call")
Call_contra = TypeVar("Call_contra", contravariant=True)


class GovernedCall(Protocol):
    """A tool call, however it was made.

    `user` and `agent` are for whom it is made. `key` is the API key of the caller, and `actor` the user of that key if
    the caller acts as another user. `scopes` are those of the caller; a turn of an agent has none. `resumed`: the call
    passed the policies when it was first sent, and a worker already has it. `notes` is what policies say of the call
    without refusing it.
    """

    @property
    def tool(self) -> Tool: ...
    @property
    def arguments(self) -> Mapping[str, Any]: ...
    @property
    def user(self) -> str | None: ...
    @property
    def agent(self) -> str | None: ...
    @property
    def key(self) -> UUID | None: ...
    @property
    def actor(self) -> str | None: ...
    @property
    def scopes(self) -> frozenset[str]: ...
    @property
    def resumed(self) -> bool: ...
    @property
    def notes(self) -> list[str]: ...


class Policy(Protocol[Call_contra]):
    """A check of every call. It may change, refuse or observe the call.

    Before the tool runs it decides from memory, except to ask the client. It returns what `proceed`
    returns for the call or for a changed call, or its own outcome, or raises an error for the caller. What it does
    after `proceed`, it does for failed calls, too.
    """

    async def apply(self, call: Call_contra, proceed: Callable[[Any], Awaitable[Outcome]]) -> Outcome:
        """Proceed with a call, or refuse it."""
        ...


def chain(
    policies: Sequence[Policy[Call]], last: Callable[[Call], Awaitable[Outcome]]
) -> Callable[[Call], Awaitable[Outcome]]:
    """Return a function that applies the policies in order, and then calls `last`."""
    proceed = last
    for policy in reversed(policies):
        proceed = partial(policy.apply, proceed=proceed)
    return proceed
