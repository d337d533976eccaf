"""Models behind OpenAI's chat completions API: OpenAI, OpenRouter, vLLM, Ollama and other compatible servers.

The servers differ in details. These variants are accepted:

    calls without `id`                      they get one
    calls without `index`, or all with 0    separated by their ids, or where the previous arguments are complete
    arguments as an object                  as well as text
    `reasoning`, `reasoning_content`        the model's reasoning
    no `[DONE]`                             if a `finish_reason` was sent
    no usage                                the caller estimates it
"""

from collections.abc import AsyncGenerator, Iterator
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
    WritingPiece,
)

MAX_CALLS = 1000

REASONS: dict[str, StopReason] = {
    "stop": "end",
    "eos": "end",
    "end_turn": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
    "refusal": "refused",
    "safety": "refused",
}


class OpenAiModel:
    """A model behind `/chat/completions`. `limit` is the provider's name for the limit of output tokens."""

    def __init__(self, name: str, endpoint: ModelEndpoint, *, limit: str = "max_tokens") -> None:
        self._name = name
        self._endpoint = endpoint
        self._limit = limit

    @property
    def name(self) -> str:
        """The name of the model in the settings."""
        return self._name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Stream the answer."""
        answer = OpenAiCompletion(self._name, self._endpoint)
        try:
            async with aclosing(self._endpoint.objects(self._body(request))) as chunks:
                async for _, chunk in chunks:
                    if chunk is None:
                        answer.done = True
                        break
                    for piece in answer.take(chunk):
                        yield piece
        except ModelFailed:
            if answer.assembly.reason is None:
                raise
        for piece in answer.end():
            yield piece

    def _body(self, request: ModelRequest) -> dict[str, object]:
        body: dict[str, object] = {
            "model": self._name.partition(":")[2],
            "messages": [_message(message) for message in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.tools
            ]
        if request.max_tokens is not None:
            body[self._limit] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return body


class OpenAiCompletion:
    """One streamed completion."""

    def __init__(self, model: str, endpoint: ModelEndpoint) -> None:
        self.assembly = Assembly(model)
        self.done = False
        self._endpoint = endpoint
        self._by_index: dict[int, PartialCall] = {}

    def take(self, chunk: dict[str, Any]) -> Iterator[Piece]:
        """Yield the pieces in a chunk."""
        if chunk.get("error") or chunk.get("object") == "error":
            raise self._endpoint.refusal(chunk)
        self.assembly.usage = _usage(_object(chunk.get("usage"))) or self.assembly.usage
        for choice in _objects(chunk.get("choices"))[:1]:
            yield from self._take_delta(_object(choice.get("delta")))
            self._finish(choice)

    def end(self) -> Iterator[Piece]:
        """Return the final pieces. Raise `ModelFailed` if the stream broke off."""
        if self.assembly.reason is None and not self.done:
            raise self._endpoint.broken_stream("the stream ended without a finish_reason")
        return self.assembly.end()

    def _take_delta(self, delta: dict[str, Any]) -> Iterator[Piece]:
        thought = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        if thought:
            yield ThinkingPiece(thought)
        text = _text(delta.get("content")) + _text(delta.get("refusal"))
        if text:
            yield TextPiece(text)
        if delta.get("refusal"):
            self.assembly.reason = "refused"
        for piece in _objects(delta.get("tool_calls")):
            self._take_call(piece)
            yield WritingPiece()

    def _take_call(self, piece: dict[str, Any]) -> None:
        function = _object(piece.get("function"))
        id, name, arguments = _text(piece.get("id")), _text(function.get("name")), function.get("arguments")
        call = self._call_of(piece.get("index"), id)
        if call is None or call.is_followed(id, name, arguments):
            if len(self.assembly.calls) >= MAX_CALLS:
                raise self._endpoint.broken_stream(f"it has more than {MAX_CALLS} tool calls")
            call = PartialCall()
            self.assembly.calls.append(call)
            if isinstance(index := piece.get("index"), int):
                self._by_index[index] = call
        call.add(id, name, arguments)

    def _call_of(self, index: object, id: str) -> PartialCall | None:
        """Return the call that a piece continues, as far as its index or id shows."""
        calls = self.assembly.calls
        if isinstance(index, int):
            return self._by_index.get(index)
        known = [call for call in calls if call.id == id] if id else []
        return (known or calls or [None])[-1]

    def _finish(self, choice: dict[str, Any]) -> None:
        reason = choice.get("finish_reason")
        if reason == "error":
            raise self._endpoint.refusal(choice.get("error") or "its finish_reason is `error`")
        if isinstance(reason, str) and reason and self.assembly.reason is None:
            self.assembly.reason = REASONS.get(reason.lower(), "end")


def _message(message: ChatMessage) -> dict[str, object]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
    if not message.calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {
            "id": call.id,
            "type": "function",
            # Some servers parse them again and reject all but objects. The tool's result says what was wrong.
            "function": {"name": call.name, "arguments": "{}" if call.object() is None else call.arguments},
        }
        for call in message.calls
    ]
    return {"role": message.role, "content": message.content or None, "tool_calls": calls}


def _usage(fields: dict[str, Any]) -> TokenUsage | None:
    input_tokens, output_tokens = tokens(fields, "prompt_tokens"), tokens(fields, "completion_tokens")
    cached_tokens = tokens(_object(fields.get("prompt_tokens_details")), "cached_tokens")
    return TokenUsage(input_tokens, output_tokens, cached_tokens) if input_tokens or output_tokens else None


def _text(value: object) -> str:
    if isinstance(value, list):  # a list of parts
        return "".join(_text(part.get("text")) for part in _objects(cast(object, value)))
    return value if isinstance(value, str) else ""


def _object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    items = cast(list[object], value) if isinstance(value, list) else []
    return [cast(dict[str, Any], item) for item in items if isinstance(item, dict)]
