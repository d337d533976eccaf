"""Requests, and answers in short."""

from holdfast.llm import Caller, ChatMessage, ModelReply, ModelRequest, Shown, ToolSpec

TRACK = ToolSpec(
    "track",
    "Where a parcel is.",
    {"type": "object", "properties": {"parcel": {"type": "string"}}, "required": ["parcel"]},
)
HELLO = ModelRequest(messages=[ChatMessage("user", "Hello")])


def saying(*messages: ChatMessage | str, tools: tuple[ToolSpec, ...] = (TRACK,)) -> ModelRequest:
    """A request in which text is what the user says."""
    return ModelRequest(
        messages=[ChatMessage("user", message) if isinstance(message, str) else message for message in messages],
        tools=tools,
    )


def called(reply: ModelReply) -> list[tuple[str, str]]:
    """The calls of a reply, without their ids."""
    return [(call.name, call.arguments.replace(" ", "")) for call in reply.calls]


async def shown(caller: Caller, request: ModelRequest = HELLO) -> tuple[ModelReply, list[Shown]]:
    """The reply, and the pieces as they were handed out."""
    pieces: list[Shown] = []
    return await caller.ask(request, on_piece=pieces.append), pieces
