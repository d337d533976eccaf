"""Requests of MCP clients, the same for modern and legacy versions."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.access.principals import Principal
from holdfast.gateway.gateway import Gateway
from holdfast.mcp.protocol import INVALID_PARAMS, MODERN, McpError
from holdfast.skills.client import Client

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class McpRequest:
    """One request: `version` is the protocol version, `client` receives notifications and questions."""

    method: str
    params: Mapping[str, Any]
    gateway: Gateway
    caller: Principal
    client: Client
    version: str

    @property
    def is_modern(self) -> bool:
        """Whether it is of the modern version, which has no sessions."""
        return self.version == MODERN

    def text(self, name: str) -> str:
        """Return a required parameter that is a string."""
        value = self.params.get(name)
        if not isinstance(value, str):
            raise McpError(INVALID_PARAMS, f"`{name}` has to be a text")
        return value

    def object(self, name: str) -> Mapping[str, Any]:
        """Return a parameter that is an object; empty if it is missing."""
        value = self.params.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise McpError(INVALID_PARAMS, f"`{name}` has to be an object")
        return value  # pyright: ignore[reportUnknownVariableType]


Handler = Callable[[McpRequest], Awaitable[Result]]
