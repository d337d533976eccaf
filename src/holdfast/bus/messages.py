"""Messages between agents: each says that something happened to a node of a conversation, without its content."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from holdfast.bus.records import Record
from holdfast.core.errors import InvalidInput

VERSION = "1.0.0"
SCHEMA_HEADER = "holdfast-schema"
SEQUENCE_HEADER = "holdfast-sequence"
DIGITS = 18  # maximum length of a revision
TOOL = "tool"

Action = Literal["create", "append", "edit", "delete", "tool_invoke", "tool_result", "system_message"]


class ConversationMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message between agents about a node. `agent_id` is the sender, or `tool` for the output of a tool.

    `action` is one of `Action`, or one that an agent defines.
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
        """Whether the message is about a tool's output: `tool_result`, or an `append` by `tool`."""
        return self.action == "tool_result" or (self.action == "append" and self.agent_id == TOOL)


def message_of(record: Record) -> ConversationMessage:
    """Decode the message of a record. Unknown fields are ignored: other programs may add some."""
    try:
        message = msgspec.convert(record.value, ConversationMessage)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"record {record.id} is not a message of a conversation", why=str(error)) from None
    if message.version.partition(".")[0] != VERSION.partition(".")[0]:
        raise InvalidInput(
            f"record {record.id} has version {message.version:.50}",
            why=f"this program reads version {VERSION}",
            next="Run a newer holdfast.",
        )
    return message


def sequence_of(record: Record) -> int | None:
    """Return the revision of the conversation that the record announces, or None.

    A record whose revision is not above the last one seen is a duplicate.
    """
    sequence = record.headers.get(SEQUENCE_HEADER, "")
    return int(sequence) if sequence.isascii() and sequence.isdigit() and len(sequence) <= DIGITS else None


def headers_of(message: ConversationMessage, *, sequence: int | None) -> dict[str, str]:
    """Return the headers of a message: its schema and, if it announces a new revision, that revision."""
    sequence_header = {} if sequence is None else {SEQUENCE_HEADER: str(sequence)}
    return {SCHEMA_HEADER: f"conversation-message/{message.version}", **sequence_header}
