"""A language model, as everyone sees it: messages and tools in, a typed stream out."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol, cast

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.core.text import parse, render

Role = Literal["system", "user", "assistant", "tool"]
StopReason = Literal["end", "tools", "length", "refused"]


class ToolCall(msgspec.Struct, frozen=True):
    """A tool that the model wants to be called.

    `arguments`: as it wrote them, which may be no JSON.
    """

    id: str
    name: str
    arguments: str

    def object(self) -> dict[str, Any] | None:
        """The arguments, if they are a JSON object."""
        try:
            value = parse(self.arguments.encode())
        except (HoldfastError, UnicodeEncodeError):
            return None
        return cast(dict[str, Any], value) if isinstance(value, dict) else None


class ChatMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a request: `tool` answers the call `call_id`."""

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    name: str | None = None


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool, as the model is told of it; `parameters` is a JSON Schema of an object.

    `read_only`: calling it changes nothing. Models behind an address are not told.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool = False

    def told(self) -> str:
        """What of it costs tokens."""
        return render({"name": self.name, "description": self.description, "parameters": self.parameters}).decode()


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model is asked."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int | None = None
    temperature: float | None = None


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A piece of the answer."""

    text: str


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """A piece of what the model thinks before it answers, where it shows that."""

    text: str


class Call(msgspec.Struct, frozen=True, tag="call"):
    """A tool call, whole."""

    call: ToolCall


class Writing(msgspec.Struct, frozen=True, tag="writing"):
    """The model is at work on something that is not whole yet, such as a call's arguments: a sign of life."""


class Usage(msgspec.Struct, frozen=True, tag="usage"):
    """Tokens that the call took; `estimated` where the model did not say."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    estimated: bool = False


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """The end of every stream that was not broken: why, and which model answered."""

    reason: StopReason
    model: str


Piece = Text | Thinking | Writing | Call | Usage | Stop
Shown = Text | Thinking | Call


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer."""

    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage
    reason: StopReason
    model: str
    thinking: str = ""
    cost: float = 0.0  # in the currency of the price table


class Model(Protocol):
    """Answers requests; a stream ends with `Stop`, or raises `ModelFailed`."""

    @property
    def name(self) -> str:
        """How the settings write it, such as `openai:gpt-5`."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[Piece]:
        """The answer, piece by piece: text as it comes, calls when they are whole, usage if it is told, then `Stop`.

        Closing the generator ends the call. No call is handed out of a stream that broke off.
        """
        ...
