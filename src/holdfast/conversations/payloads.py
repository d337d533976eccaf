"""Payloads: the structured part of a node, in one format for all readers.

The content of a node is its plain text. The payload has everything else: the role of the message, its tool calls, the
call that it answers and the result, its attachments. If the payload has no role, the context determines it.
"""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast

import msgspec

from holdfast.conversations.contexts import TOOL, Context
from holdfast.core.errors import InvalidInput

Role = Literal["user", "assistant", "system", "tool"]


class StoredToolCall(TypedDict):
    """A model's request to call a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


class Attachment(TypedDict, total=False):
    """An attachment of a message: its location, not its content."""

    mime_type: str
    name: str
    uri: str


class Payload(TypedDict, total=False):
    """Everything in a message besides its text."""

    role: Role
    tool_calls: list[StoredToolCall]
    tool_call_id: str  # the call that this message answers
    tool_name: str
    result: Any  # the result of the tool, if it is more than text
    error: NotRequired[bool]  # the tool failed
    attachments: list[Attachment]


_KNOWN = Payload.__annotations__.keys()


def check_payload(payload: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the payload. Raise InvalidInput if a known part has the wrong type; callers may add other parts."""
    if payload is None:
        return None
    checked = dict(payload)
    try:
        msgspec.convert({name: part for name, part in checked.items() if name in _KNOWN}, Payload)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            "the payload is invalid",
            why=str(error),
            next="Correct the field; see the documentation of payloads.",
        ) from None
    return checked


def role_of(context: Context, payload: Mapping[str, Any] | None) -> Role:
    """Return the role of a message: the one in its payload, otherwise the one of its context."""
    role = payload.get("role") if payload else None
    if role is not None:
        return cast(Role, role)
    if context.name == "system":
        return "system"
    if context.name != "agent":
        return "user"
    return "tool" if context.value == TOOL else "assistant"
