"""Input requests: what whoever serves a call may ask of the client that made it, and what comes back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Elicit:
    """Ask the person in front of the client to fill in a form; `schema` is a flat JSON Schema of an object."""

    message: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """Have the client's model say something; `messages` are as MCP writes them."""

    messages: Sequence[Mapping[str, Any]]
    max_tokens: int = 1000
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class ListRoots:
    """Ask which folders the client works in."""


InputRequest = Elicit | Sample | ListRoots
METHODS: Mapping[type[Any], str] = {
    Elicit: "elicitation/create",
    Sample: "sampling/createMessage",
    ListRoots: "roots/list",
}
CAPABILITIES: Mapping[type[Any], str] = {Elicit: "elicitation", Sample: "sampling", ListRoots: "roots"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: of a form the `action` and, where it was accepted, the `content`; `result` is all of it."""

    result: Mapping[str, Any]

    @property
    def action(self) -> Literal["accept", "decline", "cancel"]:
        """What the person did with the form."""
        return self.result.get("action", "cancel")

    @property
    def content(self) -> Mapping[str, Any]:
        """What the person filled in."""
        return self.result.get("content") or {}


def wire_of(request: InputRequest) -> dict[str, Any]:
    """A request, as the wire has it: its method and its params."""
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
    return {"method": METHODS[type(request)], "params": params}
