"""A call through the gateway, as the policies of the gateway get it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

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
