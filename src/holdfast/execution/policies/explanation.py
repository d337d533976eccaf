"""Explanations: what a policy would say about a call, without making it."""

from typing import Protocol, runtime_checkable

from msgspec import Struct

from holdfast.execution.policies.policy import GovernedCall


class ExplainedStep(Struct, frozen=True):
    """A check of a call. `passed`: null if it was not made, or depends on what is not known. `next`: what to change."""

    name: str
    passed: bool | None
    what: str
    next: str = ""


@runtime_checkable
class ExplainingPolicy(Protocol):
    """A policy that can say what it would do. It changes and counts nothing."""

    async def explain(self, call: GovernedCall) -> ExplainedStep:
        """Return what the policy would say about a call."""
        ...
