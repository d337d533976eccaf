"""The interface of a language model: messages and tools in, a typed stream out."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol, cast

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.core.text import parse, render

Role = Literal["system", "user", "assistant", "tool"]
StopReason = Literal["end", "tools", "length", "refused"]


class ToolCall(msgspec.Struct, frozen=True):
    """A model's request to call a tool.

    `arguments` is the text that the model wrote, which may be invalid JSON.
    """

    id: str
    name: str
    arguments: str

    def object(self) -> dict[str, Any] | None:
        """Return the arguments if they are a JSON object, otherwise None."""
        try:
            value = parse(self.arguments.encode())
        except (HoldfastError, UnicodeEncodeError):
            return None
        return cast(dict[str, Any], value) if isinstance(value, dict) else None


class ChatMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a request. A `tool` message answers the call `call_id`."""

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    name: str | None = None


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The description of a tool for the model. `parameters` is the JSON Schema of an object.

    `read_only`: calling the tool changes nothing. This is not sent to a provider.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool = False

    def to_json(self) -> str:
        """Return the parts that cost tokens, as JSON."""
        return render({"name": self.name, "description": self.description, "parameters": self.parameters}).decode()


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to a model."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int | None = None
    temperature: float | None = None


class TextPiece(msgspec.Struct, frozen=True, tag="text"):
    """A piece of the answer's text."""

    text: str


class ThinkingPiece(msgspec.Struct, frozen=True, tag="thinking"):
    """A piece of the model's reasoning before it answers, if it shows that."""

    text: str


class CallPiece(msgspec.Struct, frozen=True, tag="call"):
    """A complete tool call."""

    call: ToolCall


class WritingPiece(msgspec.Struct, frozen=True, tag="writing"):
    """A sign of life: the model is writing something that is not complete yet, such as a call's arguments."""


class TokenUsage(msgspec.Struct, frozen=True, tag="usage"):
    """The tokens of a model call. `estimated`: the model did not report them."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    estimated: bool = False


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """The end of every complete stream: its reason, and which model answered."""

    reason: StopReason
    model: str


Piece = TextPiece | ThinkingPiece | WritingPiece | CallPiece | TokenUsage | Stop
Shown = TextPiece | ThinkingPiece | CallPiece


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer."""

    text: str
    calls: tuple[ToolCall, ...]
    usage: TokenUsage
    reason: StopReason
    model: str
    thinking: str = ""
    cost: float = 0.0  # in the currency of the price table


class Model(Protocol):
    """Answers requests. A stream ends with `Stop`, or raises `ModelFailed`."""

    @property
    def name(self) -> str:
        """The name of the model in the settings, such as `openai:gpt-5`."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Stream the answer: text as it arrives, complete tool calls, usage if it is reported, then `Stop`.

        Closing the generator ends the request. A stream that breaks off yields no tool calls.
        """
        ...
