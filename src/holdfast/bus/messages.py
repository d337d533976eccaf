"""What agents tell one another: that something happened to a node of a conversation. Content is never in it."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from holdfast.bus.records import Record
from holdfast.core.errors import InvalidInput

VERSION = "1.0.0"
SCHEMA_HEADER = "holdfast-schema"
SEQUENCE_HEADER = "holdfast-sequence"
DIGITS = 18  # of a revision, at most
TOOL = "tool"

Action = Literal["create", "append", "edit", "delete", "tool_invoke", "tool_result", "system_message"]


class ConversationMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message between agents: it names a node. `agent_id` is always the sender, `tool` for what a tool gave.

    `action` is one of `Action`, or an agent's own.
    """

    version: str
    conversation_id: UUID
    agent_id: str
    timestamp: datetime
    correlation_id: str | None = None
    docmem_node_id: UUID
    node_id: UUID
    action: str
    command: list[str] | None = None

    @property
    def is_tool_result(self) -> bool:
        """Whether a tool's output is meant: `tool_result`, or an `append` by `tool`."""
        return self.action == "tool_result" or (self.action == "append" and self.agent_id == TOOL)


def message_of(record: Record) -> ConversationMessage:
    """The message that a record carries; whoever wrote it may have put more into it than we know."""
    try:
        message = msgspec.convert(record.value, ConversationMessage)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"record {record.id} is no message of a conversation", why=str(error)) from None
    if message.version.partition(".")[0] != VERSION.partition(".")[0]:
        raise InvalidInput(
            f"record {record.id} has version {message.version:.50}",
            why=f"this program reads version {VERSION}",
            next="Run a newer holdfast.",
        )
    return message


def sequence_of(record: Record) -> int | None:
    """The revision of the conversation that the record tells of: one that is not above the last seen is a duplicate."""
    told = record.headers.get(SEQUENCE_HEADER, "")
    return int(told) if told.isascii() and told.isdigit() and len(told) <= DIGITS else None


def headers_of(message: ConversationMessage, *, sequence: int | None) -> dict[str, str]:
    """What is told beside the message: its schema, and the revision of the conversation, if it tells of a new one."""
    told = {} if sequence is None else {SEQUENCE_HEADER: str(sequence)}
    return {SCHEMA_HEADER: f"conversation-message/{message.version}", **told}
