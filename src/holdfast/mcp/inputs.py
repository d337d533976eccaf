"""Input requests: what the server of a call can ask the client that made it, and the replies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.core.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Elicit:
    """A request to the user of the client to fill in a form; `schema` is a flat JSON Schema of an object."""

    message: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """A request to the client's model to generate a message; `messages` are in the format of MCP."""

    messages: Sequence[Mapping[str, Any]]
    max_tokens: int = 1000
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class ListRoots:
    """A request for the folders that the client works in."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A request of another MCP server, which is sent to the client unchanged. The server checks the reply."""

    method: str
    params: Mapping[str, Any]


InputRequest = Elicit | Sample | ListRoots | Forwarded
METHODS: Mapping[type[Any], str] = {
    Elicit: "elicitation/create",
    Sample: "sampling/createMessage",
    ListRoots: "roots/list",
}
CAPABILITIES: Mapping[str, str] = {  # that a client declares if it takes requests of a method
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class MissingCapability(Unavailable):
    """The client has not declared the capabilities that a question needs. `missing` has them by name."""

    def __init__(self, missing: Mapping[str, Any]) -> None:
        named = " and ".join(missing)
        super().__init__(f"the client has not declared the capability {named}", next="Use a client that supports it.")
        self.missing = missing


def method_of(request: InputRequest) -> str:
    """Return the method of a request."""
    return request.method if isinstance(request, Forwarded) else METHODS[type(request)]


def capability_of(request: InputRequest) -> str:
    """Return the capability that a client has to declare for a request."""
    return CAPABILITIES[method_of(request)]


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of the client: `result` is all of it. A form has an `action` and, if it was accepted, `content`."""

    result: Mapping[str, Any]

    @property
    def action(self) -> Literal["accept", "decline", "cancel"]:
        """What the user did with the form."""
        return self.result.get("action", "cancel")

    @property
    def content(self) -> Mapping[str, Any]:
        """The values that the user filled in."""
        return self.result.get("content") or {}


def wire_of(request: InputRequest) -> dict[str, Any]:
    """Return a request in its wire format: `method` and `params`."""
    match request:
        case Elicit():
            params: dict[str, Any] = {
                "mode": "form",
                "message": request.message,
                "requestedSchema": dict(request.schema),
            }
        case Sample():
            params = {"messages": list(request.messages), "maxTokens": request.max_tokens}
            if request.system_prompt is not None:
                params["systemPrompt"] = request.system_prompt
        case ListRoots():
            params = {}
        case Forwarded():
            params = dict(request.params)
    return {"method": method_of(request), "params": params}
