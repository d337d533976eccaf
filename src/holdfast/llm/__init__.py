"""Language models: messages and tools in, a typed stream out.

A `Model` is one model: behind the API of OpenAI or Anthropic, scripted, or the offline model, which needs no key.
`Caller` calls models for the engine, with retries, time-outs and fallbacks, and counts tokens and cost.
"""

from holdfast.llm.calling import Caller
from holdfast.llm.model import (
    Call,
    ChatMessage,
    Model,
    Piece,
    Reply,
    Request,
    Shown,
    Stop,
    Text,
    Thinking,
    ToolCall,
    ToolSpec,
    Usage,
)
from holdfast.llm.scripted import ScriptedModel
from holdfast.llm.tokens import TokenCounter, counter_for

__all__ = [
    "Call",
    "Caller",
    "ChatMessage",
    "Model",
    "Piece",
    "Reply",
    "Request",
    "ScriptedModel",
    "Shown",
    "Stop",
    "Text",
    "Thinking",
    "TokenCounter",
    "ToolCall",
    "ToolSpec",
    "Usage",
    "counter_for",
]
