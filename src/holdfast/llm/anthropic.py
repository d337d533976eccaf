"""Models behind Anthropic's messages API."""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, cast

from holdfast.core.errors import ModelFailed
from holdfast.llm.assembly import Assembly, PartialCall, tokens
from holdfast.llm.endpoint import ModelEndpoint
from holdfast.llm.model import (
    ChatMessage,
    ModelRequest,
    Piece,
    StopReason,
    TextPiece,
    ThinkingPiece,
    TokenUsage,
    ToolSpec,
    WritingPiece,
)

DEFAULT_MAX_TOKENS = 4096  # the API requires a limit
EMPTY = "(nothing)"  # the API rejects a message without text
BEFORE = "(The conversation began earlier.)"

REASONS: dict[str, StopReason] = {
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")  # in an id; other providers allow more characters

Block = dict[str, Any]


class AnthropicModel:
    """A model behind `/v1/messages`."""

    def __init__(self, name: str, endpoint: ModelEndpoint) -> None:
        self._name = name
        self._endpoint = endpoint

    @property
    def name(self) -> str:
        """The name of the model in the settings."""
        return self._name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Stream the answer."""
        answer = AnthropicMessage(self._name, self._endpoint)
        try:
            async with aclosing(self._endpoint.objects(self._body(request))) as events:
                async for kind, event in events:
                    for piece in answer.take(kind, event or {}):
                        yield piece
                    if answer.done:
                        break
        except ModelFailed:
            if answer.assembly.reason is None:
                raise
        for piece in answer.end():
            yield piece

    def _body(self, request: ModelRequest) -> dict[str, object]:
        system, messages = _turns(request.messages)
        body: dict[str, object] = {
            "model": self._name.partition(":")[2],
            "max_tokens": request.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": messages,
            "stream": True,
        }
        if system:
            body["system"] = system
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        elif called := sorted({call.name for message in request.messages for call in message.calls}):
            # The API rejects calls of undeclared tools, even those that were answered long ago.
            body["tools"] = [_tool(ToolSpec(name, "", {"type": "object"})) for name in called]
            body["tool_choice"] = {"type": "none"}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return body


class AnthropicMessage:
    """One streamed message."""

    def __init__(self, model: str, endpoint: ModelEndpoint) -> None:
        self.assembly = Assembly(model)
        self.done = False
        self._endpoint = endpoint
        self._by_index: dict[object, PartialCall] = {}
        self._usage: dict[str, Any] = {}

    def take(self, kind: str, event: dict[str, Any]) -> Iterator[Piece]:
        """Yield the pieces in an event."""
        match event.get("type") or kind:
            case "message_start":
                self._count(_object(_object(event.get("message")).get("usage")))
            case "content_block_start":
                yield from self._begin(event.get("index"), _object(event.get("content_block")))
            case "content_block_delta":
                yield from self._continue(event.get("index"), _object(event.get("delta")))
            case "message_delta":
                self._count(_object(event.get("usage")))
                reason = _object(event.get("delta")).get("stop_reason")
                if isinstance(reason, str):
                    self.assembly.reason = REASONS.get(reason, "end")
            case "message_stop":
                self.done = True
            case "error":
                raise self._endpoint.refusal(event)
            case _:  # ping, content_block_stop, and future events
                pass

    def end(self) -> Iterator[Piece]:
        """Return the final pieces. Raise `ModelFailed` if the stream broke off."""
        if self.assembly.reason is None and not self.done:
            raise self._endpoint.broken_stream("the stream ended without a stop_reason")
        cached_tokens = tokens(self._usage, "cache_read_input_tokens")
        input_tokens = (
            cached_tokens + tokens(self._usage, "input_tokens") + tokens(self._usage, "cache_creation_input_tokens")
        )
        output_tokens = tokens(self._usage, "output_tokens")
        self.assembly.usage = (
            TokenUsage(input_tokens, output_tokens, cached_tokens) if input_tokens or output_tokens else None
        )
        return self.assembly.end()

    def _begin(self, index: object, block: Block) -> Iterator[Piece]:
        if block.get("type") == "tool_use":
            call = PartialCall(_text(block.get("id")), _text(block.get("name")))
            given = block.get("input")
            if given:  # compatible servers may send the complete input here
                call.add("", call.name, given)
            self.assembly.calls.append(call)
            self._by_index[str(index)] = call
            yield WritingPiece()
        elif text := _text(block.get("text")):
            yield TextPiece(text)

    def _continue(self, index: object, delta: dict[str, Any]) -> Iterator[Piece]:
        if text := _text(delta.get("text")):
            yield TextPiece(text)
        elif thought := _text(delta.get("thinking")):
            yield ThinkingPiece(thought)
        elif delta.get("type") == "input_json_delta":
            call = self._by_index.get(str(index))
            if call is not None:
                call.add("", call.name, _text(delta.get("partial_json")))
            yield WritingPiece()

    def _count(self, usage: dict[str, Any]) -> None:
        self._usage |= {name: value for name, value in usage.items() if value is not None}


def _turns(messages: Sequence[ChatMessage]) -> tuple[str, list[dict[str, Any]]]:
    """Return the leading system messages as one text, and alternating turns of user and assistant, the user first."""
    leading = next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))
    turns: list[dict[str, Any]] = []
    for message in messages[leading:]:
        role = "assistant" if message.role == "assistant" else "user"
        if not turns and role == "assistant":
            turns.append({"role": "user", "content": [{"type": "text", "text": BEFORE}]})
        if not turns or turns[-1]["role"] != role:
            turns.append({"role": role, "content": []})
        turns[-1]["content"] += _blocks(message)
    for turn in turns:
        turn["content"] = turn["content"] or [{"type": "text", "text": EMPTY}]
    return "\n\n".join(message.content for message in messages[:leading]), turns


def _blocks(message: ChatMessage) -> list[Block]:
    if message.role == "tool":
        id = _UNFIT.sub("_", message.call_id or "")
        return [{"type": "tool_result", "tool_use_id": id, "content": message.content}]
    text: list[Block] = [{"type": "text", "text": message.content}] if message.content.strip() else []
    return text + [
        {"type": "tool_use", "id": _UNFIT.sub("_", call.id), "name": call.name, "input": call.object() or {}}
        for call in message.calls
    ]


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
