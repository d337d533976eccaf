"""Converts events of Google ADK to nodes of a conversation, and nodes to events.

An event becomes a node with a canonical part, which every reader understands, and the event's own JSON. An event with
several tool results becomes a node for each of them, so that every reader can find each result.
"""

import logging
import math
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from typing import Any, cast

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai.types import Content, FileData, FunctionCall, FunctionResponse, Part
from pydantic_core import PydanticSerializationError, SchemaError, SchemaValidator, to_jsonable_python

from holdfast.conversations.contexts import ASSISTANT, BY_TOOL, TOOL, UNANSWERED, Context, by_agent, by_user
from holdfast.conversations.nodes import NodeInput
from holdfast.conversations.payloads import role_of
from holdfast.conversations.snapshots import ForeignNode, Snapshot
from holdfast.conversations.state import TEMPORARY
from holdfast.core.errors import InvalidInput
from holdfast.core.text import ESCAPE, dumps, loads, render

FORM = "adk"
USER = "user"  # ADK's author of events that are not from an agent

# Validators that only help to write an event by hand: aliases of fields, and warnings about wrong types.
HELP = frozenset({"_accept_convenience_kwargs", "_check_field_type_mismatches"})
NO_SCHEMA = frozenset({"default", "metadata", "serialization"})

logger = logging.getLogger(__name__)


def events_of(found: Snapshot) -> list[Event]:
    """Return the nodes as events: ADK's own unchanged, other nodes converted."""
    return [
        event_of(node, found.agent) if isinstance(node, ForeignNode) else _parse_event(node) for node in found.nodes
    ]


def _parse_event(native: str) -> Event:
    # pydantic parses JSON faster, but does not know our escapes.
    return _reader().validate_python(loads(native)) if ESCAPE in native else _reader().validate_json(native)


@cache
def _reader() -> SchemaValidator:
    """Return a validator for stored events, without the `HELP` validators.

    Those take most of the time of reading a long session.
    """
    Event.model_rebuild()  # pydantic may have deferred building the schema
    try:
        return SchemaValidator(_drop_help(Event.__pydantic_core_schema__), _use_prebuilt=False)
    except (TypeError, SchemaError):  # an incompatible version of pydantic
        return cast(SchemaValidator, Event.__pydantic_validator__)


def _drop_help(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_drop_help(item) for item in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    known = cast(dict[str, Any], schema)
    if known.get("type") == "function-before" and known["function"]["function"].__name__ in HELP:
        return _drop_help(known["schema"])
    reduced = {key: value if key in NO_SCHEMA else _drop_help(value) for key, value in known.items()}
    return {**reduced, "custom_init": False} if reduced.get("custom_init") is True else reduced


def event_of(node: ForeignNode, agent: str | None) -> Event:
    """Convert a node of another framework to an event. `agent` is the author if the node names no agent."""
    role = role_of(node.context, node.payload)
    parts = list(_parts(node, role == "tool")) if node.context.type not in ("event", UNANSWERED) else []
    named = node.context.name == "agent" and node.context.value not in (ASSISTANT, TOOL)
    author = {"user": USER, "system": "system"}.get(role) or (node.context.value if named else agent or ASSISTANT)
    return Event(
        id=str(node.id),
        author=author,
        timestamp=node.created_at.timestamp(),
        content=Content(role="model" if role == "assistant" else "user", parts=parts) if parts else None,
        actions=EventActions(
            state_delta={key: value[0] if value else None for key, value in (node.state or {}).items()}
        ),
    )


def _parts(node: ForeignNode, is_result: bool) -> Iterator[Part]:
    payload = node.payload or {}
    if is_result:
        result = payload.get("result", node.content)
        if not isinstance(result, dict):
            result = {"error" if payload.get("error") else "result": result}
        yield Part(
            function_response=FunctionResponse(
                id=payload.get("tool_call_id"),
                name=payload.get("tool_name") or TOOL,
                response=cast(dict[str, Any], result),
            )
        )
        return
    if node.content:
        yield Part(text=node.content)
    for call in payload.get("tool_calls") or ():
        yield Part(function_call=FunctionCall(id=call["id"], name=call["name"], args=call["arguments"]))
    for file in payload.get("attachments") or ():
        if "uri" in file:
            yield Part(file_data=FileData(file_uri=file["uri"], mime_type=file.get("mime_type")))


def drafts_of(event: Event, user: str) -> tuple[list[NodeInput], dict[str, Any]]:
    """Return the nodes of an event, the first of them with the event's JSON, and the event's changes of state."""
    if not math.isfinite(event.timestamp):
        raise InvalidInput("the event has no valid timestamp", why=f"its timestamp is {event.timestamp}")
    data = plain(event.model_dump(exclude_none=True))
    changes = {key: value for key, value in data["actions"]["state_delta"].items() if not key.startswith(TEMPORARY)}
    data["actions"]["state_delta"] = changes
    if "long_running_tool_ids" in data:
        data["long_running_tool_ids"].sort()  # a set has no order, and equal events must have the same text
    native = dumps(data)
    # The idempotency key contains a hash of the event: events with the same id but other content are different events.
    key = f"{event.id}:{sha256(native.encode()).hexdigest()[:32]}" if event.id else None
    return [
        NodeInput(
            content=content,
            context=str(context),
            payload=payload or None,
            key=f"{key}#{number}" if key and number else key,
            form=FORM,
            native=None if number else native,
        )
        for number, (content, context, payload) in enumerate(_canonical(data, user))
    ], changes


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Convert to JSON values. Other values, such as a function in a state, become their descriptions."""
    try:
        try:
            return to_jsonable_python(value, bytes_mode="base64")
        except PydanticSerializationError as error:
            logger.warning("ADK returned values that cannot be stored; stored their descriptions instead: %s", error)
            return to_jsonable_python(value, bytes_mode="base64", serialize_unknown=True)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            "the values from ADK cannot be stored",
            why=str(error).partition("\n")[0],
            next="Use strings, numbers, lists, and mappings with strings as keys.",
        ) from error


Canonical = tuple[str, Context, dict[str, Any]]


def _canonical(data: Mapping[str, Any], user: str) -> Iterator[Canonical]:
    """Yield the canonical parts of an event: its message, and each tool result."""
    parts = _parts_of(data.get("content"))
    results = [part["function_response"] for part in parts if "function_response" in part]
    text, payload = _message(data, parts)
    author = data["author"]
    compaction = data["actions"].get("compaction")
    if compaction is not None:
        yield _text(_parts_of(compaction["compacted_content"])), by_agent(author)._replace(type="summary"), {}
    elif text or payload:
        if author == TOOL:  # an agent with this name, not a tool result
            payload["role"] = "assistant"
        yield text, by_user(user) if author == USER else by_agent(author), payload
    elif not results:
        speaker = by_user(user) if author == USER else by_agent(author)
        yield data.get("error_message", ""), speaker._replace(type="event"), {}
    yield from map(_result, results)


def _message(data: Mapping[str, Any], parts: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    calls = [part["function_call"] for part in parts if "function_call" in part]
    files = [
        part.get("file_data") or part["inline_data"] for part in parts if "file_data" in part or "inline_data" in part
    ]
    payload: dict[str, Any] = {}
    if calls:
        payload["tool_calls"] = [
            {
                "id": call.get("id") or f"{data['id']}-{number}",
                "name": call.get("name", ""),
                "arguments": call.get("args", {}),
            }
            for number, call in enumerate(calls)
        ]
    if files:
        renamed = {"mime_type": "mime_type", "display_name": "name", "file_uri": "uri"}
        payload["attachments"] = [{ours: file[its] for its, ours in renamed.items() if its in file} for file in files]
    transcription: dict[str, Any] = data.get("input_transcription") or data.get("output_transcription") or {}
    return _text(parts) or (transcription.get("text", "") if transcription.get("finished") else ""), payload


def _parts_of(content: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    return (content or {}).get("parts") or []


def _text(parts: list[dict[str, Any]]) -> str:
    return "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))


def _result(given: Mapping[str, Any]) -> Canonical:
    response: dict[str, Any] = given.get("response") or {}
    value = next(iter(response.values())) if set(response) in ({"result"}, {"error"}) else response
    payload: dict[str, Any] = {"role": "tool", "tool_name": given.get("name", "")}
    if "id" in given:
        payload["tool_call_id"] = given["id"]
    if not isinstance(value, str):
        payload["result"] = value
    if "error" in response:
        payload["error"] = True
    return value if isinstance(value, str) else render(value).decode(), BY_TOOL, payload
