"""Payloads: the structured part of a node, in the one form that every reader understands.

A node's plain text is its content. What else there is to a message lies here: whose role it has, the tools it calls,
which call it answers and with what, what is attached. Where nothing is said, the context tells the role.
"""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast

import msgspec

from holdfast.conversations.contexts import TOOL, Context
from holdfast.core.errors import InvalidInput

Role = Literal["user", "assistant", "system", "tool"]


class ToolCall(TypedDict):
    """A tool that the model wants to be called."""

    id: str
    name: str
    arguments: dict[str, Any]


class Attachment(TypedDict, total=False):
    """Something that came with a message and is not text; where it lies, not what it holds."""

    mime_type: str
    name: str
    uri: str


class Payload(TypedDict, total=False):
    """What there is to a message beside its text."""

    role: Role
    tool_calls: list[ToolCall]
    tool_call_id: str  # of the call that this answers
    tool_name: str
    result: Any  # what the tool gave, where it is more than text
    error: NotRequired[bool]  # the tool failed
    attachments: list[Attachment]


_KNOWN = Payload.__annotations__.keys()


def check_payload(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The payload, if its known parts are of their kind; parts of other names are the caller's own."""
    if given is None:
        return None
    payload = dict(given)
    try:
        msgspec.convert({name: part for name, part in payload.items() if name in _KNOWN}, Payload)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            "the payload cannot be used",
            why=str(error),
            next="`role`, `tool_calls`, `tool_call_id`, `tool_name`, `error` and `attachments` have fixed forms.",
        ) from None
    return payload


def role_of(context: Context, payload: Mapping[str, Any] | None) -> Role:
    """Who speaks: as the payload says, else as the context does."""
    said = payload.get("role") if payload else None
    if said is not None:
        return cast(Role, said)
    if context.name == "system":
        return "system"
    if context.name != "agent":
        return "user"
    return "tool" if context.value == TOOL else "assistant"
