"""A call that does not come through the gateway, as policies get it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from holdfast.core.request_context import current_request
from holdfast.skills.run import Run
from holdfast.skills.tool import Mode, Tool


@dataclass(frozen=True, slots=True)
class ExecutorCall:
    """A call of an agent's turn, or a direct call. The fields are the parameters of `Executor.run`.

    `resumed`: a worker already has the call under the same key. `notes` is what policies say of the call without
    refusing it.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    run: Run
    timeout: float
    max_output_bytes: int
    skill: UUID | None = None
    mode: Mode | None = None
    resumed: bool = False
    notes: list[str] = field(default_factory=list[str])

    @property
    def user(self) -> str | None:
        """The user for whom the call is made."""
        return self.run.user

    @property
    def agent(self) -> str | None:
        """The agent that makes the call."""
        return self.run.agent

    @property
    def key(self) -> UUID | None:
        """The API key of a direct call. An agent's turn has none."""
        return current_request().key

    @property
    def actor(self) -> str | None:
        """The user of the key, if the caller of a direct call acts as another user."""
        return current_request().actor

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of the caller of a direct call. An agent's turn has none."""
        return current_request().scopes
