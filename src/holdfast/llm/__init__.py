"""Language models: messages and tools in, a typed stream out.

A `Model` is one model: behind the API of OpenAI or Anthropic, scripted, or the offline model, which needs no key.
`Caller` calls models for the engine, with retries, time-outs and fallbacks, and counts tokens and cost.
"""

from holdfast.llm.caller import Caller
from holdfast.llm.model import (
    CallPiece,
    ChatMessage,
    Model,
    ModelReply,
    ModelRequest,
    Piece,
    Shown,
    Stop,
    TextPiece,
    ThinkingPiece,
    TokenUsage,
    ToolCall,
    ToolSpec,
)
from holdfast.llm.scripted import ScriptedModel
from holdfast.llm.tokens import TokenCounter, counter_for

__all__ = [
    "CallPiece",
    "Caller",
    "ChatMessage",
    "Model",
    "ModelReply",
    "ModelRequest",
    "Piece",
    "ScriptedModel",
    "Shown",
    "Stop",
    "TextPiece",
    "ThinkingPiece",
    "TokenCounter",
    "TokenUsage",
    "ToolCall",
    "ToolSpec",
    "counter_for",
]
