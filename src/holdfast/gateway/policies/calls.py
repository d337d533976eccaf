"""A call through the gateway, as the policies of the gateway get it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from holdfast.access.principals import Principal
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.views import CallerView, Listed
from holdfast.skills.client import SILENT, Client
from holdfast.skills.tool import Tool


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

    @property
    def tool(self) -> Tool:
        """The tool that is called."""
        return self.listed.tool

    @property
    def user(self) -> str:
        """The user for whom the call is made."""
        return self.caller.user

    @property
    def agent(self) -> str | None:
        """The agent for which the caller acts."""
        return self.caller.agent

    @property
    def key(self) -> UUID | None:
        """The API key of the caller."""
        return self.caller.key

    @property
    def actor(self) -> str | None:
        """The user of the key, if the caller acts as another user."""
        return self.caller.actor

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of the caller."""
        return self.caller.scopes

    @property
    def resumed(self) -> bool:
        """A call through the gateway is never resumed."""
        return False


Proceed = Callable[[GatewayCall], Awaitable[Outcome]]
