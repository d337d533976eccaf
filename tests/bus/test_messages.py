"""What agents tell one another."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from holdfast.bus import Record
from holdfast.bus.messages import (
    SCHEMA_HEADER,
    SEQUENCE_HEADER,
    VERSION,
    ConversationMessage,
    headers_of,
    message_of,
    sequence_of,
)
from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine

pytestmark = pytest.mark.req("TALK-02")

NODE, TALK = UUID(int=7), UUID(int=8)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def message(**changes: Any) -> ConversationMessage:
    """A message that tells of a node."""
    fields: dict[str, Any] = {
        "version": VERSION, "conversation_id": TALK, "agent_id": "support", "timestamp": NOW, "docmem_node_id": TALK,
        "node_id": NODE, "action": "append",
    }  # fmt: skip
    return ConversationMessage(**{**fields, **changes})


def record(value: object, **headers: str) -> Record:
    """A record as a consumer gets it."""
    names = {name.replace("_", "-"): text for name, text in headers.items()}
    return Record("llm-support", 0, 0, str(TALK), uuid4(), names, value, NOW)


async def test_a_message_comes_through_the_log_as_it_was(engine: Engine) -> None:
    await engine.log.create("llm-support")
    sent = message(correlation_id="c-1", action="tool_invoke", command=["weather", "--in", "Bern"])

    await engine.log.publish("llm-support", key=str(TALK), value=sent, headers=headers_of(sent, sequence=12))
    (found,) = [record async for record in engine.log.read("llm-support")]

    assert message_of(found) == sent
    assert sequence_of(found) == 12
    assert found.headers == {
        "content-type": "application/json",
        SCHEMA_HEADER: f"conversation-message/{VERSION}",
        SEQUENCE_HEADER: "12",
    }


def test_the_fields_on_the_wire_are_those_of_the_specification() -> None:
    written = msgspec.to_builtins(message(correlation_id="c-1", command=["a"]))

    assert set(written) == {
        "version", "conversation_id", "agent_id", "timestamp", "correlation_id", "docmem_node_id", "node_id", "action",
        "command",
    }  # fmt: skip
    assert written["timestamp"] == "2026-01-02T03:04:05Z"
    assert set(msgspec.to_builtins(message())) == set(written) - {"correlation_id", "command"}


def test_fields_that_we_do_not_know_and_newer_minor_versions_are_no_trouble() -> None:
    written = {**msgspec.to_builtins(message()), "version": "1.7.2", "mood": "good", "action": "applaud"}

    read = message_of(record(written))

    assert (read.version, read.action, read.node_id) == ("1.7.2", "applaud", NODE)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": "2.0.0"}, "Run a newer holdfast"),
        ({"node_id": "no uuid"}, "is not a message of a conversation.*node_id"),
        ({"timestamp": "yesterday"}, "is not a message of a conversation.*timestamp"),
        ({"command": "rm"}, "is not a message of a conversation.*command"),
        ({"agent_id": None}, "is not a message of a conversation.*agent_id"),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(change: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        message_of(record({**msgspec.to_builtins(message()), **change}))


@pytest.mark.parametrize("value", [None, [], "text", {}, 7])
def test_another_kind_of_record_is_no_message(value: object) -> None:
    with pytest.raises(InvalidInput, match="is not a message of a conversation"):
        message_of(record(value))


@pytest.mark.parametrize(
    ("told", "sequence"),
    [
        ("12", 12),
        ("0", 0),
        ("", None),
        ("-1", None),
        ("x", None),
        ("²", None),
        ("9" * 18, 10**18 - 1),
        ("9" * 5000, None),
    ],
)
def test_a_sequence_is_a_whole_number_or_none(told: str, sequence: int | None) -> None:
    assert sequence_of(record({}, holdfast_sequence=told)) == sequence
    assert sequence_of(record({})) is None


def test_a_tools_output_is_told_by_action_or_by_sender() -> None:
    assert message(action="tool_result").is_tool_result
    assert message(action="append", agent_id="tool").is_tool_result
    assert not message(action="append").is_tool_result
    assert not message(action="edit", agent_id="tool").is_tool_result
