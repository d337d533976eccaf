"""Messages: a conversation as one agent sees it, in the format of model APIs.

The agent's own nodes have the role `assistant`, all others (users, other agents, tools) `user`. Consecutive messages
with the same role are merged. With `tools`, for models that support them, tool calls and results are messages of their
own kind, each call with its result, and system nodes have the role `system`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID

from holdfast.conversations.contexts import ASSISTANT, Context, parse_context
from holdfast.conversations.nodes import Node
from holdfast.conversations.payloads import StoredToolCall, role_of

BETWEEN = "\n\n"  # separates the texts of a merged message


class ModelMessage(TypedDict):
    """A message in the list that a model gets."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str
    tool_calls: NotRequired[list[StoredToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]


def as_messages(nodes: Iterable[Node], reader: str, *, tools: bool = False) -> list[ModelMessage]:
    """Return nodes as the messages that `reader` sees, in the same order."""
    parsed = [(parse_context(node.context), node) for node in nodes if not node.deleted and node.context]
    text_nodes = [(context, node) for context, node in parsed if context.type in ("text", "summary")]
    return list(_merge(_native_messages(text_nodes, reader) if tools else _plain_messages(text_nodes, reader)))


def _is_own(context: Context, reader: str) -> bool:
    return context.name == "agent" and context.value in (reader, ASSISTANT)


def _plain_messages(text_nodes: Iterable[tuple[Context, Node]], reader: str) -> Iterator[ModelMessage]:
    for context, node in text_nodes:
        if node.content.strip():
            yield {"role": "assistant" if _is_own(context, reader) else "user", "content": node.content}


def _native_messages(text_nodes: Sequence[tuple[Context, Node]], reader: str) -> Iterator[ModelMessage]:
    """Yield calls with their results. A call without a result, or a result without a call, becomes plain text."""
    results = _results(text_nodes, reader)
    result_ids = {result.id for result in results.values()}  # yielded after their calls
    for context, node in text_nodes:
        if node.id in result_ids:
            continue
        calls = {call["id"]: call for call in _calls(node) if (node.id, call["id"]) in results}
        if calls:
            yield {"role": "assistant", "content": node.content, "tool_calls": list(calls.values())}
            for id, call in calls.items():
                content = results[node.id, id].content
                yield {"role": "tool", "content": content, "tool_call_id": id, "name": call["name"]}
        elif node.content.strip():
            role = "system" if role_of(context, node.payload) == "system" else "user"
            yield {"role": "assistant" if _is_own(context, reader) else role, "content": node.content}


def _results(text_nodes: Iterable[tuple[Context, Node]], reader: str) -> dict[tuple[UUID, str], Node]:
    """Return the results of the reader's calls. If call ids repeat, a result belongs to the last call before it."""
    callers: dict[str, UUID] = {}
    results: dict[tuple[UUID, str], Node] = {}
    for context, node in text_nodes:
        call_id = _answered_call_id(context, node)
        if call_id in callers:
            results[callers.pop(call_id), call_id] = node
        elif _is_own(context, reader):
            callers.update((call["id"], node.id) for call in _calls(node))
    return results


def _calls(node: Node) -> list[StoredToolCall]:
    return [] if node.payload is None else node.payload.get("tool_calls") or []


def _answered_call_id(context: Context, node: Node) -> str | None:
    return node.payload.get("tool_call_id") if node.payload and role_of(context, node.payload) == "tool" else None


def _merge(messages: Iterable[ModelMessage]) -> Iterator[ModelMessage]:
    """Merge consecutive messages with the same role, except tool results. Nothing is merged after tool calls."""
    last: ModelMessage | None = None
    for message in messages:
        joins = last is not None and last["role"] == message["role"] != "tool" and "tool_calls" not in last
        if last is not None and joins:
            text = BETWEEN.join(part for part in (last["content"], message["content"]) if part)
            merged: dict[str, Any] = {**last, **message, "content": text}
            last = merged  # pyright: ignore[reportAssignmentType]
            continue
        if last is not None:
            yield last
        last = message
    if last is not None:
        yield last
