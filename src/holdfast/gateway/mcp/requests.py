"""Requests: what a client of MCP asks, the same for both eras."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.access.principals import Principal
from holdfast.gateway.gateway import Gateway
from holdfast.mcp.protocol import INVALID_PARAMS, MODERN, McpError
from holdfast.skills.client import Client

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One request: `version` is the protocol's, `client` is who can be told how it goes, or asked."""

    method: str
    params: Mapping[str, Any]
    gateway: Gateway
    caller: Principal
    client: Client
    version: str

    @property
    def is_modern(self) -> bool:
        """Whether it is of the era without sessions."""
        return self.version == MODERN

    def text(self, name: str) -> str:
        """A parameter that has to be there, and to be a text."""
        value = self.params.get(name)
        if not isinstance(value, str):
            raise McpError(INVALID_PARAMS, f"`{name}` has to be a text")
        return value

    def object(self, name: str) -> Mapping[str, Any]:
        """A parameter that is an object, an empty one where it is not there."""
        value = self.params.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise McpError(INVALID_PARAMS, f"`{name}` has to be an object")
        return value  # pyright: ignore[reportUnknownVariableType]


Handler = Callable[[Request], Awaitable[Result]]
