"""Language models: messages and tools in, a typed stream out.

A `Model` is one model: behind OpenAI's or Anthropic's interface, scripted, or the offline one that needs no key.
`Caller` is what the engine has: it asks them with retries, time-outs and fallbacks, and counts what they take.
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
